// memory_cures: the data does not fit - and still the work gets done. Pieces, smaller types, a pool
// that gives back, and a look at who else is there.
//
// Predict before you run it: a pool of 256 MiB is freed to the last byte. Does another program see
// that memory as free?
//
// usage: memory_cures [CASE] [--fixed]
#include "small_pool.h"

// ---- data_larger_than_device
__global__ void square(const float *in, float *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i] * in[i];
}

static void data_larger_than_device_broken(void)
{
    cudaMemPool_t pool = small_pool();
    float *d_in;
    printf("  the data set: 96 MiB\n");
    RESULT(cudaMallocFromPoolAsync((void **)&d_in, 96 * MIB, pool, 0));
}

static void data_larger_than_device_fixed(void)
{
    size_t n = 96 * MIB / sizeof(float), chunk = 8 * MIB / sizeof(float);
    cudaMemPool_t pool = small_pool();
    float *h_data = (float *)host_malloc(n * sizeof(float)), *d_in, *d_out;
    for (size_t i = 0; i < n; i++)
        h_data[i] = (float)(i % 1000);
    CUDA_CHECK(cudaMallocFromPoolAsync((void **)&d_in, chunk * sizeof(float), pool, 0));
    CUDA_CHECK(cudaMallocFromPoolAsync((void **)&d_out, chunk * sizeof(float), pool, 0));
    for (size_t first = 0; first < n; first += chunk) { // n is a multiple of the chunk
        CUDA_CHECK(cudaMemcpy(d_in, h_data + first, chunk * sizeof(float), cudaMemcpyHostToDevice));
        square<<<(unsigned)((chunk + 255) / 256), 256>>>(d_in, d_out, chunk);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK(
            cudaMemcpy(h_data + first, d_out, chunk * sizeof(float), cudaMemcpyDeviceToHost));
    }
    struct verifier v = verify_begin("squares", 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, h_data[i], (double)(i % 1000) * (double)(i % 1000));
    verify_end(&v);
    printf("  96 MiB through two buffers of 8 MiB, %zu chunks (lesson 05 overlaps their copies)\n",
           n / chunk);
    CUDA_CHECK(cudaFreeAsync(d_in, 0));
    CUDA_CHECK(cudaFreeAsync(d_out, 0));
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemPoolDestroy(pool));
    free(h_data);
}

// ---- smaller_type
// bfloat16 is the upper half of a float: 8 bits of exponent, 7 of mantissa. Adding half of the last
// kept bit before cutting rounds to nearest. (cuda_bf16.h and cuda_fp16.h have the real types.)
__device__ unsigned short to_bf16(float x)
{
    return (unsigned short)((__float_as_uint(x) + 0x8000u) >> 16);
}

__global__ void fill_bf16(unsigned short *out, size_t n)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = to_bf16((float)(i % 1000));
}

static const size_t values = 20 * MIB; // 80 MiB as float, 40 MiB in 16 bits

static void smaller_type_broken(void)
{
    cudaMemPool_t pool = small_pool();
    float *d_values;
    printf("  %zu values as float: %zu MiB\n", values, values * sizeof(float) / MIB);
    RESULT(cudaMallocFromPoolAsync((void **)&d_values, values * sizeof(float), pool, 0));
}

static void smaller_type_fixed(void)
{
    cudaMemPool_t pool = small_pool();
    unsigned short *d_values, h_values[1000];
    CUDA_CHECK(
        cudaMallocFromPoolAsync((void **)&d_values, values * sizeof(unsigned short), pool, 0));
    fill_bf16<<<(unsigned)((values + 255) / 256), 256>>>(d_values, values);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(h_values, d_values, sizeof(h_values), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin("bfloat16", 1.0 / 256, 0); // half of the last of 8 bits
    for (size_t i = 0; i < 1000; i++) {
        unsigned bits = (unsigned)h_values[i] << 16;
        float x;
        memcpy(&x, &bits, sizeof(x));
        verify_value(&v, i, x, (double)i);
    }
    verify_end(&v);
    printf("  %zu values in 16 bits: %zu MiB, right to %.1g of the value\n", values,
           values * sizeof(unsigned short) / MIB, 1.0 / 256);
    CUDA_CHECK(cudaFreeAsync(d_values, 0));
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

// ---- pool_keeps_memory
static const size_t big = 256 * MIB;

static size_t reserved_bytes(cudaMemPool_t pool, const char *when)
{
    unsigned long long reserved = 0, used = 0;
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemCurrent, &reserved));
    CUDA_CHECK(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    printf("  %-28s the pool holds %llu MiB, %llu MiB of it in use\n", when, reserved >> 20,
           used >> 20);
    return (size_t)reserved;
}

// A pool that keeps what is freed, as PyTorch's allocator does; all of it freed by now.
static cudaMemPool_t pool_after_use(void)
{
    cudaMemPool_t pool = pool_create(0);
    unsigned long long keep_all = ~0ULL;
    void *d_memory;
    CUDA_CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep_all));
    show_memory("before");
    CUDA_CHECK(cudaMallocFromPoolAsync(&d_memory, big, pool, 0));
    reserved_bytes(pool, "with 256 MiB in use");
    CUDA_CHECK(cudaFreeAsync(d_memory, 0));
    CUDA_CHECK_SYNC();
    return pool;
}

static void pool_keeps_memory_broken(void)
{
    cudaMemPool_t pool = pool_after_use();
    size_t kept = reserved_bytes(pool, "after the last cudaFreeAsync");
    show_memory("and outside of the pool");
    SYMPTOM(kept >= big, "%zu MiB that nobody uses and nobody else can have", kept / MIB);
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

static void pool_keeps_memory_fixed(void)
{
    cudaMemPool_t pool = pool_after_use();
    CUDA_CHECK(cudaMemPoolTrimTo(pool, 0)); // torch.cuda.empty_cache() is the same idea
    size_t kept = reserved_bytes(pool, "after cudaMemPoolTrimTo");
    show_memory("and outside of the pool");
    check_that(kept == 0, "the pool still holds %zu bytes", kept);
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

// ---- two_processes
static size_t held_bytes(size_t free_bytes)
{
    return free_bytes / 4 < 512 * MIB ? free_bytes / 4 : 512 * MIB;
}

// The other process: takes its share, says so, and keeps it until the pipe is closed.
static void other_process(int to_parent, int from_parent)
{
    size_t free_bytes = 0, total_bytes;
    char *d_held, byte = 1;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    if (cudaMalloc(&d_held, held_bytes(free_bytes)) != cudaSuccess)
        byte = 0;
    if (write(to_parent, &byte, 1) != 1 || read(from_parent, &byte, 1) != 0)
        _exit(EXIT_FAILED);
    cudaFree(d_held);
    _exit(EXIT_OK);
}

static void print_who_holds_memory(void)
{
    char line[256];
    FILE *list = popen("nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader "
                       "2>/dev/null",
                       "r");
    while (list && fgets(line, sizeof(line), list))
        printf("  nvidia-smi: process %s", line);
    if (list)
        pclose(list);
}

static void two_processes_look(int wait_for_its_end)
{
    int up[2], down[2]; // two pipes: from the other process, and to it
    char byte = 0;
    if (pipe(up) != 0 || pipe(down) != 0)
        lesson_exit(EXIT_FAILED, "no pipe");
    pid_t other = fork(); // before the first CUDA call
    if (other == 0) {
        close(up[0]);
        close(down[1]);
        byte = 0;
        if (read(down[0], &byte, 1) == 1) // wait until the parent has looked once
            other_process(up[1], down[0]);
        _exit(EXIT_FAILED);
    }
    close(up[1]);
    close(down[0]);
    device_select(common_options.device);
    size_t before = show_memory("alone");
    int arrived = write(down[1], "g", 1) == 1 && read(up[0], &byte, 1) == 1 && byte == 1;
    size_t with_other = show_memory("with the other process");
    print_who_holds_memory();
    if (twin_state.really) {
        void *d_all = NULL;
        if (STEP(cudaMalloc(&d_all, before)) == cudaSuccess)
            CUDA_CHECK(cudaFree(d_all));
        cudaGetLastError();
    }
    if (!wait_for_its_end)
        SYMPTOM(arrived && before > with_other && before - with_other >= held_bytes(before) / 2,
                "%.0f MiB fewer, none of it allocated here",
                ((double)before - (double)with_other) / 1048576.0);
    close(down[1]); // the other process sees the end of the pipe, frees and ends
    waitpid(other, NULL, 0);
    close(up[0]);
    size_t after = show_memory("after its end");
    if (wait_for_its_end)
        check_that(after > with_other, "the memory did not come back");
}

static void two_processes_broken(void)
{
    two_processes_look(0);
}

static void two_processes_fixed(void)
{
    two_processes_look(1);
}

static const struct twin twins[] = {
    TWIN(data_larger_than_device),
    TWIN(smaller_type),
    TWIN(pool_keeps_memory),
    TWIN(two_processes),
};

TWINS_MAIN("06_error_cases/memory_cures", "the data does not fit, and still the work gets done",
           twins)
