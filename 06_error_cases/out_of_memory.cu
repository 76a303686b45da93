// out_of_memory: five ways to error 2, and what makes each go away.
//
// Predict before you run it: of 64 MiB, every second block of 1 MiB is free. Can 2 MiB be had?
//
// usage: out_of_memory [CASE] [--fixed]
#include "small_pool.h"

__global__ void fill(float *out, size_t n, float value)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = value;
}

// ---- too_large
static void too_large_broken(void)
{
    size_t free_bytes, total_bytes;
    void *d_all = NULL, *d_little = NULL;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (on_wsl())
        twin_waive("under WSL the driver pages to the host's memory instead of failing, and may "
                   "take Windows down with it");
    show_memory("before");
    printf("  asking for twice the device's memory, %.1f MiB\n", 2 * total_bytes / 1048576.0);
    RESULT(cudaMalloc(&d_all, 2 * total_bytes));
    show_memory("after");
    STEP(cudaGetLastError());          // still 2: it waits until it is read, and now it is
    STEP(cudaMalloc(&d_little, 1024)); // an out-of-memory is not sticky
    CUDA_CHECK(cudaFree(d_little));
}

static void too_large_fixed(void)
{
    size_t item_bytes = 16 * MIB, batch = 1024; // 16 GiB would be needed
    size_t budget = show_memory("before") / 4;  // leave room for others
    if (budget > 256 * MIB)
        budget = 256 * MIB;
    while (batch > 1 && batch * item_bytes > budget)
        batch /= 2; // a smaller batch, run more often
    float *d_batch;
    printf("  a batch of %zu items instead of 1024, %zu MiB\n", batch, batch * item_bytes / MIB);
    CUDA_CHECK(cudaMalloc(&d_batch, batch * item_bytes));
    show_memory("with the batch");
    CUDA_CHECK(cudaFree(d_batch));
    show_memory("after cudaFree");
}

// ---- leak
static const size_t step_bytes = 8 * MIB; // what one step of the loop needs

static void leak_broken(void)
{
    cudaMemPool_t pool = small_pool();
    cudaError_t error = cudaSuccess;
    for (size_t step = 1; error == cudaSuccess && step <= 100; step++) {
        float *d_scratch;
        error = cudaMallocFromPoolAsync((void **)&d_scratch, step_bytes, pool, 0);
        if (error == cudaSuccess)
            printf("  step %zu: took 8 MiB, %zu in use\n", step, step * step_bytes / MIB);
    } // d_scratch goes out of scope; its memory does not
    twin_result(error, "cudaMallocFromPoolAsync(&d_scratch, 8 MiB, pool, 0)");
    CUDA_CHECK(cudaMemPoolDestroy(pool));
}

static void leak_fixed(void)
{
    cudaMemPool_t pool = small_pool();
    float *d_scratch, first = 0;
    size_t n = step_bytes / sizeof(float);
    CUDA_CHECK(cudaMallocFromPoolAsync((void **)&d_scratch, step_bytes, pool, 0));
    for (int step = 0; step < 100; step++) // allocated once, before the loop: faster, too
        fill<<<(unsigned)((n + 255) / 256), 256>>>(d_scratch, n, (float)step);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&first, d_scratch, sizeof(first), cudaMemcpyDeviceToHost));
    check_that(first == 99, "the last step left %g", first);
    CUDA_CHECK(cudaFreeAsync(d_scratch, 0));
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemPoolDestroy(pool));
    printf("  100 steps in one buffer of 8 MiB\n");
}

// ---- fragmentation
// Fills the pool with blocks of 1 MiB, frees half of them, and asks for 2 MiB.
static cudaError_t two_mib_after_freeing_half(int every_second)
{
    cudaMemPool_t pool = small_pool();
    void *d_blocks[POOL_MIB], *d_two;
    for (int i = 0; i < POOL_MIB; i++)
        CUDA_CHECK(cudaMallocFromPoolAsync(&d_blocks[i], MIB, pool, 0));
    for (int i = 0; i < POOL_MIB; i++)
        if (every_second ? i % 2 : i < POOL_MIB / 2)
            CUDA_CHECK(cudaFreeAsync(d_blocks[i], 0));
    CUDA_CHECK_SYNC();
    printf("  %d blocks of 1 MiB taken, %s freed: %d MiB are free\n", POOL_MIB,
           every_second ? "every second one" : "the first half", POOL_MIB / 2);
    void *d_one;
    cudaError_t one = STEP(cudaMallocFromPoolAsync(&d_one, MIB, pool, 0));
    if (one == cudaSuccess)
        CUDA_CHECK(cudaFreeAsync(d_one, 0));
    return cudaMallocFromPoolAsync(&d_two, 2 * MIB, pool, 0);
}

static void fragmentation_broken(void)
{
    twin_result(two_mib_after_freeing_half(1), "cudaMallocFromPoolAsync(&d_two, 2 MiB, pool, 0)");
}

static void fragmentation_fixed(void)
{
    // What lives long stands together: the free memory is one piece.
    CUDA_CHECK(two_mib_after_freeing_half(0));
    printf("  2 MiB: found\n");
}

// ---- int_overflow
static const int rows = 23171, columns = 23171; // a matrix of 2.0 GiB: a little over 2^31 bytes

static void int_overflow_broken(void)
{
    float *d_matrix = NULL;
    // As unsigned, then int: what rows * columns * 4 gives in 32 bits on every GPU machine. (In C
    // the overflow of a signed product is undefined; the compiler says nothing.)
    int bytes = (int)((unsigned)rows * (unsigned)columns * 4u);
    printf("  int bytes = %d * %d * 4 = %d; as size_t that is %zu\n", rows, columns, bytes,
           (size_t)bytes);
    RESULT(cudaMalloc(&d_matrix, bytes));
    unsigned wrapped = 65536u * 65536u; // another size that wraps, to exactly 0
    printf("  unsigned bytes = 65536 * 65536 = %u, and now no error shows at all:\n", wrapped);
    STEP(cudaMalloc(&d_matrix, wrapped));
    printf("  ... with the pointer %p\n", (void *)d_matrix);
}

static void int_overflow_fixed(void)
{
    size_t bytes = (size_t)rows * columns * sizeof(float); // the first factor decides the width
    size_t chunk_rows = 64 * MIB / (columns * sizeof(float)) / 4;
    float *d_rows;
    printf("  size_t bytes = %zu; worked on in chunks of %zu rows, %zu bytes\n", bytes, chunk_rows,
           chunk_rows * columns * sizeof(float));
    CUDA_CHECK(cudaMalloc(&d_rows, chunk_rows * columns * sizeof(float)));
    CUDA_CHECK(cudaFree(d_rows));
    check_that(bytes / columns / sizeof(float) == (size_t)rows, "the size wrapped: %zu", bytes);
}

// ---- unread_error
static void unread_error_broken(void)
{
    float *d_huge = NULL, *d_small;
    size_t free_bytes, total_bytes;
    if (on_wsl())
        twin_waive("under WSL the driver pages to the host's memory instead of failing");
    CUDA_CHECK(cudaMalloc(&d_small, 256 * sizeof(float)));
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    cudaMalloc(&d_huge, 2 * total_bytes); // fails, and nobody looks
    fill<<<1, 256>>>(d_small, 256, 1.0f); // correct
    RESULT(cudaGetLastError());           // the check of the correct launch
    CUDA_CHECK(cudaFree(d_small));
}

static void unread_error_fixed(void)
{
    float *d_huge = NULL, *d_small, last = 0;
    size_t free_bytes, total_bytes;
    CUDA_CHECK(cudaMalloc(&d_small, 256 * sizeof(float)));
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    if (!on_wsl() && cudaMalloc(&d_huge, 2 * total_bytes) != cudaSuccess) { // looked at once ...
        printf("  the large allocation failed: going on with the small one\n");
        cudaGetLastError(); // ... and taken out of the way
    }
    fill<<<1, 256>>>(d_small, 256, 1.0f);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&last, d_small + 255, sizeof(last), cudaMemcpyDeviceToHost));
    check_that(last == 1, "the kernel wrote %g", last);
    CUDA_CHECK(cudaFree(d_small));
}

static const struct twin twins[] = {
    TWIN(too_large), TWIN(leak), TWIN(fragmentation), TWIN(int_overflow), TWIN(unread_error),
};

TWINS_MAIN("06_error_cases/out_of_memory", "five ways to error 2", twins)
