// occupancy: an SM holds as many blocks as its threads, registers, shared memory and block slots
// allow. Here shared memory a block grows, so that fewer and fewer blocks fit; the number is
// predicted by hand from the limits, then by the occupancy API, and the bandwidth that follows is
// measured.
//
// Predict before you run it: each thread has one load under way at a time. With half the threads an
// SM can hold, is the bandwidth half? And when each load brings 16 bytes instead of 4?
//
// usage: occupancy [--n floats] [--block threads]
// sanitizer: --n 100k
#include "../common/lesson.h"

enum { WARP_SIZE = 32 };

// unroll 1: exactly one load under way in each thread, so that the bytes in flight can be counted.
__global__ void sum_float(size_t n, const float *x, float *sums)
{
    extern __shared__ float unused[]; // only there to take up room
    size_t step = (size_t)gridDim.x * blockDim.x,
           thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (size_t i = thread; i < n; i += step)
        sum += x[i];
    sums[thread] = sum;
}

__global__ void sum_float4(size_t n, const float *x, float *sums)
{
    extern __shared__ float unused[];
    const float4 *x4 = (const float4 *)x;
    size_t step = (size_t)gridDim.x * blockDim.x,
           thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
#pragma unroll 1
    for (size_t i = thread; i < n / 4; i += step) {
        float4 v = x4[i];
        sum += v.x + v.y + v.z + v.w;
    }
    for (size_t i = n / 4 * 4 + thread; i < n; i += step)
        sum += x[i];
    sums[thread] = sum;
}

typedef void (*sum_kernel)(size_t, const float *, float *);

struct limits { // of one SM, read from the device
    int threads, blocks, registers, shared, shared_reserved, shared_block;
};

static struct limits read_limits(void)
{
    struct limits l;
    l.threads = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
    l.blocks = device_attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    l.registers = device_attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
    l.shared = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    l.shared_reserved = device_attribute(cudaDevAttrReservedSharedMemoryPerBlock);
    l.shared_block = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    return l;
}

static int round_up(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

// Shared memory is handed out in units of 128 bytes from compute capability 8.0 on, 256 before.
static int shared_unit(void)
{
    return device_facts.major >= 8 ? 128 : 256;
}

// Blocks that fit on one SM, worked out by hand.
static int predict_blocks(struct limits l, int block, int registers, int shared)
{
    enum { REGISTER_UNIT = 256, SUB_PARTITIONS = 4 }; // registers come in 256s, a warp at a time
    int warps = (block + WARP_SIZE - 1) / WARP_SIZE;
    int by_threads = l.threads / (warps * WARP_SIZE);
    // A quarter of the register file belongs to each of the four schedulers, and so do its warps.
    int a_warp = round_up(registers * WARP_SIZE, REGISTER_UNIT); // 0: not known
    int warps_a_quarter = a_warp ? l.registers / SUB_PARTITIONS / a_warp : 0;
    int by_registers = a_warp ? warps_a_quarter * SUB_PARTITIONS / warps : l.blocks;
    int a_block = round_up(shared + l.shared_reserved, shared_unit());
    int by_shared = a_block ? l.shared / a_block : l.blocks;
    return least(least(by_threads, by_registers), least(by_shared, l.blocks));
}

// The most dynamic shared memory with which `blocks` blocks still fit.
static int shared_for(struct limits l, int blocks)
{
    int room = l.shared / blocks / shared_unit() * shared_unit() - l.shared_reserved;
    return least(room, l.shared_block);
}

static struct {
    size_t n;
    int block;
    const float *d_x;
    float *d_sums, *h_sums;
    double expected;
} data;

// One row; returns the seconds that the bytes in flight are on their way: Little's law.
static double show_blocks(sum_kernel kernel, struct limits l, int shared, int load_bytes,
                          double *best_gbs)
{
    cudaFuncAttributes attributes;
    CUDA_CHECK(cudaFuncGetAttributes(&attributes, kernel));
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    // The SM divides one memory between L1 and shared: ask for all of it.
    CUDA_CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                    cudaSharedmemCarveoutMaxShared));
    int by_hand = predict_blocks(l, data.block, attributes.numRegs, shared), by_api = 0;
    CUDA_CHECK(
        cudaOccupancyMaxActiveBlocksPerMultiprocessor(&by_api, kernel, data.block, (size_t)shared));
    check_that(by_hand == by_api, "%d bytes: %d blocks by hand, %d by the API", shared, by_hand,
               by_api);

    unsigned grid = (unsigned)(device_facts.sm_count * (by_api > 0 ? by_api : 1));
    size_t threads = (size_t)grid * data.block;
    POISON_DEVICE(data.d_sums, threads * sizeof(float));
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        kernel<<<grid, data.block, shared>>>(data.n, data.d_x, data.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(
        cudaMemcpy(data.h_sums, data.d_sums, threads * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (size_t i = 0; i < threads; i++)
        sum += data.h_sums[i];
    // Partial sums below 2^24 are exact; beyond that (a huge --n on a small device) they are
    // rounded.
    int right = check_that(fabs(sum - data.expected) <= 1e-5 * data.expected,
                           "%d bytes: the sum is %.0f, expected %.0f", shared, sum, data.expected);

    double bytes = (double)data.n * sizeof(float), rate = bytes / (t.median_ms * 1e-3);
    double in_flight = (double)threads * load_bytes;
    report_extra(shared / 1024.0);
    report_extra(by_hand);
    report_extra(by_api);
    report_extra(in_flight / device_facts.sm_count / 1024);
    char name[64];
    snprintf(name, sizeof(name), "%.0f %% of the threads, %s a load",
             100.0 * by_api * data.block / l.threads, load_bytes == 4 ? "float" : "float4");
    report_bandwidth(name, t, bytes, right);
    if (rate / 1e9 > *best_gbs)
        *best_gbs = rate / 1e9;
    return in_flight / rate;
}

int main(int argc, char **argv)
{
    data.n = default_size(1 << 27, 1 << 20);
    data.block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &data.n, 1, 1 << 30, "floats to read"),
        OPTION_INT("block", &data.block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/occupancy",
                 "blocks on an SM, predicted and counted, and the bandwidth that follows", options);
    struct limits l = read_limits();
    printf("an SM has room for %d threads, %d blocks, %d registers, %.0f KiB shared memory; %d "
           "bytes of it "
           "are\nreserved in each block, which may have %.0f KiB\n",
           l.threads, l.blocks, l.registers, l.shared / 1024.0, l.shared_reserved,
           l.shared_block / 1024.0);

    size_t bytes = data.n * sizeof(float),
           most = (size_t)device_facts.sm_count * (l.threads + 1024);
    float *h_x = (float *)host_malloc(bytes), *d_x;
    data.h_sums = (float *)host_malloc(most * sizeof(float));
    require_device_memory(data.n + most, sizeof(float), "--n");
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&data.d_sums, most * sizeof(float)));
    for (size_t i = 0; i < data.n; i++) { // not constant, and small whole numbers
        h_x[i] = (float)(i * 7 % 13);
        data.expected += h_x[i];
    }
    CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    data.d_x = d_x;

    const sum_kernel kernels[] = {sum_float, sum_float4};
    const char *const titles[] = {"4-byte loads; KiB/SM: in flight",
                                  "16-byte loads; KiB/SM: in flight"};
    double seconds[2] = {0, 0}, best_gbs = 0;
    int warps = (data.block + WARP_SIZE - 1) / WARP_SIZE;
    int full = least(l.threads / (warps * WARP_SIZE), l.blocks);
    for (int k = 0; k < 2; k++) {
        report_table(titles[k], "KiB/blk", "by hand", "by API", "KiB/SM", NULL);
        for (int blocks = full; blocks >= 1; blocks -= blocks > 4 ? (blocks + 3) / 4 : 1) {
            int shared = blocks == full ? 0 : shared_for(l, blocks);
            if (shared >= 0)
                seconds[k] = show_blocks(kernels[k], l, shared, k ? 16 : 4, &best_gbs);
        }
    }
    // With one block an SM nothing queues: bytes in flight / bandwidth is the pure latency.
    if (DEVICE_IS_CPU) {
        printf(
            "\nThe sums are right; occupancy by hand is computed from the limits that the CPU "
            "backend "
            "states.\nA CPU hides latency in other ways: its times say nothing about occupancy.\n");
    } else {
        double limit = device_facts.memory_limit_gbs > 0 ? device_facts.memory_limit_gbs : best_gbs;
        double needed = limit * 1e9 * seconds[0];
        printf("\nLittle's law: bytes in flight = latency x bandwidth = %.0f ns x %.0f GB/s = %.2f "
               "MB, or "
               "%.1f KiB an SM.\n",
               seconds[0] * 1e9, limit, needed / 1e6, needed / device_facts.sm_count / 1024);
        printf("With 4-byte loads a full SM has %.1f KiB in flight; wider or more loads a thread "
               "bring the "
               "rest, not more threads.\n",
               l.threads * 4 / 1024.0);
        report_number("little_latency_ns", seconds[0] * 1e9);
        report_number("little_bytes_needed", needed);
        report_number("best_gbs", best_gbs);
    }
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(data.d_sums));
    free(h_x);
    free(data.h_sums);
    return lesson_end();
}
