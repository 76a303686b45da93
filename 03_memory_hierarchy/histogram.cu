// histogram: how often does each byte value occur? Every thread must add to a counter that others
// add to as well. Atomic additions in global memory, then a private histogram for each block in
// shared memory, and what the data does to both.
//
// Predict before you run it: when all bytes are equal, every thread of the GPU adds to one counter.
// Which suffers more from that, the counters in global memory or the private ones?
//
// usage: histogram [--n bytes] [--file any-file] [--block threads]
// sanitizer: --n 100k
#include "../common/lesson.h"

enum { BINS = 256, VECTOR = 16 }; // bytes in a uint4

// Grid-stride: the grid has as many blocks as the device can hold, each thread takes many bytes.
__global__ void count_global(size_t n, const unsigned char *data, unsigned *bins)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        atomicAdd(&bins[data[i]], 1);
}

__global__ void count_private(size_t n, const unsigned char *data, unsigned *bins)
{
    __shared__ unsigned mine[BINS]; // of this block: only its threads compete for a counter
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        mine[b] = 0;
    __syncthreads(); // no thread may count before all counters are 0
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        atomicAdd(&mine[data[i]], 1);
    __syncthreads(); // ... nor hand them over before all have counted
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (mine[b])
            atomicAdd(&bins[b], mine[b]);
}

__device__ void count_word(unsigned *bins, unsigned word)
{
    for (int shift = 0; shift < 32; shift += 8)
        atomicAdd(&bins[word >> shift & 255], 1);
}

// The same with loads of 16 bytes: with 1-byte loads too few bytes are under way at once.
__global__ void count_private_wide(size_t n, const unsigned char *data, unsigned *bins)
{
    __shared__ unsigned mine[BINS];
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        mine[b] = 0;
    __syncthreads();
    size_t step = (size_t)gridDim.x * blockDim.x, quads = n / VECTOR;
    size_t first = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const uint4 *wide = (const uint4 *)data; // cudaMalloc aligns to 256 bytes
    for (size_t i = first; i < quads; i += step) {
        uint4 v = wide[i];
        count_word(mine, v.x);
        count_word(mine, v.y);
        count_word(mine, v.z);
        count_word(mine, v.w);
    }
    for (size_t i = quads * VECTOR + first; i < n; i += step) // the last n % 16 bytes
        atomicAdd(&mine[data[i]], 1);
    __syncthreads();
    for (int b = threadIdx.x; b < BINS; b += blockDim.x)
        if (mine[b])
            atomicAdd(&bins[b], mine[b]);
}

typedef void (*count_kernel)(size_t, const unsigned char *, unsigned *);

struct variant {
    const char *name;
    count_kernel kernel;
};

static const struct variant variants[] = {
    {"global atomics", count_global},
    {"private, shared memory", count_private},
    {"private, 16 bytes a load", count_private_wide},
};
enum { VARIANTS = 3 };

// All variants on one input: ms[VARIANTS] gets the medians.
static void show_input(const char *title, size_t n, const unsigned char *h_data,
                       unsigned char *d_data, int block, double *ms)
{
    unsigned *d_bins, h_bins[BINS];
    size_t expected[BINS] = {0};
    for (size_t i = 0; i < n; i++)
        expected[h_data[i]]++;
    CUDA_CHECK(cudaMalloc(&d_bins, sizeof(h_bins)));
    CUDA_CHECK(cudaMemcpy(d_data, h_data, n, cudaMemcpyHostToDevice));
    report_table(title, NULL);
    for (int k = 0; k < VARIANTS; k++) {
        int per_sm = 0;
        CUDA_CHECK(
            cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, variants[k].kernel, block, 0));
        unsigned grid = (unsigned)(device_facts.sm_count * (per_sm > 0 ? per_sm : 1));
        struct timing t;
        MEASURE_GPU (t, common_options.reps) {
            CUDA_CHECK(cudaMemsetAsync(d_bins, 0, sizeof(h_bins))); // 1 KiB: part of the work
            variants[k].kernel<<<grid, block>>>(n, d_data, d_bins);
            CUDA_CHECK_LAUNCH();
        }
        CUDA_CHECK(cudaMemcpy(h_bins, d_bins, sizeof(h_bins), cudaMemcpyDeviceToHost));
        struct verifier v = verify_begin(variants[k].name, 0, 0);
        for (int b = 0; b < BINS; b++)
            verify_value(&v, (size_t)b, h_bins[b], (double)expected[b]);
        ms[k] = t.median_ms;
        report_bandwidth(variants[k].name, t, (double)n, verify_end(&v)); // each byte is read once
    }
    CUDA_CHECK(cudaFree(d_bins));
}

// The whole file into memory; ends the program with one line when that is not possible.
static unsigned char *read_file(const char *path, size_t *n)
{
    size_t room = 1 << 20, used = 0, got;
    unsigned char *data = (unsigned char *)host_malloc(room);
    FILE *f = fopen(path, "rb");
    if (!f)
        lesson_exit(EXIT_FAILED, "--file %s: %s", path, strerror(errno));
    while ((got = fread(data + used, 1, room - used, f)) > 0) {
        used += got;
        if (used == room && !(data = (unsigned char *)realloc(data, room *= 2)))
            lesson_exit(EXIT_FAILED, "--file %s: no host memory for %zu bytes", path, room);
        if (used > UINT32_MAX) // the counters have 32 bits
            lesson_exit(EXIT_FAILED, "--file %s: larger than 4 GiB", path);
    }
    if (ferror(f))
        lesson_exit(EXIT_FAILED, "--file %s: %s", path, strerror(errno));
    if (used == 0)
        lesson_exit(EXIT_FAILED, "--file %s: the file is empty", path);
    fclose(f);
    *n = used;
    return data;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 27, 1 << 20);
    int block = 256;
    const char *path = NULL;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, UINT32_MAX, "bytes to count"),
        OPTION_TEXT("file", &path, "count the bytes of this file, instead of made-up data"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/histogram",
                 "counting byte values: atomics in global and in shared memory", options);
    unsigned char *h_data = path ? read_file(path, &n) : (unsigned char *)host_malloc(n), *d_data;
    require_device_memory(n, 1, path ? "--file" : "--n");
    CUDA_CHECK(cudaMalloc(&d_data, n));
    double spread[VARIANTS], one[VARIANTS];
    if (path) {
        show_input("the bytes of the file", n, h_data, d_data, block, spread);
        if (!DEVICE_IS_CPU)
            printf(
                "\nThe private histogram is %.0f times as fast as the global one (%.0f times with "
                "16-byte loads).\n",
                spread[0] / spread[1], spread[0] / spread[2]);
    } else {
        uint64_t random = 1;
        for (size_t i = 0; i < n; i++)
            h_data[i] = (unsigned char)(random_next(&random) >> 56);
        show_input("uniform: each value as often", n, h_data, d_data, block, spread);
        memset(h_data, 'A', n);
        show_input("one value: all bytes equal", n, h_data, d_data, block, one);
        if (DEVICE_IS_CPU) {
            printf(
                "\nThe counts are right; the times of a CPU say nothing about a GPU's atomics.\n");
        } else {
            printf(
                "\nOne value instead of uniform data: global atomics take %.1f times as long, the "
                "private ones %.1f times.\nOn the one value the private histogram is %.0f times as "
                "fast as the global one (%.0f times with 16-byte loads).\n",
                one[0] / spread[0], one[1] / spread[1], one[0] / one[1], one[0] / one[2]);
            report_number("private_over_global_one_value", one[0] / one[1]);
            report_number("private_over_global_uniform", spread[0] / spread[1]);
        }
    }
    CUDA_CHECK(cudaFree(d_data));
    free(h_data);
    return lesson_end();
}
