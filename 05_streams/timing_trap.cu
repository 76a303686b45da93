// timing_trap: a kernel launch returns before the kernel has run. One kernel, three ways to time
// it, one wrong; then the first launch against the second, and a kernel whose text nobody sees.
//
// Predict before you run it: a clock read before and after the launch alone would show what
// bandwidth? More, or less, than the memory of this GPU can deliver?
//
// usage: timing_trap [--n 64M] [--block 256]
// sanitizer: --n 64k
#include "../common/lesson.h"
#include <sys/wait.h>

__global__ void scale(size_t n, float a, const float *x, float *y)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = a * x[i];
}

__global__ void speak(void)
{
    printf("the kernel speaks\n");
}

enum { PRINT_NO, PRINT_AND_LEAVE, PRINT_AND_WAIT };

// The whole of the program when it is started with --print: launch, and wait or leave.
static int print_from_kernel(int mode)
{
    speak<<<1, 1>>>();
    CUDA_CHECK_LAUNCH();
    if (mode == PRINT_AND_WAIT)
        CUDA_CHECK_SYNC();
    return lesson_end();
}

// Runs this program again with --print, because a program that leaves cannot report what was
// lost. Counts the lines that the kernel printed.
static int lines_printed(const char *mode)
{
    int ends[2], status = 0, lines = 0;
    char device[16], text[512] = "it printed nothing";
    snprintf(device, sizeof(device), "%d", common_options.device);
    if (pipe(ends) != 0)
        lesson_exit(EXIT_FAILED, "pipe: %s", strerror(errno));
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) { // no CUDA call between fork and exec: the child's context is not its own
        dup2(ends[1], STDOUT_FILENO);
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        execl("/proc/self/exe", "timing_trap", "--print", mode, "--device", device, (char *)NULL);
        _exit(EXIT_FAILED);
    }
    close(ends[1]);
    FILE *output = fdopen(ends[0], "r");
    if (child < 0 || !output)
        lesson_exit(EXIT_FAILED, "cannot start a child process: %s", strerror(errno));
    while (fgets(text, sizeof(text), output))
        lines += strcmp(text, "the kernel speaks\n") == 0;
    fclose(output);
    waitpid(child, &status, 0);
    check_that(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OK, "--print %s failed: %.*s", mode,
               (int)strcspn(text, "\n"), text);
    return lines;
}

static int verify_scale(size_t n, float a, const float *h_x, float *h_y, const float *d_y)
{
    CUDA_CHECK(cudaMemcpy(h_y, d_y, n * sizeof(float), cudaMemcpyDeviceToHost));
    struct verifier v = verify_begin("y", 0, 0); // a single product of powers of two: exact
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, h_y[i], (double)a * h_x[i]);
    return verify_end(&v);
}

int main(int argc, char **argv)
{
    size_t n = default_size(64 << 20, 1 << 20);
    int block = 256, print = PRINT_NO, reps;
    const float a = 0.5f;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, MAX_ELEMENTS, "elements"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_CHOICE("print", &print, "no|leave|wait", "only print from a kernel, then do this"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/timing_trap", "three ways to time, one wrong", options);
    if (print != PRINT_NO)
        return print_from_kernel(print);

    size_t bytes = n * sizeof(float);
    float *d_x, *d_y;
    require_device_memory(n, 2 * sizeof(float), "--n");
    require_grid(n, block);
    float *h_x = (float *)host_malloc(bytes), *h_y = (float *)host_malloc(bytes);
    fill_random(h_x, n, 1);
    CUDA_CHECK(cudaMalloc(&d_x, bytes));
    CUDA_CHECK(cudaMalloc(&d_y, bytes));
    CUDA_CHECK(cudaMemcpy(d_x, h_x, bytes, cudaMemcpyHostToDevice));
    POISON_DEVICE(d_y, bytes);
    CUDA_CHECK_SYNC();
    unsigned grid = (unsigned)((n + block - 1) / block);

    // The first launch also loads the kernel's code onto the device: never report it.
    double launch_ms[2];
    for (int launch = 0; launch < 2; launch++) {
        double start = host_seconds();
        scale<<<grid, block>>>(n, a, d_x, d_y);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK_SYNC();
        launch_ms[launch] = 1e3 * (host_seconds() - start);
    }
    int ok = verify_scale(n, a, h_x, h_y, d_y);
    POISON_DEVICE(d_y, bytes);

    struct timing unsynced, synced, events;
    double *samples_ms = (double *)host_malloc((size_t)common_options.reps * sizeof(double));
    for (reps = 0; reps < common_options.reps; reps++) { // 1. the trap
        CUDA_CHECK_SYNC();
        double start = host_seconds();
        scale<<<grid, block>>>(n, a, d_x, d_y);
        samples_ms[reps] = 1e3 * (host_seconds() - start); // the kernel is still running
        CUDA_CHECK_LAUNCH();
    }
    unsynced = timing_of(samples_ms, reps);
    MEASURE_HOST (synced, reps) { // 2. the host's clock, after waiting
        scale<<<grid, block>>>(n, a, d_x, d_y);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK_SYNC();
    }
    MEASURE_GPU (events, reps) { // 3. events, recorded by the device itself
        scale<<<grid, block>>>(n, a, d_x, d_y);
        CUDA_CHECK_LAUNCH();
    }
    ok &= verify_scale(n, a, h_x, h_y, d_y);

    report_table("the same kernel", NULL);
    report_bandwidth("host clock, no synchronise", unsynced, 2.0 * bytes, ok);
    report_bandwidth("host clock and synchronise", synced, 2.0 * bytes, ok);
    report_bandwidth("events", events, 2.0 * bytes, ok);
    report_table("one launch, host clock", NULL);
    report_time("the first launch", timing_once(launch_ms[0]), ok);
    report_time("the second launch", timing_once(launch_ms[1]), ok);
    int left = lines_printed("leave"), waited = lines_printed("wait");
    check_that(waited == 1, "the kernel's line was printed %d times after a synchronise", waited);
    printf("\na kernel prints one line, and the program ends at once: %d lines arrive; after a "
           "synchronise: %d\n",
           left, waited);
    report_number("lines_without_synchronise", left);
    report_number("lines_with_synchronise", waited);

    if (DEVICE_IS_CPU)
        printf(
            "CPU backend: a launch returns when the kernel has run, so that all three ways agree "
            "here. On a GPU\nit returns at once.\n");
    else
        printf(
            "report: %.4f ms (events) for the kernel. The first way timed the call (%.4f ms, %.0f "
            "times too\nfast), the second adds launch and wait (%.4f ms more), the first launch "
            "adds loading the code\n(%.3f ms more).\n",
            events.median_ms, unsynced.median_ms, events.median_ms / unsynced.median_ms,
            synced.median_ms - events.median_ms, launch_ms[0] - launch_ms[1]);
    free(samples_ms);
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_y));
    free(h_x);
    free(h_y);
    return lesson_end();
}
