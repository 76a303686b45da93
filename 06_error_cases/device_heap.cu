// device_heap: memory that the runtime sets aside before the first kernel: the heap of malloc() in
// kernels, and the buffer of printf() in kernels. Both run out without any CUDA error.
//
// Predict before you run it: a kernel prints 64,000 lines. How many arrive?
//
// usage: device_heap [CASE] [--fixed]
#include "twins.h"

// ---- device_malloc
__global__ void allocate(size_t bytes, int *got_memory)
{
    char *memory = (char *)malloc(bytes); // from the device's heap, not from cudaMalloc's memory
    *got_memory = memory != NULL;
    if (memory)
        memory[bytes - 1] = 1;
    free(memory);
}

static const size_t wanted = 64 << 20;

static int kernel_got_memory(void)
{
    int *d_got, h_got = -1;
    size_t heap = 0;
    CUDA_CHECK(cudaDeviceGetLimit(&heap, cudaLimitMallocHeapSize));
    printf("  the device's heap: %zu MiB; the kernel asks for %zu\n", heap >> 20, wanted >> 20);
    CUDA_CHECK(cudaMalloc(&d_got, sizeof(int)));
    allocate<<<1, 1>>>(wanted, d_got);
    STEP(cudaGetLastError());
    STEP(cudaDeviceSynchronize());
    CUDA_CHECK(cudaMemcpy(&h_got, d_got, sizeof(int), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaFree(d_got));
    return h_got;
}

static void device_malloc_broken(void)
{
    int got = kernel_got_memory();
    SYMPTOM(got == 0, "malloc in the kernel returned %s", got ? "memory" : "NULL");
}

static void device_malloc_fixed(void)
{
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 2 * wanted)); // before any kernel
    check_that(kernel_got_memory() == 1, "malloc in the kernel returned NULL");
}

// ---- printf_overflow
__global__ void chat(void)
{
    printf("line %d\n", blockIdx.x * blockDim.x + threadIdx.x);
}

// Sends stdout into a file while `print` runs, and returns how many lines arrived in it.
static int lines_that_arrive(void (*print)(void))
{
    FILE *file = tmpfile();
    fflush(stdout);
    int real_stdout = dup(STDOUT_FILENO), lines = 0, c;
    if (!file || real_stdout < 0 || dup2(fileno(file), STDOUT_FILENO) < 0)
        lesson_exit(EXIT_FAILED, "stdout cannot be redirected");
    print();
    fflush(stdout);
    dup2(real_stdout, STDOUT_FILENO);
    close(real_stdout);
    rewind(file);
    while ((c = fgetc(file)) != EOF)
        lines += c == '\n';
    fclose(file);
    return lines;
}

enum { BLOCKS = 250, THREADS = 256, LINES = BLOCKS * THREADS };

static void print_and_wait(void)
{
    chat<<<BLOCKS, THREADS>>>();
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
}

static void printf_overflow_broken(void)
{
    size_t buffer = 0;
    CUDA_CHECK(cudaDeviceGetLimit(&buffer, cudaLimitPrintfFifoSize));
    int lines = lines_that_arrive(print_and_wait);
    printf("  the printf buffer: %.2f MiB\n", buffer / 1048576.0);
    SYMPTOM(lines > 0 && lines < LINES, "%d of %d lines, and no error", lines, LINES);
}

static void printf_overflow_fixed(void)
{
    size_t enough = (size_t)LINES * 512; // a generous guess of what one line takes in the buffer
    CUDA_CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, enough)); // before the first kernel
    int lines = lines_that_arrive(print_and_wait);
    printf("  a buffer of %.1f MiB: %d of %d lines\n", enough / 1048576.0, lines, LINES);
    check_that(lines == LINES, "%d of %d lines arrived", lines, LINES);
}

// ---- printf_without_sync
static void print_and_leave(void)
{
    pid_t child = fork(); // a process of its own: its end is what this case is about
    if (child == 0) {
        chat<<<1, 4>>>();
        _exit(cudaGetLastError() == cudaSuccess ? EXIT_OK : EXIT_FAILED);
    }
    waitpid(child, NULL, 0);
}

static void print_and_wait_then_leave(void)
{
    pid_t child = fork();
    if (child == 0) {
        chat<<<1, 4>>>();
        cudaError_t error = cudaDeviceSynchronize(); // brings the lines to stdout
        fflush(stdout);
        _exit(error == cudaSuccess ? EXIT_OK : EXIT_FAILED);
    }
    waitpid(child, NULL, 0);
}

static void printf_without_sync_broken(void)
{
    int lines = lines_that_arrive(print_and_leave);
    SYMPTOM(lines == 0, "%d of 4 lines, and no error", lines);
}

static void printf_without_sync_fixed(void)
{
    int lines = lines_that_arrive(print_and_wait_then_leave);
    check_that(lines == 4, "%d of 4 lines arrived", lines);
}

static const struct twin twins[] = {
    TWIN(device_malloc),
    TWIN(printf_overflow),
    TWIN(printf_without_sync),
};

TWINS_MAIN("06_error_cases/device_heap", "memory that is set aside before the first kernel", twins)
