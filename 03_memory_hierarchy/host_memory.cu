// host_memory: five kinds of memory on the host's side, and what each of them gives over the bus to
// and from the device, from 4 KiB to 256 MiB.
//
//   pageable        malloc: the driver copies through a pinned buffer of its own
//   pinned          cudaHostAlloc: page-locked; the device's copy engine reads and writes it itself
//   write-combined  pinned, but past the CPU's caches: for the CPU to write, not to read
//   mapped          pinned, and a kernel loads and stores it directly, over the bus: no copy at all
//   managed         one pointer for both; pages move when the other side touches them
//
// Predict before you run it: by what factor is a pinned copy faster than a pageable one at 256 MiB,
// and at 4 KiB?
//
// usage: host_memory [--largest bytes]
// sanitizer: --largest 64k
#include "../common/lesson.h"
#include <unistd.h>

enum kind { PAGEABLE, PINNED, WRITE_COMBINED, MAPPED, MANAGED, KINDS };
static const char *const kind_names[] = {"pageable", "pinned", "write-combined", "mapped",
                                         "managed"};

// What a device does with mapped and managed memory: loads and stores, 16 bytes a thread at a time.
__global__ void move_words(size_t quads, const uint4 *from, uint4 *to)
{
    size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < quads; i += step)
        to[i] = from[i];
}

static void move_on_device(size_t bytes, const void *from, void *to)
{
    enum { BLOCK = 256 };
    size_t quads = bytes / sizeof(uint4), blocks = (quads + BLOCK - 1) / BLOCK;
    size_t most = (size_t)device_facts.sm_count * 16;
    unsigned grid = (unsigned)(blocks < most ? blocks : most);
    move_words<<<grid, BLOCK>>>(quads, (const uint4 *)from, (uint4 *)to);
    CUDA_CHECK_LAUNCH();
}

static void *allocate(int kind, size_t bytes)
{
    void *memory = NULL;
    if (kind == PAGEABLE)
        memory = host_malloc(bytes);
    else if (kind == MANAGED)
        CUDA_CHECK(cudaMallocManaged(&memory, bytes));
    else
        CUDA_CHECK(cudaHostAlloc(&memory, bytes,
                                 kind == WRITE_COMBINED ? cudaHostAllocWriteCombined
                                 : kind == MAPPED       ? cudaHostAllocMapped
                                                        : cudaHostAllocDefault));
    return memory;
}

static void release(int kind, void *memory)
{
    if (kind == PAGEABLE)
        free(memory);
    else
        CUDA_CHECK(kind == MANAGED ? cudaFree(memory) : cudaFreeHost(memory));
}

// The host writes, or reads, one word of every page: managed pages move to the host for that.
static unsigned touch(void *memory, size_t bytes, int write)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned sum = 0;
    for (size_t i = 0; i < bytes; i += page) {
        volatile unsigned *word = (volatile unsigned *)((char *)memory + i);
        if (write)
            *word = *word; // the value stays, the page becomes the host's
        else
            sum += *word;
    }
    return sum;
}

static unsigned *h_words; // the pattern that is sent to and fro
static void *d_memory;    // its place on the device
static unsigned *h_back;

static int arrived(const char *what, const void *got, size_t bytes)
{
    return check_that(memcmp(got, h_words, bytes) == 0, "%s: what arrived differs", what);
}

// Managed memory has no copy to time: it moves because the other side touches it. Each repetition
// first brings the pages to the side where they start, untimed.
static struct timing time_managed(void *memory, size_t bytes, int to_device)
{
    double samples[TIMER_MAX_REPS];
    for (int r = -1; r < common_options.reps; r++) { // -1: the warm-up
        if (to_device)
            touch(memory, bytes, 1);
        else
            move_on_device(bytes, memory, memory);
        CUDA_CHECK_SYNC();
        double start = host_seconds();
        if (to_device) {
            move_on_device(bytes, memory, d_memory);
            CUDA_CHECK_SYNC();
        } else {
            touch(memory, bytes, 0);
        }
        if (r >= 0)
            samples[r] = 1e3 * (host_seconds() - start);
    }
    return timing_of(samples, common_options.reps);
}

// One kind at one size, both ways: to the device and checked there, back and checked here.
static void show_kind(int kind, size_t bytes, double gbs[2])
{
    void *memory = allocate(kind, bytes), *mapped = NULL;
    struct timing in, out;
    char name[64];
    if (kind == MAPPED)
        CUDA_CHECK(cudaHostGetDevicePointer(&mapped, memory, 0));

    memcpy(memory, h_words, bytes);
    POISON_DEVICE(d_memory, bytes);
    if (kind == MANAGED) {
        in = time_managed(memory, bytes, 1);
    } else if (kind == MAPPED) {
        MEASURE_GPU (in, common_options.reps)
            move_on_device(bytes, mapped, d_memory);
    } else {
        MEASURE_GPU (in, common_options.reps)
            CUDA_CHECK(cudaMemcpyAsync(d_memory, memory, bytes, cudaMemcpyHostToDevice));
    }
    CUDA_CHECK(cudaMemcpy(h_back, d_memory, bytes, cudaMemcpyDeviceToHost));
    int in_right = arrived(kind_names[kind], h_back, bytes);

    memset(memory, 0, bytes);
    if (kind == MANAGED) {
        move_on_device(bytes, d_memory, memory);
        out = time_managed(memory, bytes, 0);
    } else if (kind == MAPPED) {
        MEASURE_GPU (out, common_options.reps)
            move_on_device(bytes, d_memory, mapped);
    } else {
        MEASURE_GPU (out, common_options.reps)
            CUDA_CHECK(cudaMemcpyAsync(memory, d_memory, bytes, cudaMemcpyDeviceToHost));
    }
    CUDA_CHECK_SYNC();
    const void *result = memory;
    if (kind == WRITE_COMBINED) { // the CPU would take seconds to read it: through the device again
        POISON_DEVICE(d_memory, bytes);
        CUDA_CHECK(cudaMemcpy(d_memory, memory, bytes, cudaMemcpyHostToDevice));
        CUDA_CHECK(cudaMemcpy(h_back, d_memory, bytes, cudaMemcpyDeviceToHost));
        result = h_back;
    }
    int out_right = arrived(kind_names[kind], result, bytes);

    double amount = DEVICE_IS_CPU ? 0 : (double)bytes; // without a bus there is no rate to show
    snprintf(name, sizeof(name), "%s, to the device", kind_names[kind]);
    report_rate(name, in, amount, "bytes", "GB/s", 1e9, bus_limit_gbs(), in_right);
    snprintf(name, sizeof(name), "%s, to the host", kind_names[kind]);
    report_rate(name, out, amount, "bytes", "GB/s", 1e9, bus_limit_gbs(), out_right);
    gbs[0] = (double)bytes / (in.median_ms * 1e6);
    gbs[1] = (double)bytes / (out.median_ms * 1e6);
    release(kind, memory);
}

// The price of write-combined memory: the CPU reads it itself.
static double show_cpu_reads(size_t bytes)
{
    double ms[2];
    report_table("the CPU adds up the words", NULL);
    for (int k = 0; k < 2; k++) {
        int kind = k ? WRITE_COMBINED : PINNED;
        unsigned *memory = (unsigned *)allocate(kind, bytes), sum = 0, expected = 0;
        struct timing t;
        memcpy(memory, h_words, bytes);
        for (size_t i = 0; i < bytes / sizeof(unsigned); i++)
            expected += h_words[i];
        MEASURE_HOST (t, 3) {
            sum = 0;
            for (size_t i = 0; i < bytes / sizeof(unsigned); i++)
                sum += ((volatile unsigned *)memory)[i];
        }
        report_rate(kind_names[kind], t, (double)bytes, "bytes", "GB/s", 1e9, 0,
                    check_that(sum == expected, "%s: the sum is wrong", kind_names[kind]));
        ms[k] = t.median_ms;
        release(kind, memory);
    }
    return ms[1] / ms[0];
}

int main(int argc, char **argv)
{
    size_t largest = default_size(256 << 20, 1 << 20);
    const struct option_spec options[] = {
        OPTION_SIZE("largest", &largest, 4096, (size_t)1 << 32, "bytes of the largest transfer"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/host_memory",
                 "five kinds of host memory and the bus to the device", options);
    if (!device_attribute(cudaDevAttrManagedMemory) ||
        !device_attribute(cudaDevAttrCanMapHostMemory))
        lesson_waive("this device has no managed or no mapped memory");
    largest -= largest % sizeof(uint4);
    require_device_memory(2 * largest, 1, "--largest");
    h_words = (unsigned *)host_malloc(largest);
    h_back = (unsigned *)host_malloc(largest);
    CUDA_CHECK(cudaMalloc(&d_memory, largest));
    for (size_t i = 0; i < largest / sizeof(unsigned); i++)
        h_words[i] = (unsigned)i * 2654435761u; // Knuth's multiplicative hash: every word differs

    double gbs[KINDS][2] = {{0}};
    for (size_t bytes = 4096;; bytes = bytes * 16 < largest ? bytes * 16 : largest) {
        char title[64];
        if (bytes < 1 << 20)
            snprintf(title, sizeof(title), "%.4g KiB", (double)bytes / 1024);
        else
            snprintf(title, sizeof(title), "%.4g MiB", (double)bytes / (1 << 20));
        report_table(title, NULL);
        for (int kind = 0; kind < KINDS; kind++)
            show_kind(kind, bytes, gbs[kind]);
        if (bytes == largest)
            break;
    }
    size_t cpu_bytes = largest < 4 << 20 ? largest : 4 << 20;
    double slower = show_cpu_reads(cpu_bytes);
    if (DEVICE_IS_CPU) {
        printf(
            "\nEvery byte arrived. On the CPU backend device and host share one memory: without a "
            "bus there\nis no GB/s to print, and the five kinds do not differ.\n");
    } else {
        printf(
            "\nAt the largest size pinned memory is %.1f times as fast as pageable memory to the "
            "device, %.1f times back.\n",
            gbs[PINNED][0] / gbs[PAGEABLE][0], gbs[PINNED][1] / gbs[PAGEABLE][1]);
        if (slower > 2)
            printf("The CPU takes %.0f times as long to read write-combined memory: it should only "
                   "write it.\n",
                   slower);
        else
            printf(
                "The CPU takes %.2f times as long to read write-combined memory: here the system "
                "maps it like any other.\n",
                slower);
        report_number("pinned_over_pageable_to_device", gbs[PINNED][0] / gbs[PAGEABLE][0]);
        report_number("pinned_over_pageable_to_host", gbs[PINNED][1] / gbs[PAGEABLE][1]);
        report_number("cpu_reads_write_combined_slowdown", slower);
    }
    CUDA_CHECK(cudaFree(d_memory));
    free(h_words);
    free(h_back);
    return lesson_end();
}
