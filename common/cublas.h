// cublas.h - NVIDIA's own BLAS as a yardstick, loaded at run time when it is there.
//
// dlopen instead of -lcublas: a lesson then compiles with a bare nvcc, starts on machines without
// the library, and can say why the row is missing. Matrices are column-major, as in Fortran.
#ifndef COMMON_CUBLAS_H
#define COMMON_CUBLAS_H

#include "device.h"
#include <dlfcn.h>

// Status and enum values as in cublas_api.h: 0 is success; 0: no transpose, 1: transpose.
struct cublas_library {
    void *handle;        // a cublasHandle_t; NULL when not loaded
    const char *why_not; // one line when handle is NULL
    char reason[256];
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*get_version)(void *handle, int *version);
    int (*saxpy)(void *handle, int n, const float *alpha, const float *x, int incx, float *y,
                 int incy);
    int (*sgemm)(void *handle, int transa, int transb, int m, int n, int k, const float *alpha,
                 const float *a, int lda, const float *b, int ldb, const float *beta, float *c,
                 int ldc);
    int (*sgeam)(void *handle, int transa, int transb, int m, int n, const float *alpha,
                 const float *a, int lda, const float *beta, const float *b, int ldb, float *c,
                 int ldc);
};

#define CUBLAS_CHECK(call) check_cublas((call), #call, __FILE__, __LINE__)

static inline void check_cublas(int status, const char *expression, const char *file, int line)
{
    if (status != 0)
        lesson_exit(EXIT_FAILED, "%s:%d: %s\n  cuBLAS status %d", file, line, expression, status);
}

// The library of this runtime's major version: by its name first, then where scripts/toolchain
// looks for the toolkit, too.
static inline void *cublas_open(char *reason, size_t size)
{
    static const char *const places[][2] = {// {environment variable, or NULL; folder below it}
                                            {NULL, ""},
                                            {"CUDA_PATH", "/lib64/"},
                                            {"CUDA_HOME", "/lib64/"},
                                            {"CONDA_PREFIX", "/lib/"},
                                            {NULL, "/usr/local/cuda/lib64/"},
                                            {NULL, "/opt/cuda/lib64/"}};
    char path[4096];
    int version = 0;
    cudaRuntimeGetVersion(&version);
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *prefix = places[i][0] ? getenv(places[i][0]) : "";
        if (!prefix)
            continue;
        snprintf(path, sizeof(path), "%s%slibcublas.so.%d", prefix, places[i][1], version / 1000);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    snprintf(reason, size, "libcublas.so.%d was not found (install it, or set CUDA_PATH)",
             version / 1000);
    return NULL;
}

// Loads cuBLAS and creates its handle; on failure handle is NULL and why_not says the reason.
static inline void cublas_load(struct cublas_library *blas)
{
    memset(blas, 0, sizeof(*blas));
    blas->why_not = blas->reason;
    if (DEVICE_IS_CPU) {
        snprintf(blas->reason, sizeof(blas->reason), "cuBLAS needs a GPU");
        return;
    }
    void *library = cublas_open(blas->reason, sizeof(blas->reason));
    if (!library)
        return;
    const struct {
        const char *name;
        void *where;
    } functions[] = {
        {"cublasCreate_v2", &blas->create}, {"cublasDestroy_v2", &blas->destroy},
        {"cublasSaxpy_v2", &blas->saxpy},   {"cublasSgemm_v2", &blas->sgemm},
        {"cublasSgeam", &blas->sgeam},      {"cublasGetVersion_v2", &blas->get_version},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *symbol = dlsym(library, functions[i].name);
        if (!symbol) {
            snprintf(blas->reason, sizeof(blas->reason), "libcublas has no %s", functions[i].name);
            return;
        }
        memcpy(functions[i].where, &symbol, sizeof(symbol));
    }
    int status = blas->create(&blas->handle);
    if (status != 0) {
        blas->handle = NULL;
        snprintf(blas->reason, sizeof(blas->reason), "cublasCreate failed with status %d", status);
    }
}

static inline void cublas_unload(struct cublas_library *blas)
{
    if (blas->handle)
        CUBLAS_CHECK(blas->destroy(blas->handle));
    blas->handle = NULL;
}

#endif
