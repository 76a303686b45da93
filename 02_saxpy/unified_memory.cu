// unified_memory: the same saxpy with five kinds of memory. The host fills x and y, the device
// computes, the host reads y; who moves the data, and when?
//
// Predict before you run it: managed memory needs no cudaMemcpy at all. Is it then faster or slower
// than explicit copies, and what does telling CUDA beforehand (prefetch) change?
//
// usage: unified_memory [--n SIZE] [--block N]
// sanitizer: --n 10003
#include "../common/lesson.h"

__global__ void saxpy(size_t n, float a, const float *x, float *y)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i] + y[i];
}

enum kind { PAGEABLE, PINNED, MANAGED, PREFETCHED, MAPPED, KINDS };

static const char *const kind_names[KINDS] = {
    "cudaMemcpy, malloc memory", "cudaMemcpy, pinned memory", "managed",
    "managed, prefetched",       "mapped (zero copy)",
};

// What the host uses, and what the kernel uses: for managed memory the two are the same.
struct memory {
    float *h_x, *h_y, *d_x, *d_y;
};

static const float a = 2.0f;

// Whole numbers below 2^24: float holds every result exactly.
static float x_at(size_t i)
{
    return (float)(1 + i % 2047);
}

static float y_at(size_t i)
{
    return (float)(i % 1021);
}

// Why this device cannot do it; NULL when it can.
static const char *why_not(enum kind kind)
{
    int managed = kind == MANAGED || kind == PREFETCHED;
    if (managed && !device_attribute(cudaDevAttrManagedMemory))
        return "this device has no managed memory";
    if (kind == PREFETCHED && !device_attribute(cudaDevAttrConcurrentManagedAccess))
        return "no prefetch here (concurrentManagedAccess = 0, as on WSL and Windows)";
    if (kind == MAPPED && !device_attribute(cudaDevAttrCanMapHostMemory))
        return "this device cannot map host memory";
    return NULL;
}

static struct memory allocate(enum kind kind, size_t bytes)
{
    struct memory m = {NULL, NULL, NULL, NULL};
    if (kind == PAGEABLE) {
        m.h_x = (float *)host_malloc(bytes);
        m.h_y = (float *)host_malloc(bytes);
    } else if (kind == PINNED) { // its pages stay where they are: the copy engine reads them itself
        CUDA_CHECK(cudaMallocHost(&m.h_x, bytes));
        CUDA_CHECK(cudaMallocHost(&m.h_y, bytes));
    } else if (kind == MAPPED) { // stays on the host; the kernel reaches it over the bus
        CUDA_CHECK(cudaHostAlloc(&m.h_x, bytes, cudaHostAllocMapped));
        CUDA_CHECK(cudaHostAlloc(&m.h_y, bytes, cudaHostAllocMapped));
        CUDA_CHECK(cudaHostGetDevicePointer(&m.d_x, m.h_x, 0));
        CUDA_CHECK(cudaHostGetDevicePointer(&m.d_y, m.h_y, 0));
    } else { // one pointer for both; the pages move to who touches them
        CUDA_CHECK(cudaMallocManaged(&m.h_x, bytes));
        CUDA_CHECK(cudaMallocManaged(&m.h_y, bytes));
        m.d_x = m.h_x;
        m.d_y = m.h_y;
    }
    if (kind == PAGEABLE || kind == PINNED) {
        CUDA_CHECK(cudaMalloc(&m.d_x, bytes));
        CUDA_CHECK(cudaMalloc(&m.d_y, bytes));
    }
    return m;
}

static void release(enum kind kind, struct memory m)
{
    if (kind == PAGEABLE) {
        free(m.h_x);
        free(m.h_y);
    } else if (kind == PINNED || kind == MAPPED) {
        CUDA_CHECK(cudaFreeHost(m.h_x));
        CUDA_CHECK(cudaFreeHost(m.h_y));
    }
    if (kind != MAPPED) { // for managed memory d_x is h_x
        CUDA_CHECK(cudaFree(m.d_x));
        CUDA_CHECK(cudaFree(m.d_y));
    }
}

// Moves managed pages now, in one go, instead of one page fault after the other.
static void prefetch(const float *memory, size_t bytes, int to_device)
{
    int id = to_device ? device_facts.id : cudaCpuDeviceId;
#if CUDART_VERSION >= 13000 // the argument became a struct that can also name a NUMA node
    struct cudaMemLocation place;
    place.type = to_device ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost;
    place.id = to_device ? id : 0;
    CUDA_CHECK(cudaMemPrefetchAsync(memory, bytes, place, 0, 0));
#else
    CUDA_CHECK(cudaMemPrefetchAsync(memory, bytes, id, 0));
#endif
}

// The part that is timed: from data on the host to a result on the host.
static void compute(enum kind kind, size_t n, int block, struct memory m)
{
    size_t bytes = n * sizeof(float);
    unsigned grid = (unsigned)((n + block - 1) / block);
    if (kind == PAGEABLE || kind == PINNED) {
        CUDA_CHECK(cudaMemcpy(m.d_x, m.h_x, bytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(m.d_y, m.h_y, bytes, cudaMemcpyHostToDevice));
    } else if (kind == PREFETCHED) {
        prefetch(m.d_x, bytes, 1);
        prefetch(m.d_y, bytes, 1);
    }
    saxpy<<<grid, block>>>(n, a, m.d_x, m.d_y);
    CUDA_CHECK_LAUNCH();
    if (kind == PAGEABLE || kind == PINNED)
        CUDA_CHECK(cudaMemcpy(m.h_y, m.d_y, bytes, cudaMemcpyDeviceToHost)); // waits by itself
    else if (kind == PREFETCHED)
        prefetch(m.h_y, bytes, 0);
    CUDA_CHECK_SYNC(); // without a copy nothing else waits: the host must, before it reads y
}

static volatile float sink; // keeps the reads below from being optimised away

static double measure(enum kind kind, size_t n, int block, double first_ms)
{
    int reps = common_options.reps;
    size_t page = (size_t)sysconf(_SC_PAGESIZE) / sizeof(float);
    double *samples = (double *)host_malloc((size_t)reps * sizeof(double));
    struct memory m = allocate(kind, n * sizeof(float));
    for (int rep = -1; rep < reps; rep++) { // the first one warms up
        for (size_t i = 0; i < n; i++) {    // takes the pages back to the host, and is not timed
            m.h_x[i] = x_at(i);
            m.h_y[i] = y_at(i);
        }
        double begin = host_seconds();
        compute(kind, n, block, m);
        for (size_t i = 0; i < n; i += page) // a managed page comes back when the host touches it
            sink = m.h_y[i];
        if (rep >= 0)
            samples[rep] = 1e3 * (host_seconds() - begin);
    }
    struct verifier v = verify_begin(kind_names[kind], 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, m.h_y[i], (double)a * x_at(i) + y_at(i));
    struct timing t = timing_of(samples, reps);
    report_extra(first_ms > 0 ? first_ms / t.median_ms : 1);
    report_time(kind_names[kind], t, verify_end(&v));
    release(kind, m);
    free(samples);
    return t.median_ms;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 24, 1 << 18);
    int block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, MAX_ELEMENTS, "elements"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "02_saxpy/unified_memory", "one saxpy, five kinds of memory", options);
    require_device_memory(n, 2 * sizeof(float), "--n");
    require_grid(n, block);

    double ms[KINDS] = {0};
    report_table("from host data to host result", "speed-up", NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        const char *reason = why_not((enum kind)kind);
        if (reason)
            printf("  %-32s left out: %s\n", kind_names[kind], reason);
        else
            ms[kind] = measure((enum kind)kind, n, block, ms[PAGEABLE]);
    }
    if (DEVICE_IS_CPU)
        printf("On the CPU backend all five are the same memory: only the copies differ.\n");
    else if (bus_limit_gbs() > 0 && n >= 1 << 17) // a megabyte: below it, latency decides
        printf(
            "x and y are %.0f MB: the bus alone needs %.3f ms to bring them (%.1f GB/s each way)\n",
            8e-6 * (double)n, 8e-6 * (double)n / bus_limit_gbs(), bus_limit_gbs());
    if (!DEVICE_IS_CPU && ms[MANAGED] > 0 && ms[PREFETCHED] > 0)
        printf("Managed memory takes %.1f times as long as pinned copies, prefetched %.1f times.\n",
               ms[MANAGED] / ms[PINNED], ms[PREFETCHED] / ms[PINNED]);
    return lesson_end();
}
