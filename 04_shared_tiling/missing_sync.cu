// missing_sync: what happens without __syncthreads(). Each block reverses its elements through shared
// memory: thread t writes tile[t] and reads tile[BLOCK - 1 - t], which another warp has written. Or
// has not written yet.
//
// Such a kernel is often right by luck. Here the fault is made to show every time: the tile is
// poisoned with NaN before, and one warp is late. The fault is the lesson: this program ends with 0
// when the wrong kernel is wrong and its twin with the barrier is right.
//
// Predict before you run it: warp 2 (threads 64 to 95 of 256) is late. Which positions of the result
// are lost? And does warp 2 itself get the right values?
//
// usage: missing_sync [--blocks N] [--late WARP]   (--help)
// sanitizer: --blocks 2
#include "../common/lesson.h"

enum { BLOCK = 256, WARP = 32, WARPS = BLOCK / WARP };
enum { CYCLES = 20000 }; // far longer than it takes the punctual warps to write their 32 floats

// Comes back after that many cycles of the SM's clock, whatever happens: no waiting for each other.
static __device__ void wait_cycles(long long cycles)
{
    long long begin = clock64();
    while (clock64() - begin < cycles) {
    }
}

template <bool BARRIER>
__global__ void reverse_blocks(size_t n, int late_warp, const float *in, float *out)
{
    // volatile: the compiler reads and writes the tile exactly where this says so. It orders nothing
    // between threads and does not replace the barrier.
    __shared__ volatile float tile[BLOCK];
    int t = threadIdx.x, warp = t / WARP;
    size_t i = (size_t)blockIdx.x * BLOCK + t;
    float value = i < n ? in[i] : 0;
    tile[t] = NAN;
    __syncthreads(); // the poison is complete before the first value goes in

    if (warp == late_warp)
        wait_cycles(4 * CYCLES);
    tile[t] = value;
    if (BARRIER)
        __syncthreads(); // the one line of this lesson
    else if (warp != late_warp)
        wait_cycles(CYCLES); // "it worked when I put a delay there": for all but the late warp
    float mirrored = tile[BLOCK - 1 - t];

    if (i < n)
        out[i] = mirrored;
}

// Position p of a block was lost when it came out as NaN, and right when it is the mirrored input.
// Returns the number of positions lost in every block, and marks them.
static int find_lost(size_t n, const float *in, const float *out, int lost[BLOCK], size_t *wrong)
{
    int count = 0;
    *wrong = 0;
    for (int p = 0; p < BLOCK; p++)
        lost[p] = 1;
    for (size_t i = 0; i < n; i++) {
        int right = out[i] == in[i / BLOCK * BLOCK + (BLOCK - 1 - i % BLOCK)];
        *wrong += !right;
        if (right)
            lost[i % BLOCK] = 0;
    }
    for (int p = 0; p < BLOCK; p++)
        count += lost[p];
    return count;
}

static void print_positions(const char *what, const int lost[BLOCK], int wanted)
{
    printf("%s", what);
    int ranges = 0;
    for (int p = 0; p < BLOCK; p++) {
        if (lost[p] != wanted || (p > 0 && lost[p - 1] == wanted))
            continue;
        int end = p;
        while (end + 1 < BLOCK && lost[end + 1] == wanted)
            end++;
        printf("%s%d to %d", ranges++ ? ", " : " ", p, end);
    }
    printf("%s\n", ranges ? "" : " none");
}

int main(int argc, char **argv)
{
    size_t blocks = default_size(1024, 16);
    int late = 2;
    const struct option_spec options[] = {
        OPTION_SIZE("blocks", &blocks, 0, 1 << 20, "blocks of 256 elements"),
        OPTION_INT("late", &late, 0, WARPS - 1, "the warp that is late"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "04_shared_tiling/missing_sync", "a forgotten barrier", options);
    if (blocks == 0) {
        printf("no blocks: nothing to do\n");
        return lesson_end();
    }
    size_t n = blocks * BLOCK, bytes = n * sizeof(float), wrong;
    int lost[BLOCK];
    require_device_memory(n, 2 * sizeof(float), "--blocks");
    float *h_in = (float *)host_malloc(bytes), *h_out = (float *)host_malloc(bytes), *d_in, *d_out;
    fill_random(h_in, n, 1);
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));

    POISON_DEVICE(d_out, bytes);
    reverse_blocks<false><<<(unsigned)blocks, BLOCK>>>(n, late, d_in, d_out);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost));
    int count = find_lost(n, h_in, h_out, lost, &wrong);
    printf("\nwithout the barrier: %zu of %zu elements are wrong (expected: this is the lesson)\n",
           wrong, n);
    print_positions("  lost in every block: positions", lost, 1);
    print_positions("  right at least once: positions", lost, 0);
    check_that(count > 0, "the kernel without the barrier lost nothing this time");
    report_number("wrong without barrier", (double)wrong);
    report_number("positions lost in every block", count);
    if (DEVICE_IS_CPU) {
        printf("Why: the CPU backend runs the threads of a block one after another. Thread t finds "
               "what the\nthreads before it have written: the second half of the block reads the "
               "first half, and is right.\n");
        report_number("first lost", 0);
    } else {
        int first = BLOCK - WARP * (late + 1);
        printf(
            "Why: warp %d writes tile[%d..%d] late. Positions %d to %d read just that, before it "
            "is there.\nAll other positions read what punctual warps have written. Warp %d, "
            "reading last, is right itself.\n",
            late, late * WARP, late * WARP + WARP - 1, first, first + WARP - 1, late);
        report_number("first lost", first);
    }

    POISON_DEVICE(d_out, bytes);
    reverse_blocks<true><<<(unsigned)blocks, BLOCK>>>(n, late, d_in, d_out);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost));
    find_lost(n, h_in, h_out, lost, &wrong);
    printf("\nwith __syncthreads(): %zu of %zu elements are wrong; warp %d is as late as before\n",
           wrong, n, late);
    check_that(wrong == 0, "the kernel with the barrier: %zu of %zu elements are wrong", wrong, n);
    report_number("wrong with barrier", (double)wrong);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    free(h_in);
    free(h_out);
    return lesson_end();
}
