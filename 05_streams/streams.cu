// streams: an array goes to the device, through a kernel and back. In one stream the three phases
// follow each other. Cut into chunks, the copy in, the kernel and the copy out of different chunks
// run at the same time: with each chunk in one of several streams, or with a stream for each phase.
//
// Predict before you run it: copy in, kernel and copy out take about 10, 5 and 10 ms. What is the
// shortest time that any number of streams and chunks can reach, and what sets it?
//
// usage: streams [--streams 4] [--chunks 64] [--n 128M] [--work 1024] [--trace FILE] [--sweep]
// sanitizer: --n 64k --work 8
#include "../common/lesson.h"
#include "../common/timeline.h"

enum { MAX_STREAMS = 32, MAX_CHUNKS = 1024, BLOCK = 256 };
#define MAX_PINNED_ELEMENTS ((size_t)1 << 30) // both host arrays are pinned: 8 GiB at most

static const float a = 1.0f - 1.0f / 1024, b = 1.0f / 1024;

// x = a*x + b, `work` times: a kernel that can be made as heavy as we like, with a result that
// the host can compute in one step.
__global__ void iterate(size_t n, int work, float a, float b, float *data)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n)
        return;
    float x = data[i];
    for (int step = 0; step < work; step++)
        x = a * x + b;
    data[i] = x;
}

struct job {
    size_t n;
    int work;
    float *h_in, *h_out, *d_data; // h_in and h_out are pinned: only such copies are asynchronous
    cudaStream_t stream[MAX_STREAMS];
    cudaEvent_t arrived, computed;
};

// The elements [first, first + count) of the array.
struct chunk {
    size_t first, count;
};

static void copy_in(const struct job *job, struct chunk c, cudaStream_t stream)
{
    CUDA_CHECK(cudaMemcpyAsync(job->d_data + c.first, job->h_in + c.first, c.count * sizeof(float),
                               cudaMemcpyHostToDevice, stream));
}

static void compute(const struct job *job, struct chunk c, cudaStream_t stream)
{
    unsigned grid = (unsigned)((c.count + BLOCK - 1) / BLOCK);
    iterate<<<grid, BLOCK, 0, stream>>>(c.count, job->work, a, b, job->d_data + c.first);
    CUDA_CHECK_LAUNCH();
}

static void copy_out(const struct job *job, struct chunk c, cudaStream_t stream)
{
    CUDA_CHECK(cudaMemcpyAsync(job->h_out + c.first, job->d_data + c.first, c.count * sizeof(float),
                               cudaMemcpyDeviceToHost, stream));
}

// Each chunk in one of the streams, in turn. Within a stream the three operations keep their
// order; between streams there is no order. One stream and one chunk: nothing overlaps.
static void chunk_by_chunk(const struct job *job, int streams, size_t size, struct timeline *t)
{
    struct chunk c = {0, size};
    for (int s = 0; c.first < job->n; c.first += size, s = (s + 1) % streams) {
        if (c.count > job->n - c.first)
            c.count = job->n - c.first; // the last chunk may be shorter
        TIMELINE_SPAN (t, s, job->stream[s], 'i')
            copy_in(job, c, job->stream[s]);
        TIMELINE_NEXT (t, s, job->stream[s], 'k')
            compute(job, c, job->stream[s]);
        TIMELINE_NEXT (t, s, job->stream[s], 'o')
            copy_out(job, c, job->stream[s]);
    }
}

// One stream copies in, one computes, one copies out; events hand each chunk on. A wait is for
// the last record before it, so that the same two events can serve all chunks.
static void phase_by_phase(const struct job *job, size_t size, struct timeline *t)
{
    const cudaStream_t *stream = job->stream;
    struct chunk c = {0, size};
    for (; c.first < job->n; c.first += size) {
        if (c.count > job->n - c.first)
            c.count = job->n - c.first;
        TIMELINE_SPAN (t, 0, stream[0], 'i')
            copy_in(job, c, stream[0]);
        CUDA_CHECK(cudaEventRecord(job->arrived, stream[0]));
        CUDA_CHECK(cudaStreamWaitEvent(stream[1], job->arrived, 0));
        TIMELINE_SPAN (t, 1, stream[1], 'k')
            compute(job, c, stream[1]);
        CUDA_CHECK(cudaEventRecord(job->computed, stream[1]));
        CUDA_CHECK(cudaStreamWaitEvent(stream[2], job->computed, 0));
        TIMELINE_SPAN (t, 2, stream[2], 'o')
            copy_out(job, c, stream[2]);
    }
}

// ---- measuring

enum { BY_PHASE = 0 }; // as the number of streams: one for each phase

struct version {
    int streams, chunks;
    char name[64];
    struct timing time;
    int ok;
};

static struct version version(int streams, int chunks)
{
    struct version v;
    memset(&v, 0, sizeof(v));
    v.streams = streams;
    v.chunks = chunks;
    const char *chunk_s = chunks == 1 ? "" : "s", *stream_s = streams == 1 ? "" : "s";
    if (streams == BY_PHASE)
        snprintf(v.name, sizeof(v.name), "a stream a phase, %d chunk%s", chunks, chunk_s);
    else
        snprintf(v.name, sizeof(v.name), "%d stream%s, %d chunk%s", streams, stream_s, chunks,
                 chunk_s);
    return v;
}

static void pipeline(const struct job *job, const struct version *v, struct timeline *t)
{
    size_t size = (job->n + (size_t)v->chunks - 1) / (size_t)v->chunks;
    if (v->streams == BY_PHASE)
        phase_by_phase(job, size, t);
    else
        chunk_by_chunk(job, v->streams, size, t);
}

static void poison(const struct job *job)
{
    memset(job->h_out, 0xFF, job->n * sizeof(float)); // NaN
    POISON_DEVICE(job->d_data, job->n * sizeof(float));
    CUDA_CHECK_SYNC();
}

// After `work` steps x has become a^work * x + b * (1 + a + ... + a^(work-1)).
static int verify_result(const struct job *job, const char *what)
{
    double power = pow((double)a, job->work), sum = b * (1 - power) / (1 - (double)a);
    double steps = fmin(job->work, 1024);          // older roundings have faded away
    double rounding = (steps + 1) * ldexp(1, -24); // half a unit in the last place each step
    struct verifier v = verify_begin(what, 0, rounding);
    for (size_t i = 0; i < job->n; i++)
        verify_value(&v, i, job->h_out[i], power * job->h_in[i] + sum);
    return verify_end(&v);
}

// The host's clock tells how long the host waited for its result; that is what streams shorten.
static void measure(const struct job *job, struct version *v, int reps)
{
    poison(job);
    MEASURE_HOST (v->time, reps) {
        pipeline(job, v, NULL);
        CUDA_CHECK_SYNC();
    }
    v->ok = verify_result(job, v->name);
}

// Right before it is timed, and again after.
static void run(const struct job *job, struct version *v, int reps)
{
    poison(job);
    pipeline(job, v, NULL);
    CUDA_CHECK_SYNC();
    int right = verify_result(job, v->name);
    measure(job, v, reps);
    v->ok &= right;
}

// No version can beat its busiest part. The two copies are timed together, because the pipeline
// runs them together and they share the bus. Returns milliseconds.
static double lower_limit(const struct job *job, int reps)
{
    struct chunk all = {0, job->n};
    void (*const phases[])(const struct job *, struct chunk, cudaStream_t) = {copy_in, compute,
                                                                              copy_out};
    struct timing alone[3], both;
    double bytes = (double)job->n * sizeof(float), bus = bus_limit_gbs();
    for (int p = 0; p < 3; p++)
        MEASURE_HOST (alone[p], reps) {
            phases[p](job, all, job->stream[0]);
            CUDA_CHECK_SYNC();
        }
    MEASURE_HOST (both, reps) { // whatever comes out is of no interest here
        copy_in(job, all, job->stream[0]);
        copy_out(job, all, job->stream[1]);
        CUDA_CHECK_SYNC();
    }
    report_table("the phases alone", NULL);
    report_rate("copy in", alone[0], bytes, "bytes", "GB/s", 1e9, bus, CHECK_NONE);
    report_time("kernel", alone[1], CHECK_NONE);
    report_rate("copy out", alone[2], bytes, "bytes", "GB/s", 1e9, bus, CHECK_NONE);
    report_rate("copy in and out at once", both, 2 * bytes, "bytes", "GB/s", 1e9, 2 * bus,
                CHECK_NONE);
    if (DEVICE_IS_CPU)
        return NAN;
    int copies = both.median_ms >= alone[1].median_ms;
    double limit_ms = copies ? both.median_ms : alone[1].median_ms;
    printf("lower limit: %.3f ms, set by %s\n", limit_ms,
           copies ? "the copies, both ways at once" : "the kernel");
    report_number("limit_ms", limit_ms);
    return limit_ms;
}

static void report_begin(const char *title)
{
    report_table(title, "streams", "chunks", "speed-up", "x limit", NULL);
}

static void report_version(const struct job *job, const struct version *v, double limit_ms,
                           double one_stream_ms)
{
    double bytes = 2.0 * job->n * sizeof(float); // in and out
    report_extra(v->streams == BY_PHASE ? 3 : v->streams);
    report_extra(v->chunks);
    report_extra(round(100 * one_stream_ms / v->time.median_ms) / 100);
    report_extra(round(1000 * v->time.median_ms / limit_ms) / 1000);
    report_rate(v->name, v->time, bytes, "bytes", "GB/s", 1e9,
                DEVICE_IS_CPU ? 0 : bytes / (limit_ms * 1e6), v->ok);
}

// The versions as pictures, with events around every operation. Many chunks would be too fine to
// see: then the time in which this many of them pass is drawn.
enum { CHUNKS_DRAWN = 16 };

static void draw(const struct job *job, const struct version *v, int count,
                 struct output_file *trace)
{
    struct timeline pictures[3];
    for (int k = 0; k < count; k++) {
        poison(job);
        for (int warm_up = 0; warm_up < 2; warm_up++) // the bus slept while the host checked
            pipeline(job, &v[k], NULL);
        timeline_begin(&pictures[k], v[k].name, "stream");
        pipeline(job, &v[k], &pictures[k]);
        timeline_finish(&pictures[k]);
        verify_result(job, v[k].name);
    }
    printf("\ni copy in, k kernel, o copy out, . nothing in this stream\n");
    for (int k = 0; k < count; k++) {
        timeline_print(&pictures[k],
                       pictures[k].total_ms * fmin(1, (double)CHUNKS_DRAWN / v[k].chunks));
        if (!DEVICE_IS_CPU)
            printf("  without the events that drew this picture: %.3f ms\n", v[k].time.median_ms);
    }
    if (trace->stream) {
        timeline_write_trace(trace->stream, pictures, count);
        if (!output_commit(trace))
            lesson_exit(EXIT_FAILED, "--trace %s: could not be written", trace->path);
        printf("trace: %s (open it in ui.perfetto.dev or chrome://tracing)\n", trace->path);
    }
    for (int k = 0; k < count; k++)
        timeline_free(&pictures[k]);
}

static void sweep(const struct job *job, double limit_ms, double one_stream_ms, int reps)
{
    const int all_streams[] = {1, 2, 3, 4, 8, BY_PHASE}, all_chunks[] = {4, 8, 16, 32, 64, 128};
    struct version best = version(1, 1);
    best.time.median_ms = one_stream_ms;
    report_begin("sweep");
    for (size_t i = 0; i < sizeof(all_streams) / sizeof(int); i++)
        for (size_t j = 0; j < sizeof(all_chunks) / sizeof(int); j++) {
            struct version v = version(all_streams[i], all_chunks[j]);
            measure(job, &v, reps);
            report_version(job, &v, limit_ms, one_stream_ms);
            if (v.time.median_ms < best.time.median_ms)
                best = v;
        }
    printf("best: %s, %.3f ms\n", best.name, best.time.median_ms);
    report_text("best", best.name);
    report_number("best_ms", best.time.median_ms);
}

int main(int argc, char **argv)
{
    struct job job;
    memset(&job, 0, sizeof(job));
    job.n = default_size(128 << 20, 256 << 10);
    job.work = DEVICE_IS_CPU ? 8 : 1024;
    int streams = 4, chunks = DEVICE_IS_CPU ? 8 : 64, want_sweep = 0, reps;
    const char *trace_path = NULL;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &job.n, 1, MAX_PINNED_ELEMENTS, "elements"),
        OPTION_INT("work", &job.work, 0, 1 << 20, "multiply-adds an element in the kernel"),
        OPTION_INT("streams", &streams, 1, MAX_STREAMS, "streams"),
        OPTION_INT("chunks", &chunks, 1, MAX_CHUNKS, "pieces the array is cut into"),
        OPTION_TEXT("trace", &trace_path, "write the pictures to this file, for Perfetto"),
        OPTION_FLAG("sweep", &want_sweep, "find the best numbers of streams and chunks"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "05_streams/streams", "copies and kernels at the same time", options);
    overlap_print();
    static struct output_file trace; // opened now, so that a wrong path costs no time
    if (trace_path && !output_open(&trace, trace_path))
        lesson_exit(EXIT_FAILED, "--trace %s: %s", trace_path, strerror(errno));

    size_t bytes = job.n * sizeof(float);
    require_device_memory(job.n, sizeof(float), "--n");
    CUDA_CHECK(cudaMallocHost(&job.h_in, bytes));
    CUDA_CHECK(cudaMallocHost(&job.h_out, bytes));
    CUDA_CHECK(cudaMalloc(&job.d_data, bytes));
    for (int s = 0; s < MAX_STREAMS; s++)
        CUDA_CHECK(cudaStreamCreateWithFlags(&job.stream[s], cudaStreamNonBlocking));
    CUDA_CHECK(cudaEventCreateWithFlags(&job.arrived, cudaEventDisableTiming));
    CUDA_CHECK(cudaEventCreateWithFlags(&job.computed, cudaEventDisableTiming));
    fill_random(job.h_in, job.n, 5);

    reps = common_options.reps;
    double limit_ms = lower_limit(&job, reps);
    struct version versions[] = {version(1, 1), version(streams, chunks),
                                 version(BY_PHASE, chunks)};
    report_begin("copy in, kernel, copy out");
    for (int k = 0; k < 3; k++) {
        run(&job, &versions[k], reps);
        report_version(&job, &versions[k], limit_ms, versions[0].time.median_ms);
    }
    draw(&job, versions, 3, &trace);
    if (want_sweep)
        sweep(&job, limit_ms, versions[0].time.median_ms, reps < 5 ? reps : 5);

    const struct version *best = &versions[1];
    if (versions[2].time.median_ms < best->time.median_ms)
        best = &versions[2];
    report_number("speed_up", versions[0].time.median_ms / best->time.median_ms);
    report_number("times_limit", best->time.median_ms / limit_ms);
    if (!DEVICE_IS_CPU)
        printf("\n%s: %.3f ms, %.2f times as fast as one stream, and %.3f times the lower limit.\n",
               best->name, best->time.median_ms, versions[0].time.median_ms / best->time.median_ms,
               best->time.median_ms / limit_ms);

    for (int s = 0; s < MAX_STREAMS; s++)
        CUDA_CHECK(cudaStreamDestroy(job.stream[s]));
    CUDA_CHECK(cudaEventDestroy(job.arrived));
    CUDA_CHECK(cudaEventDestroy(job.computed));
    CUDA_CHECK(cudaFree(job.d_data));
    CUDA_CHECK(cudaFreeHost(job.h_in));
    CUDA_CHECK(cudaFreeHost(job.h_out));
    return lesson_end();
}
