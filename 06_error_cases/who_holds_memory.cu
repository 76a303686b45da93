// who_holds_memory: memory that nobody here uses and that is not free: a pool keeps it, or another
// process has it.
//
// Predict before you run it: a pool of 256 MiB is freed to the last byte. Does another program see
// that memory as free?
//
// usage: who_holds_memory [CASE] [--fixed] [--really]
#include "small_pool.h"

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
    TWIN(pool_keeps_memory),
    TWIN(two_processes),
};

TWINS_MAIN("06_error_cases/who_holds_memory", "memory that is neither used here nor free", twins)
