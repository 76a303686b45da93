// streams: an array goes to the device, through a kernel and back. In one stream the three phases
// follow each other; cut into chunks over several streams, the copy in, the kernel and the copy
// out of different chunks happen at the same time.
//
// Predict before you run it: copy in, kernel and copy out take about 5, 2 and 5 ms. What is the
// shortest time that any number of streams and chunks can reach, and what sets it?
//
// usage: streams [--streams 4] [--chunks 32] [--n 64M] [--work 1024] [--trace FILE] [--sweep]
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
};

// The lesson: chunk after chunk, each with its three operations in a stream of its own turn.
// Within a stream they keep their order, between streams nothing does.
static void pipeline(const struct job *job, int streams, int chunks, struct timeline *t)
{
    size_t chunk = (job->n + (size_t)chunks - 1) / (size_t)chunks;
    for (int c = 0; (size_t)c * chunk < job->n; c++) {
        size_t first = (size_t)c * chunk, left = job->n - first;
        size_t count = left < chunk ? left : chunk; // the last chunk may be shorter
        float *d_chunk = job->d_data + first;
        int s = c % streams;
        cudaStream_t stream = job->stream[s];
        TIMELINE_SPAN (t, s, stream, 'i') {
            CUDA_CHECK(cudaMemcpyAsync(d_chunk, job->h_in + first, count * sizeof(float),
                                       cudaMemcpyHostToDevice, stream));
        }
        TIMELINE_NEXT (t, s, stream, 'k') {
            unsigned grid = (unsigned)((count + BLOCK - 1) / BLOCK);
            iterate<<<grid, BLOCK, 0, stream>>>(count, job->work, a, b, d_chunk);
            CUDA_CHECK_LAUNCH();
        }
        TIMELINE_NEXT (t, s, stream, 'o') {
            CUDA_CHECK(cudaMemcpyAsync(job->h_out + first, d_chunk, count * sizeof(float),
                                       cudaMemcpyDeviceToHost, stream));
        }
    }
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

// Checked, then timed, then checked again. The host's clock tells how long the host waited for
// its results; that is the time that streams are to shorten.
static struct timing run(const struct job *job, int streams, int chunks, int reps, int *ok)
{
    char what[64];
    struct timing t;
    snprintf(what, sizeof(what), "%d streams, %d chunks", streams, chunks);
    poison(job);
    pipeline(job, streams, chunks, NULL);
    CUDA_CHECK_SYNC();
    *ok = verify_result(job, what);
    poison(job);
    MEASURE_HOST (t, reps) {
        pipeline(job, streams, chunks, NULL);
        CUDA_CHECK_SYNC();
    }
    *ok &= verify_result(job, what);
    return t;
}

// No version can beat its busiest part. The two copies are measured at the same time, in two
// streams, because that is how the pipeline runs them: they share the bus.
struct limit {
    struct timing in, kernel, out, both;
    double ms;
    const char *part;
};

static struct limit measure_limit(const struct job *job, int reps)
{
    struct limit l;
    size_t bytes = job->n * sizeof(float);
    unsigned grid = (unsigned)((job->n + BLOCK - 1) / BLOCK);
    MEASURE_HOST (l.in, reps) {
        CUDA_CHECK(
            cudaMemcpyAsync(job->d_data, job->h_in, bytes, cudaMemcpyHostToDevice, job->stream[0]));
        CUDA_CHECK_SYNC();
    }
    MEASURE_HOST (l.kernel, reps) {
        iterate<<<grid, BLOCK, 0, job->stream[0]>>>(job->n, job->work, a, b, job->d_data);
        CUDA_CHECK_LAUNCH();
        CUDA_CHECK_SYNC();
    }
    MEASURE_HOST (l.out, reps) {
        CUDA_CHECK(cudaMemcpyAsync(job->h_out, job->d_data, bytes, cudaMemcpyDeviceToHost,
                                   job->stream[0]));
        CUDA_CHECK_SYNC();
    }
    MEASURE_HOST (l.both, reps) { // what arrives in d_data is of no interest here
        CUDA_CHECK(
            cudaMemcpyAsync(job->d_data, job->h_in, bytes, cudaMemcpyHostToDevice, job->stream[0]));
        CUDA_CHECK(cudaMemcpyAsync(job->h_out, job->d_data, bytes, cudaMemcpyDeviceToHost,
                                   job->stream[1]));
        CUDA_CHECK_SYNC();
    }
    int copies = l.both.median_ms >= l.kernel.median_ms;
    l.ms = copies ? l.both.median_ms : l.kernel.median_ms;
    l.part = copies ? "the copies, both ways at once" : "the kernel";
    return l;
}

static void report_limit(const struct limit *l, double bytes)
{
    double bus = bus_limit_gbs();
    report_table("the parts alone", NULL);
    report_rate("copy in", l->in, bytes, "bytes", "GB/s", 1e9, bus, CHECK_NONE);
    report_time("kernel", l->kernel, CHECK_NONE);
    report_rate("copy out", l->out, bytes, "bytes", "GB/s", 1e9, bus, CHECK_NONE);
    report_rate("copy in and out at once", l->both, 2 * bytes, "bytes", "GB/s", 1e9, 2 * bus,
                CHECK_NONE);
    if (!DEVICE_IS_CPU)
        printf("lower limit: %.3f ms, set by %s\n", l->ms, l->part);
    report_number("limit_ms", DEVICE_IS_CPU ? NAN : l->ms);
}

static double two_decimals(double value)
{
    return round(100 * value) / 100;
}

// One row: a version, how much faster than one stream, how many times the lower limit.
static void report_version(const struct job *job, const struct limit *l, int streams, int chunks,
                           struct timing t, double one_stream_ms, int ok)
{
    char name[64];
    double bytes = 2.0 * job->n * sizeof(float); // in and out
    snprintf(name, sizeof(name), "%d stream%s, %d chunk%s", streams, streams == 1 ? "" : "s",
             chunks, chunks == 1 ? "" : "s");
    report_extra(streams);
    report_extra(chunks);
    report_extra(two_decimals(one_stream_ms / t.median_ms));
    report_extra(DEVICE_IS_CPU ? NAN : two_decimals(t.median_ms / l->ms));
    report_rate(name, t, bytes, "bytes", "GB/s", 1e9, DEVICE_IS_CPU ? 0 : bytes / (l->ms * 1e6),
                ok);
}

// The same picture twice, at one scale, from one run each with events around every operation.
static void draw(const struct job *job, int streams, int chunks, double one_ms, double many_ms,
                 struct output_file *trace)
{
    struct timeline versions[2];
    char titles[2][64];
    const int setting[2][2] = {{1, 1}, {streams, chunks}};
    for (int v = 0; v < 2; v++) {
        snprintf(titles[v], sizeof(titles[v]), "timeline, %d stream%s, %d chunk%s", setting[v][0],
                 setting[v][0] == 1 ? "" : "s", setting[v][1], setting[v][1] == 1 ? "" : "s");
        poison(job);
        for (int warm_up = 0; warm_up < 2; warm_up++) // the bus has slept while the host checked
            pipeline(job, setting[v][0], setting[v][1], NULL);
        timeline_begin(&versions[v], titles[v], "stream");
        pipeline(job, setting[v][0], setting[v][1], &versions[v]);
        timeline_finish(&versions[v]);
        verify_result(job, titles[v]);
    }
    printf("\ni copy in, k kernel, o copy out, . nothing in this stream\n");
    double longest = fmax(versions[0].total_ms, versions[1].total_ms);
    for (int v = 0; v < 2; v++)
        timeline_print(&versions[v], longest);
    if (!DEVICE_IS_CPU)
        printf("with these events the two took %.3f and %.3f ms, without them %.3f and %.3f ms\n",
               versions[0].total_ms, versions[1].total_ms, one_ms, many_ms);
    report_number("timeline_one_stream_ms", versions[0].total_ms);
    report_number("timeline_ms", versions[1].total_ms);
    if (trace->stream) {
        timeline_write_trace(trace->stream, versions, 2);
        if (!output_commit(trace))
            lesson_exit(EXIT_FAILED, "--trace %s: could not be written", trace->path);
        printf("trace: %s (open it in ui.perfetto.dev or chrome://tracing)\n", trace->path);
    }
    for (int v = 0; v < 2; v++)
        timeline_free(&versions[v]);
}

static void sweep(const struct job *job, const struct limit *l, double one_stream_ms, int reps)
{
    const int all_streams[] = {1, 2, 3, 4, 8}, all_chunks[] = {2, 4, 8, 16, 32, 64, 128};
    int best_streams = 1, best_chunks = 1;
    double best_ms = one_stream_ms;
    report_table("sweep", "streams", "chunks", "speed-up", "x limit", NULL);
    for (size_t i = 0; i < sizeof(all_streams) / sizeof(int); i++)
        for (size_t j = 0; j < sizeof(all_chunks) / sizeof(int); j++) {
            int ok;
            struct timing t = run(job, all_streams[i], all_chunks[j], reps, &ok);
            report_version(job, l, all_streams[i], all_chunks[j], t, one_stream_ms, ok);
            if (t.median_ms < best_ms) {
                best_ms = t.median_ms;
                best_streams = all_streams[i];
                best_chunks = all_chunks[j];
            }
        }
    printf("best: --streams %d --chunks %d, %.3f ms\n", best_streams, best_chunks, best_ms);
    report_number("best_streams", best_streams);
    report_number("best_chunks", best_chunks);
    report_number("best_ms", best_ms);
}

int main(int argc, char **argv)
{
    struct job job;
    memset(&job, 0, sizeof(job));
    job.n = default_size(64 << 20, 256 << 10);
    job.work = DEVICE_IS_CPU ? 8 : 1024;
    int streams = 4, chunks = 32, want_sweep = 0;
    const char *trace_path = NULL;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &job.n, 1, MAX_PINNED_ELEMENTS, "elements"),
        OPTION_INT("work", &job.work, 0, 1 << 20, "multiply-adds an element in the kernel"),
        OPTION_INT("streams", &streams, 1, MAX_STREAMS, "streams"),
        OPTION_INT("chunks", &chunks, 1, MAX_CHUNKS, "pieces the array is cut into"),
        OPTION_TEXT("trace", &trace_path, "write the timelines to this file, for Perfetto"),
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
    fill_random(job.h_in, job.n, 5);

    int reps = common_options.reps, one_ok, many_ok;
    struct limit limit = measure_limit(&job, reps);
    struct timing one = run(&job, 1, 1, reps, &one_ok);
    struct timing many = run(&job, streams, chunks, reps, &many_ok);
    report_limit(&limit, (double)bytes);
    report_table("copy in, kernel, copy out", "streams", "chunks", "speed-up", "x limit", NULL);
    report_version(&job, &limit, 1, 1, one, one.median_ms, one_ok);
    report_version(&job, &limit, streams, chunks, many, one.median_ms, many_ok);
    draw(&job, streams, chunks, one.median_ms, many.median_ms, &trace);
    if (want_sweep)
        sweep(&job, &limit, one.median_ms, reps < 5 ? reps : 5);

    double speed_up = one.median_ms / many.median_ms;
    report_number("speed_up", speed_up);
    report_number("times_limit", DEVICE_IS_CPU ? NAN : many.median_ms / limit.ms);
    if (!DEVICE_IS_CPU)
        printf(
            "\n%d streams and %d chunks: %.3f ms, %.2f times as fast as one stream and %.2f times "
            "the\nlower limit of %.3f ms (%s).\n",
            streams, chunks, many.median_ms, speed_up, many.median_ms / limit.ms, limit.ms,
            limit.part);

    for (int s = 0; s < MAX_STREAMS; s++)
        CUDA_CHECK(cudaStreamDestroy(job.stream[s]));
    CUDA_CHECK(cudaFree(job.d_data));
    CUDA_CHECK(cudaFreeHost(job.h_in));
    CUDA_CHECK(cudaFreeHost(job.h_out));
    return lesson_end();
}
