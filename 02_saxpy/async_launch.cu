// async_launch: a launch only puts the kernel into a queue and returns. So a clock that does not
// wait times nothing but the call, and a host that does not wait reads too early.
//
// Predict before you run it: the kernel takes about 20 ms. How long does the statement
// work<<<1, 1>>>(...) take? And what does the host find in memory right behind it?
//
// usage: async_launch [--ms N]     try also CUDA_LAUNCH_BLOCKING=1 ./async_launch
// sanitizer: --ms 1
#include "../common/lesson.h"

// Lets `cycles` of the SM's clock pass, then writes.
__global__ void work(long long cycles, int *value)
{
    long long begin = clock64();
    while (clock64() - begin < cycles)
        ;
    *value = 1;
}

// The same launch timed in three ways; one sample each, because each way disturbs the others.
static void time_in_three_ways(long long cycles, int *d_value)
{
    cudaEvent_t before, after;
    float kernel_ms = 0;
    CUDA_CHECK(cudaEventCreate(&before));
    CUDA_CHECK(cudaEventCreate(&after));
    work<<<1, 1>>>(cycles, d_value); // warm-up: the first launch of a kernel also loads its code
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();

    double begin = host_seconds();
    work<<<1, 1>>>(cycles, d_value);
    double call_ms = 1e3 * (host_seconds() - begin); // 1. wrong: the kernel has hardly begun
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();

    begin = host_seconds();
    work<<<1, 1>>>(cycles, d_value);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    double wait_ms = 1e3 * (host_seconds() - begin); // 2. the kernel, and the way there and back

    CUDA_CHECK(cudaEventRecord(before)); // 3. the device itself notes when it gets here ...
    work<<<1, 1>>>(cycles, d_value);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK(cudaEventRecord(after)); // ... and here
    CUDA_CHECK(cudaEventSynchronize(after));
    CUDA_CHECK(cudaEventElapsedTime(&kernel_ms, before, after));

    report_table("one launch, three clocks", NULL);
    report_time("host clock around the call", timing_once(call_ms), CHECK_NONE);
    report_time("host clock, after a synchronise", timing_once(wait_ms), CHECK_NONE);
    report_time("events on the device", timing_once(kernel_ms), CHECK_NONE);
    if (DEVICE_IS_CPU)
        printf("The CPU backend runs a kernel at once; on a GPU the first clock shows next to "
               "nothing.\n");
    else if (call_ms < 0.5 * kernel_ms)
        printf("The call was over after %.3f ms, the kernel took %.1f ms: the first clock measured "
               "the queueing.\n",
               call_ms, kernel_ms);
    else
        printf("Here the call returned only when the kernel had ended: is CUDA_LAUNCH_BLOCKING "
               "set?\n");
    CUDA_CHECK(cudaEventDestroy(before));
    CUDA_CHECK(cudaEventDestroy(after));
}

// Managed memory has one pointer for host and device, and no cudaMemcpy that would wait.
static void read_too_early(long long cycles)
{
    int *value;
    printf("\nthe host reads what the kernel writes: 0 before, 1 after\n");
    if (!device_attribute(cudaDevAttrConcurrentManagedAccess)) {
        printf(
            "  not tried: with concurrentManagedAccess = 0 (WSL, Windows, old GPUs) the host dies "
            "of a\n  segmentation fault when it touches managed memory while a kernel runs\n");
        return;
    }
    CUDA_CHECK(cudaMallocManaged(&value, sizeof(*value)));
    *value = 0;
    work<<<1, 1>>>(cycles, value);
    CUDA_CHECK_LAUNCH();
    int early = *(volatile int *)value; // the mistake: nothing made the host wait
    CUDA_CHECK_SYNC();
    int late = *(volatile int *)value;
    printf("  right behind the launch: %d%s\n", early,
           early ? " (this time the kernel was first; nothing promises it)" : " (too early)");
    printf("  after cudaDeviceSynchronize(): %d\n", late);
    check_that(late == 1, "after the synchronise the host read %d", late);
    report_number("read_early", early);
    report_number("read_late", late);
    CUDA_CHECK(cudaFree(value));
}

int main(int argc, char **argv)
{
    int ms = (int)default_size(20, 2);
    const struct option_spec options[] = {
        OPTION_INT("ms", &ms, 1, 1000, "how long the kernel takes, about, in milliseconds"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "02_saxpy/async_launch", "a launch does not wait", options);
    long long cycles = (long long)ms * device_attribute(cudaDevAttrClockRate); // in kHz
    int *d_value, h_value = 0;
    CUDA_CHECK(cudaMalloc(&d_value, sizeof(*d_value)));
    POISON_DEVICE(d_value, sizeof(*d_value));
    time_in_three_ways(cycles, d_value);
    CUDA_CHECK(cudaMemcpy(&h_value, d_value, sizeof(h_value), cudaMemcpyDeviceToHost));
    check_that(h_value == 1, "the kernel wrote %d", h_value);
    read_too_early(cycles);
    CUDA_CHECK(cudaFree(d_value));
    return lesson_end();
}
