// sticky_error: what is left of a process after a kernel failed, and after a fork.
//
// Predict before you run it: a kernel failed. Does cudaDeviceReset() bring the device back for this
// process?
//
// usage: sticky_error [CASE] [--fixed]
#include "twins.h"

__global__ void write_one(int *out)
{
    *out = 1;
}

static void write_through_null(void)
{
    write_one<<<1, 1>>>(NULL);
    STEP(cudaGetLastError());
    STEP(cudaDeviceSynchronize());
}

// The device works for this process: a kernel runs and its result arrives.
static void device_still_works(void)
{
    int *d_out, h_out = 0;
    CUDA_CHECK(cudaMalloc(&d_out, sizeof(int)));
    write_one<<<1, 1>>>(d_out);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaMemcpy(&h_out, d_out, sizeof(int), cudaMemcpyDeviceToHost));
    check_that(h_out == 1, "the kernel wrote %d", h_out);
    CUDA_CHECK(cudaFree(d_out));
}

// ---- sticky
static void sticky_broken(void)
{
    int *d_other;
    write_through_null();
    STEP(cudaMalloc(&d_other, 4)); // innocent, and fails
    STEP(cudaGetLastError());      // reading a sticky error does not clear it
    STEP(cudaMalloc(&d_other, 4));
    STEP(cudaDeviceReset()); // says success ...
    RESULT(cudaMalloc(&d_other, 4));
}

static void sticky_fixed(void)
{
    pid_t child = fork(); // before any CUDA call: the risky work gets a process of its own
    if (child == 0) {
        write_through_null();
        fflush(stdout);
        _exit(EXIT_FAILED);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("  the child failed and is gone (exit code %d); this process:\n", WEXITSTATUS(status));
    device_still_works();
    printf("  works\n");
}

// ---- fork_after_cuda
static void fork_after_cuda_broken(void)
{
    int count = 0;
    CUDA_CHECK(cudaGetDeviceCount(&count)); // looks harmless, but starts CUDA in this process
    pid_t child = fork();
    if (child == 0) {
        int *d_memory;
        _exit((int)cudaMalloc(&d_memory, 4)); // the number of the error is the exit code
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status))
        status = cudaErrorUnknown << 8;
    printf("  in the child, after the parent's cudaGetDeviceCount() and fork():\n");
    cudaError_t error_of_child = (cudaError_t)WEXITSTATUS(status);
    twin_result(error_of_child, "cudaMalloc(&d_memory, 4)");
}

static void fork_after_cuda_fixed(void)
{
    pid_t child = fork(); // first the processes, then CUDA in each of them
    if (child == 0) {
        device_still_works();
        _exit(checks.failed ? EXIT_FAILED : EXIT_OK);
    }
    int status = 0;
    waitpid(child, &status, 0);
    check_that(WIFEXITED(status) && WEXITSTATUS(status) == 0, "CUDA failed in the child");
    device_still_works();
}

static const struct twin twins[] = {TWIN(sticky), TWIN(fork_after_cuda)};

TWINS_MAIN("06_error_cases/sticky_error", "what a failed kernel or a fork leaves behind", twins)
