// ptx_and_jit: code that the driver compiles when the program runs, and three ways to stop it.
//
// Predict before you run it: the driver must not compile PTX (CUDA_DISABLE_PTX_JIT=1). A program
// that has only PTX ran yesterday. Does it run today?
//
// usage: ptx_and_jit [CASE] [--fixed]
#include "images.h"
#include <dlfcn.h>

// ---- ptx_version
// PTX text that the driver compiles when it is loaded, as CuPy, Numba and NVRTC users do it.
static cudaError_t load_ptx(const char *version)
{
    typedef int (*load_function)(void **module, const void *text); // cuModuleLoadData of the driver
    char text[256];
    void *module = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
    load_function load = driver ? (load_function)dlsym(driver, "cuModuleLoadData") : NULL;
    if (!load)
        twin_waive("libcuda.so.1 cannot be loaded");
    CUDA_CHECK(cudaFree(NULL)); // the runtime makes its context current, which the driver uses
    snprintf(text, sizeof(text),
             ".version %s\n.target sm_%d\n.address_size 64\n.visible .entry empty() { ret; }\n",
             version, this_gpu() < 75 ? 50 : 75);
    printf("  PTX text that begins with '.version %s'\n", version);
    return (cudaError_t)load(&module, text); // the driver's numbers are the runtime's
}

static void ptx_version_broken(void)
{
    twin_result(load_ptx("99.0"), "cuModuleLoadData");
}

static void ptx_version_fixed(void)
{
    cudaError_t error = load_ptx("6.3");
    check_that(error == cudaSuccess, "cuModuleLoadData gives %d", (int)error);
}

// ---- jit_disabled
static const char *cold_cache(void) // no compiled PTX is taken from, or left in, the user's cache
{
    return "CUDA_CACHE_DISABLE=1";
}

static void jit_disabled_broken(void)
{
    char environment[128];
    snprintf(environment, sizeof(environment), "%s CUDA_DISABLE_PTX_JIT=1", cold_cache());
    run_broken(is_older_ptx, environment, "no PTX image for this GPU was built");
}

static void jit_disabled_fixed(void)
{
    struct image images[MAX_IMAGES];
    const struct image *image = choose_image(images, is_older_ptx);
    if (!image || ptx_is_too_new())
        twin_waive("no PTX image that this driver can compile for this GPU was built");
    double ms = 0;
    int error = run_image(image->name, cold_cache(), 1, &ms);
    printf("  %.1f ms for the first launch: the driver compiled the PTX\n", ms);
    check_that(error == 0, "images/%s: error %d", image->name, error);
}

// ---- jit_forced
static void jit_forced_broken(void)
{
    run_broken(is_own_sass, "CUDA_FORCE_PTX_JIT=1", "no SASS image for this GPU was built");
}

static void jit_forced_fixed(void)
{
    run_right_image(); // without the variable
}

static const struct twin twins[] = {
    TWIN(ptx_version),
    TWIN(jit_disabled),
    TWIN(jit_forced),
};

TWINS_MAIN("06_error_cases/ptx_and_jit", "code that the driver compiles, or does not", twins)
