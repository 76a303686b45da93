// saxpy: the complete CUDA program. y = a*x + y for n floats, from allocation to verification, and
// where the time goes.
//
// Predict before you run it: the kernel reads x and y and writes y, 12 bytes an element; the copies
// move the same 12 bytes over the bus. Which of the three phases (copy in, kernel, copy back) takes
// longest, and by what factor?
//
// usage: saxpy [n]   (also --n; --block threads a block; --help)
// sanitizer: --n 10003
#include "../common/lesson.h"

__global__ void saxpy(size_t n, float a, const float *x, float *y)
{
    // size_t before the multiplication: blockIdx.x * blockDim.x alone is a 32-bit product
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) // the last block is rarely full
        y[i] = a * x[i] + y[i];
}

static const float a = 2.0f;

static float x_at(size_t i)
{
    return ((float)(i % 2048) - 1024.0f) * 0.5f;
}

static float y_at(size_t i)
{
    return (float)(i % 1024) - 512.0f;
}

// y after `launches` runs of the kernel. a*x and y are whole and below 2^24: exact in float.
static int verify_saxpy(const char *when, size_t n, const float *y, int launches)
{
    struct verifier v = verify_begin(when, 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, y[i], (double)launches * a * x_at(i) + y_at(i));
    return verify_end(&v);
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 20);
    int block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE(NULL, &n, 0, MAX_ELEMENTS, "elements, the same as --n"),
        OPTION_SIZE("n", &n, 0, MAX_ELEMENTS, "elements"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "02_saxpy/saxpy", "y = a*x + y, the complete program", options);
    if (n == 0) { // a grid needs at least one block: with nothing to do there is no launch
        printf("SUM=0\n");
        report_number("sum", 0);
        return lesson_end();
    }

    // 1. Memory: h_ is the host's, d_ the device's. Neither can follow the other's pointers.
    size_t bytes = n * sizeof(float);
    float *d_x, *d_y;
    require_device_memory(n, 2 * sizeof(float), "--n");
    require_grid(n, block);
    float *h_x = (float *)host_malloc(bytes), *h_y = (float *)host_malloc(bytes);
    float *h_result = (float *)host_malloc(bytes);
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    for (size_t i = 0; i < n; i++) {
        h_x[i] = x_at(i);
        h_y[i] = y_at(i);
        h_result[i] = NAN; // whatever the device does not write cannot pass as right
    }

    // 2. Copy in, launch enough blocks to cover n, copy back.
    unsigned grid = (unsigned)((n + block - 1) / block);
    CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_y, h_y, bytes, cudaMemcpyHostToDevice));
    saxpy<<<grid, block>>>(n, a, d_x, d_y);
    CUDA_CHECK_LAUNCH(); // was the launch accepted?
    CUDA_CHECK_SYNC();   // did the kernel run to its end?
    CUDA_CHECK(cudaMemcpy(h_result, d_y, bytes, cudaMemcpyDeviceToHost));

    // 3. Check every element, and print the sum that the homework asks for.
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += h_result[i];
    printf("n = %zu: %u blocks of %d threads, the last one with %zu of its threads at work\n", n,
           grid, block, n - (size_t)(grid - 1) * block);
    printf("SUM=%.0f\n", sum);
    report_number("sum", sum);
    int right = verify_saxpy("y after one launch", n, h_result, 1);

    // 4. Where the time goes. Each launch adds a*x once more; one launch is the warm-up.
    struct timing copy_in, kernel, copy_back;
    int reps = common_options.reps;
    MEASURE_GPU (kernel, reps) {
        saxpy<<<grid, block>>>(n, a, d_x, d_y);
        CUDA_CHECK_LAUNCH();
    }
    MEASURE_GPU (copy_back, reps) {
        CUDA_CHECK(cudaMemcpy(h_result, d_y, bytes, cudaMemcpyDeviceToHost));
    }
    right &= verify_saxpy("y after the timed launches", n, h_result, reps + 2);
    MEASURE_GPU (copy_in, reps) {
        CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(d_y, h_y, bytes, cudaMemcpyHostToDevice));
    }
    report_table("where the time goes", NULL);
    report_rate("copy in (x and y)", copy_in, 2.0 * bytes, "bytes", "GB/s", 1e9, bus_limit_gbs(),
                CHECK_NONE);
    report_bandwidth("kernel (reads x, y; writes y)", kernel, 3.0 * bytes, right);
    report_rate("copy back (y)", copy_back, 1.0 * bytes, "bytes", "GB/s", 1e9, bus_limit_gbs(),
                right);
    double total = copy_in.median_ms + kernel.median_ms + copy_back.median_ms;
    printf("copies and kernel: %.3f ms; the kernel is %.1f %% of it\n", total,
           100 * kernel.median_ms / total);

    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    free(h_x);
    free(h_y);
    free(h_result);
    return lesson_end();
}
