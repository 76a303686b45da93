// reduction: the sum of n floats, five ways. A block adds its elements as a tree; the ways differ in
// which threads do the adding and how the elements are fetched.
//
// Predict before you run it: the elements are spread evenly over [0, 1). A loop that adds 2^28 of them
// one after another in float: how large is its sum?
//
// usage: reduction [--n N]   (--help)
// sanitizer: --n 10003
#include "../common/cub_sum.h"
#include "../common/lesson.h"

enum { BLOCK = 256, WARP = 32 };
enum { WIDE_BLOCK = 256, LOADS = 4 }; // loads: float4s a thread has under way

// One sum a block in out[blockIdx.x]. A tree whose step doubles: the active threads are 0, 2, 4 ...,
// then 0, 4, 8 ...: every warp stays busy with few of its lanes.
__global__ void interleaved(size_t n, const float *in, float *out)
{
    __shared__ float part[BLOCK];
    unsigned t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * BLOCK + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = 1; step < BLOCK; step *= 2) {
        if (t % (2 * step) == 0)
            part[t] += part[t + step];
        __syncthreads(); // outside of the if: every thread of the block must arrive
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// The same tree the other way round: the active threads are the first half, then the first quarter.
// Whole warps fall idle, and neighbours read neighbours.
__global__ void sequential(size_t n, const float *in, float *out)
{
    __shared__ float part[BLOCK];
    unsigned t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * BLOCK + t;
    part[t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned step = BLOCK / 2; step > 0; step /= 2) {
        if (t < step)
            part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// Half of the threads of `sequential` only load. Here each adds two elements while loading.
__global__ void first_add(size_t n, const float *in, float *out)
{
    __shared__ float part[BLOCK];
    unsigned t = threadIdx.x;
    size_t i = (size_t)blockIdx.x * BLOCK * 2 + t;
    part[t] = (i < n ? in[i] : 0) + (i + BLOCK < n ? in[i + BLOCK] : 0);
    __syncthreads();
    for (unsigned step = BLOCK / 2; step > 0; step /= 2) {
        if (t < step)
            part[t] += part[t + step];
        __syncthreads();
    }
    if (t == 0)
        out[blockIdx.x] = part[0];
}

// The sum over the block of one value a thread; complete in thread 0. Within a warp the values pass
// from register to register: no shared memory, no barrier. One barrier is left of the tree's nine.
static __device__ float block_sum(float value)
{
    __shared__ float warp_sums[WARP];
    unsigned lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    for (int step = WARP / 2; step > 0; step /= 2)
        value += __shfl_down_sync(0xffffffff, value, step);
    if (lane == 0)
        warp_sums[warp] = value;
    __syncthreads(); // the first warp reads what the others wrote
    if (warp == 0) {
        value = lane < blockDim.x / WARP ? warp_sums[lane] : 0;
        for (int step = WARP / 2; step > 0; step /= 2)
            value += __shfl_down_sync(0xffffffff, value, step);
    }
    return value;
}

__global__ void shuffles(size_t n, const float *in, float *out)
{
    size_t i = (size_t)blockIdx.x * BLOCK * 2 + threadIdx.x;
    float sum = block_sum((i < n ? in[i] : 0) + (i + BLOCK < n ? in[i + BLOCK] : 0));
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

// As many blocks as fit, each walks through the whole array; LOADS independent 16-byte loads a thread
// are under way at a time. One atomicAdd a block: out[0] must be 0 before.
__global__ void grid_stride(size_t n, const float *in, float *out)
{
    const float4 *in4 = (const float4 *)in;
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t step = (size_t)gridDim.x * blockDim.x, n4 = n / 4;
    float sum = i < n % 4 ? in[n - 1 - i] : 0; // what is left over when n is not divisible by 4
    for (; i + (LOADS - 1) * step < n4; i += LOADS * step) {
        float4 v[LOADS];
        for (int l = 0; l < LOADS; l++)
            v[l] = in4[i + l * step];
        for (int l = 0; l < LOADS; l++)
            sum += (v[l].x + v[l].y) + (v[l].z + v[l].w);
    }
    for (; i < n4; i += step)
        sum += (in4[i].x + in4[i].y) + (in4[i].z + in4[i].w);
    sum = block_sum(sum);
    if (threadIdx.x == 0)
        atomicAdd(out, sum);
}

enum { STEPS = 5 };
struct step {
    const char *name;
    void (*run)(size_t n, const float *in, float *out);
    size_t per_block; // elements a block takes; 0: any number of blocks, one launch is enough
};
static const struct step steps[STEPS] = {
    {"interleaved, divergent", interleaved, BLOCK},      {"sequential", sequential, BLOCK},
    {"first add while loading", first_add, 2 * BLOCK},   {"warp shuffles", shuffles, 2 * BLOCK},
    {"grid stride, float4, one atomic", grid_stride, 0},
};

// Launches until one sum is left; returns where it lies. Each launch leaves one sum a block, and the
// next takes them as its elements; the two halves of `work` take turns as its output.
static const float *launch_sum(const struct step *s, size_t n, const float *in, float *work,
                               size_t half)
{
    if (s->per_block == 0) {
        int blocks = 0;
        CUDA_CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, s->run, WIDE_BLOCK, 0));
        CUDA_CHECK(cudaMemsetAsync(work, 0, sizeof(float))); // also part of the work, also timed
        s->run<<<(unsigned)(blocks * device_facts.sm_count), WIDE_BLOCK>>>(n, in, work);
        CUDA_CHECK_LAUNCH();
        return work;
    }
    for (float *out = work;; out = out == work ? work + half : work) {
        size_t blocks = (n + s->per_block - 1) / s->per_block;
        s->run<<<(unsigned)blocks, BLOCK>>>(n, in, out);
        CUDA_CHECK_LAUNCH();
        if (blocks == 1)
            return out;
        in = out;
        n = blocks;
    }
}

static float sum_on_device(const struct step *s, size_t n, const float *in, float *work,
                           size_t half)
{
    float sum = NAN;
    POISON_DEVICE(work, 2 * half * sizeof(float));
    const float *at = launch_sum(s, n, in, work, half);
    CUDA_CHECK(cudaMemcpy(&sum, at, sizeof(float), cudaMemcpyDeviceToHost));
    return sum;
}

// Whole numbers from -4 to 4: every sum of them here is exact in float, in any order. One element
// too few or too many shows, which in a rounded sum of millions it would not.
static void check_exact(size_t n, float *h_in, float *d_in, float *work, size_t half)
{
    double sum = 0;
    fill_random(h_in, n, 3);
    for (size_t i = 0; i < n; i++) {
        h_in[i] = rintf(4 * h_in[i]);
        sum += h_in[i];
    }
    CUDA_CHECK(cudaMemcpy(d_in, h_in, n * sizeof(float), cudaMemcpyHostToDevice));
    for (int i = 0; i < STEPS; i++) {
        float got = sum_on_device(&steps[i], n, d_in, work, half);
        check_that(got == sum, "%s: the sum of whole numbers is %.9g, expected %.9g", steps[i].name,
                   got, sum);
    }
}

// How many different results do `runs` runs on the same data give?
static int different_results(const struct step *s, size_t n, const float *in, float *work,
                             size_t half)
{
    enum { RUNS = 20 };
    float seen[RUNS];
    int count = 0;
    for (int run = 0; run < RUNS; run++) {
        float sum = sum_on_device(s, n, in, work, half);
        int known = 0;
        for (int i = 0; i < count; i++)
            known |= seen[i] == sum;
        if (!known)
            seen[count++] = sum;
    }
    printf("%-34s %d different result%s in %d runs\n", s->name, count, count == 1 ? "" : "s", RUNS);
    return count;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 14);
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 0, (size_t)1 << 38, "floats to add"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "04_shared_tiling/reduction", "the sum of n floats", options);
    if (n == 0) {
        printf("no elements: the sum is 0\n");
        return lesson_end();
    }
    size_t half = (n + BLOCK - 1) / BLOCK, cub_bytes = 0; // half: room for one sum a block
    require_device_memory(n + 2 * half, sizeof(float), "--n");
    float *h_in = (float *)host_malloc(n * sizeof(float)), *d_in, *d_work, *d_cub;
    CUDA_CHECK(cudaMalloc(&d_in, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_work, 2 * half * sizeof(float)));
    check_exact(n, h_in, d_in, d_work, half);

    double exact = 0;
    float one_by_one = 0;
    fill_random(h_in, n, 4);
    for (size_t i = 0; i < n; i++) {
        h_in[i] = 0.5f + 0.5f * h_in[i]; // [0, 1)
        exact += h_in[i];
        one_by_one += h_in[i];
    }
    CUDA_CHECK(cudaMemcpy(d_in, h_in, n * sizeof(float), cudaMemcpyHostToDevice));

    struct timing times[STEPS], cub = {0, 0, 0, 0};
    report_table("kernel", "rel. error", NULL);
    for (int i = 0; i < STEPS; i++) {
        const float *result = NULL;
        float sum = NAN;
        POISON_DEVICE(d_work, 2 * half * sizeof(float));
        MEASURE_GPU (times[i], common_options.reps)
            result = launch_sum(&steps[i], n, d_in, d_work, half);
        CUDA_CHECK(cudaMemcpy(&sum, result, sizeof(float), cudaMemcpyDeviceToHost));
        double error = fabs(sum - exact) / exact;
        report_extra(error);
        report_bandwidth(steps[i].name, times[i], (double)n * sizeof(float),
                         check_that(error <= 1e-5, "%s: the sum is %.9g, in double %.9g",
                                    steps[i].name, sum, exact));
    }
    cub_sum(NULL, &cub_bytes, d_in, d_work, n);
    CUDA_CHECK(cudaMalloc(&d_cub, cub_bytes));
    if (!cub_sum_why_not()) {
        float sum = NAN;
        POISON_DEVICE(d_work, sizeof(float));
        MEASURE_GPU (cub, common_options.reps)
            cub_sum(d_cub, &cub_bytes, d_in, d_work, n);
        CUDA_CHECK(cudaMemcpy(&sum, d_work, sizeof(float), cudaMemcpyDeviceToHost));
        report_extra(fabs(sum - exact) / exact);
        report_bandwidth("CUB DeviceReduce::Sum", cub, (double)n * sizeof(float), CHECK_NONE);
        printf("the last kernel takes %.1f %% of CUB's time\n",
               100 * times[STEPS - 1].median_ms / cub.median_ms);
    } else {
        printf("  %-32s %s\n", "CUB DeviceReduce::Sum", cub_sum_why_not());
    }

    printf("\nthe order of the additions\n");
    printf("%-34s %.9g\n", "in double", exact);
    printf("%-34s %.9g, off by %.3g %%\n", "one by one in float, on the host", one_by_one,
           100 * fabs(one_by_one - exact) / exact);
    check_that(different_results(&steps[STEPS - 2], n, d_in, d_work, half) == 1,
               "a tree adds in a fixed order, yet the results differ");
    int results = different_results(&steps[STEPS - 1], n, d_in, d_work, half);
    report_number("results with atomics", results);
    report_number("one by one relative error", fabs(one_by_one - exact) / exact);
    printf("A tree adds numbers of like size, and always in the same order. %s\n",
           results > 1
               ? "The blocks' atomics arrive in any\norder: float addition is not "
                 "associative, so the last digits change from run to run."
               : "The blocks' atomics may\narrive in any order; here that changed nothing.");

    CUDA_CHECK(cudaFree(d_cub));
    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_work));
    free(h_in);
    return lesson_end();
}
