// async_copy: what "asynchronous" means for a copy. cudaMemcpy and cudaMemcpyAsync from pageable
// and from pinned memory: how long the call keeps the host, and how long the copy takes.
//
// Predict before you run it: cudaMemcpyAsync on memory from malloc compiles, runs and is right.
// Which of its two promises does it break: that the call returns at once, or that the copy is fast?
//
// usage: async_copy [--n 64M]
// sanitizer: --n 64k
#include "../common/lesson.h"
#include "../common/timeline.h"

#define MAX_PINNED_ELEMENTS ((size_t)1 << 30)

struct buffers {
    size_t n, bytes;
    float *h_pageable, *h_pinned, *d_data;
    cudaStream_t stream;
};

struct result {
    struct timing call, total; // the call alone; until the copy has arrived
    int ok;
};

static int verify_pattern(const char *what, size_t n, const float *got, uint64_t seed)
{
    uint64_t state = seed * 2 + 1; // the sequence of fill_random
    struct verifier v = verify_begin(what, 0, 0);
    for (size_t i = 0; i < n; i++)
        verify_value(&v, i, got[i], (double)(random_next(&state) >> 40) / 8388608.0 - 1.0);
    return verify_end(&v);
}

static struct result measure(struct buffers *b, float *h_data, int async, cudaMemcpyKind kind)
{
    struct result r;
    int reps = common_options.reps, in = kind == cudaMemcpyHostToDevice;
    double *calls_ms = (double *)host_malloc(2 * (size_t)reps * sizeof(double));
    double *totals_ms = calls_ms + reps;
    void *to = in ? b->d_data : h_data;
    const void *from = in ? h_data : b->d_data;
    static uint64_t seed = 1;

    // What is to arrive is new each time, and its place poisoned.
    float *h_source = in ? h_data : b->h_pinned;
    fill_random(h_source, b->n, ++seed);
    if (in) {
        POISON_DEVICE(b->d_data, b->bytes);
    } else {
        CUDA_CHECK(cudaMemcpy(b->d_data, h_source, b->bytes, cudaMemcpyHostToDevice));
        memset(h_data, 0xFF, b->bytes);
    }
    for (int rep = -1; rep < reps; rep++) { // rep -1 warms up
        CUDA_CHECK_SYNC();
        double start = host_seconds();
        if (async)
            CUDA_CHECK(cudaMemcpyAsync(to, from, b->bytes, kind, b->stream));
        else
            CUDA_CHECK(cudaMemcpy(to, from, b->bytes, kind));
        double returned = host_seconds();
        CUDA_CHECK(cudaStreamSynchronize(b->stream));
        if (rep >= 0) {
            calls_ms[rep] = 1e3 * (returned - start);
            totals_ms[rep] = 1e3 * (host_seconds() - start);
        }
    }
    r.call = timing_of(calls_ms, reps);
    r.total = timing_of(totals_ms, reps);
    if (in) { // bring back what arrived
        memset(b->h_pinned, 0xFF, b->bytes);
        CUDA_CHECK(cudaMemcpy(b->h_pinned, b->d_data, b->bytes, cudaMemcpyDeviceToHost));
    }
    r.ok = verify_pattern("the copy", b->n, in ? b->h_pinned : h_data, seed);
    free(calls_ms);
    return r;
}

// Pinned copies in and out at the same time, in two streams, of two separate pairs of buffers.
static struct timing measure_both(struct buffers *b, int *ok)
{
    struct timing t;
    float *h_other, *d_other;
    cudaStream_t other;
    CUDA_CHECK(cudaMallocHost(&h_other, b->bytes));
    CUDA_CHECK(cudaMalloc(&d_other, b->bytes));
    CUDA_CHECK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
    fill_random(b->h_pinned, b->n, 100);
    fill_random(h_other, b->n, 101);
    POISON_DEVICE(b->d_data, b->bytes);
    CUDA_CHECK(cudaMemcpy(d_other, h_other, b->bytes, cudaMemcpyHostToDevice));
    memset(h_other, 0xFF, b->bytes);
    MEASURE_HOST (t, common_options.reps) {
        CUDA_CHECK(
            cudaMemcpyAsync(b->d_data, b->h_pinned, b->bytes, cudaMemcpyHostToDevice, b->stream));
        CUDA_CHECK(cudaMemcpyAsync(h_other, d_other, b->bytes, cudaMemcpyDeviceToHost, other));
        CUDA_CHECK_SYNC();
    }
    memset(b->h_pinned, 0xFF, b->bytes);
    CUDA_CHECK(cudaMemcpy(b->h_pinned, b->d_data, b->bytes, cudaMemcpyDeviceToHost));
    *ok = verify_pattern("copy in of both", b->n, b->h_pinned, 100);
    *ok &= verify_pattern("copy out of both", b->n, h_other, 101);
    CUDA_CHECK(cudaStreamDestroy(other));
    CUDA_CHECK(cudaFree(d_other));
    CUDA_CHECK(cudaFreeHost(h_other));
    return t;
}

int main(int argc, char **argv)
{
    struct buffers b;
    memset(&b, 0, sizeof(b));
    b.n = default_size(64 << 20, 256 << 10);
    const struct option_spec options[] = {
        OPTION_SIZE("n", &b.n, 1, MAX_PINNED_ELEMENTS, "elements"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/async_copy", "when is a copy asynchronous?", options);
    overlap_print();
    b.bytes = b.n * sizeof(float);
    require_device_memory(b.n, 2 * sizeof(float), "--n");
    b.h_pageable = (float *)host_malloc(b.bytes);
    CUDA_CHECK(cudaMallocHost(&b.h_pinned, b.bytes)); // cannot be paged out: the GPU may read it
    CUDA_CHECK(cudaMalloc(&b.d_data, b.bytes));
    CUDA_CHECK(cudaStreamCreateWithFlags(&b.stream, cudaStreamNonBlocking));

    const char *const names[] = {"pageable, cudaMemcpy", "pageable, cudaMemcpyAsync",
                                 "pinned, cudaMemcpy", "pinned, cudaMemcpyAsync"};
    const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost};
    struct result results[2][4];
    for (int way = 0; way < 2; way++) {
        report_table(way ? "from the device" : "to the device", "call us", "host free %", NULL);
        for (int k = 0; k < 4; k++) {
            float *h_data = k < 2 ? b.h_pageable : b.h_pinned;
            struct result r = results[way][k] = measure(&b, h_data, k % 2, kinds[way]);
            report_extra(round(1e4 * r.call.median_ms) / 10);
            report_extra(round(1e3 * (1 - r.call.median_ms / r.total.median_ms)) / 10);
            report_rate(names[k], r.total, (double)b.bytes, "bytes", "GB/s", 1e9, bus_limit_gbs(),
                        r.ok);
        }
    }
    int ok;
    struct timing both = measure_both(&b, &ok);
    report_table("both ways at once", NULL);
    report_rate("pinned, cudaMemcpyAsync", both, 2.0 * b.bytes, "bytes", "GB/s", 1e9,
                2 * bus_limit_gbs(), ok);

    const struct result *pageable = &results[0][1], *pinned = &results[0][3];
    double one_by_one = pinned->total.median_ms + results[1][3].total.median_ms;
    report_number("both_speed_up", one_by_one / both.median_ms);
    if (!DEVICE_IS_CPU) {
        printf(
            "\ncudaMemcpyAsync to the device keeps the host for %.3f of %.2f ms from pageable "
            "memory, and for\n%.4f of %.2f ms from pinned memory. Both ways at once take %.2f ms, "
            "one after the other %.2f ms.\n",
            pageable->call.median_ms, pageable->total.median_ms, pinned->call.median_ms,
            pinned->total.median_ms, both.median_ms, one_by_one);
    }
    CUDA_CHECK(cudaStreamDestroy(b.stream));
    CUDA_CHECK(cudaFree(b.d_data));
    CUDA_CHECK(cudaFreeHost(b.h_pinned));
    free(b.h_pageable);
    return lesson_end();
}
