// timeline.h - which operation ran when, in which stream: as text and as a trace file.
//
//     struct timeline t;
//     timeline_begin(&t, "two streams", "stream");
//     TIMELINE_SPAN (&t, 0, stream[0], 'i') { CUDA_CHECK(cudaMemcpyAsync(..., stream[0])); }
//     TIMELINE_NEXT (&t, 0, stream[0], 'k') { kernel<<<g, b, 0, stream[0]>>>(...); }
//     timeline_finish(&t);               // waits for the device, reads all times
//     timeline_print(&t, t.total_ms);    // one line a stream, one letter a kind of operation
//
// A span puts an event before and an event after its operation, in the same stream. NEXT is for an
// operation issued right after the span before it in this row, with nothing to wait for in
// between: that span's second event is this one's first, and the run is disturbed less. With NULL
// instead of &t the operation runs alone, so that the same code can also be timed.
//
// The event before an operation says when the stream was ready for it. A copy may then still
// wait, because the copy engine of its direction works on another stream's copy: an engine does
// one copy at a time. Such a copy begins when the one before it on the engine ends, and is drawn
// so. Kernels of different streams can share the GPU; they are drawn from event to event.
#ifndef COMMON_TIMELINE_H
#define COMMON_TIMELINE_H

#include "device.h"
#include "output.h"
#include "report.h"

enum { TIMELINE_COLUMNS = 96 };
#define TIMELINE_COPY_IN 'i' // the two letters with a meaning: copies, which share engines
#define TIMELINE_COPY_OUT 'o'

struct timeline_span {
    int row; // the stream's line in the picture
    char letter;
    int follows; // `before` is the `after` of an earlier span, and that span's to destroy
    cudaEvent_t before, after;
    double ready_ms, begin_ms, end_ms; // since the first span was ready; ready <= begin <= end
};

struct timeline {
    const char *title, *row_name;
    int rows;
    size_t count, capacity;
    struct timeline_span *spans;
    double total_ms; // from the first operation's begin to the last one's end
    cudaEvent_t origin;
};

// row_name: "stream" names the lines "stream 0", "stream 1" ...
static inline void timeline_begin(struct timeline *t, const char *title, const char *row_name)
{
    memset(t, 0, sizeof(*t));
    t->title = title;
    t->row_name = row_name;
    CUDA_CHECK_SYNC(); // nothing from before belongs into the picture
    CUDA_CHECK(cudaEventCreate(&t->origin));
    CUDA_CHECK(cudaEventRecord(t->origin, cudaStreamLegacy));
    CUDA_CHECK(cudaEventSynchronize(t->origin)); // and no stream has to wait for it
}

// The last span of a row; NULL when it has none yet.
static inline struct timeline_span *timeline_last(struct timeline *t, int row)
{
    for (size_t i = t->count; i > 0; i--)
        if (t->spans[i - 1].row == row)
            return &t->spans[i - 1];
    return NULL;
}

static inline int timeline_before(struct timeline *t, int row, cudaStream_t stream, char letter,
                                  int next)
{
    if (!t)
        return 1;
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 64;
        t->spans =
            (struct timeline_span *)realloc(t->spans, t->capacity * sizeof(struct timeline_span));
        if (!t->spans)
            lesson_exit(EXIT_FAILED, "no host memory for the timeline");
    }
    const struct timeline_span *last = next ? timeline_last(t, row) : NULL;
    struct timeline_span *span = &t->spans[t->count++];
    memset(span, 0, sizeof(*span));
    span->row = row;
    span->letter = letter;
    if (row >= t->rows)
        t->rows = row + 1;
    CUDA_CHECK(cudaEventCreate(&span->after));
    span->follows = last != NULL;
    if (last) {
        span->before = last->after;
    } else {
        CUDA_CHECK(cudaEventCreate(&span->before));
        CUDA_CHECK(cudaEventRecord(span->before, stream));
    }
    return 1;
}

static inline int timeline_after(struct timeline *t, cudaStream_t stream)
{
    if (t)
        CUDA_CHECK(cudaEventRecord(t->spans[t->count - 1].after, stream));
    return 0;
}

#define TIMELINE_STEP(t, row, stream, letter, next)                                                \
    for (int span_ = timeline_before((t), (row), (stream), (letter), (next)); span_;               \
         span_ = timeline_after((t), (stream)))
#define TIMELINE_SPAN(t, row, stream, letter) TIMELINE_STEP(t, row, stream, letter, 0)
#define TIMELINE_NEXT(t, row, stream, letter) TIMELINE_STEP(t, row, stream, letter, 1)

// Do the two spans use the same copy engine? A GPU with one engine uses it for both directions.
static inline int timeline_share_engine(const struct timeline_span *a,
                                        const struct timeline_span *b, int engines)
{
    int a_copies = a->letter == TIMELINE_COPY_IN || a->letter == TIMELINE_COPY_OUT;
    int b_copies = b->letter == TIMELINE_COPY_IN || b->letter == TIMELINE_COPY_OUT;
    return a_copies && b_copies && (a->letter == b->letter || engines == 1);
}

// A copy begins no earlier than the one before it on its engine ends.
static inline void timeline_queue_copies(struct timeline *t)
{
    int engines = device_attribute(cudaDevAttrAsyncEngineCount);
    for (size_t i = 0; i < t->count; i++)
        for (size_t j = 0; j < t->count; j++) {
            struct timeline_span *span = &t->spans[i];
            const struct timeline_span *other = &t->spans[j];
            if (other->end_ms < span->end_ms && other->end_ms > span->begin_ms &&
                timeline_share_engine(span, other, engines))
                span->begin_ms = other->end_ms;
        }
}

// Waits for everything and turns the events into milliseconds.
static inline void timeline_finish(struct timeline *t)
{
    double zero_ms = 0;
    CUDA_CHECK_SYNC();
    for (size_t i = 0; i < t->count; i++) {
        struct timeline_span *span = &t->spans[i];
        float ready = 0, end = 0;
        CUDA_CHECK(cudaEventElapsedTime(&ready, t->origin, span->before));
        CUDA_CHECK(cudaEventElapsedTime(&end, t->origin, span->after));
        span->ready_ms = span->begin_ms = ready;
        span->end_ms = end < ready ? ready : end; // both are rounded to the timer's tick
        if (i == 0 || span->ready_ms < zero_ms)
            zero_ms = span->ready_ms;
    }
    CUDA_CHECK(cudaEventDestroy(t->origin));
    for (size_t i = 0; i < t->count; i++) {
        struct timeline_span *span = &t->spans[i];
        if (!span->follows)
            CUDA_CHECK(cudaEventDestroy(span->before));
        CUDA_CHECK(cudaEventDestroy(span->after));
        span->ready_ms -= zero_ms;
        span->begin_ms -= zero_ms;
        span->end_ms -= zero_ms;
        if (span->end_ms > t->total_ms)
            t->total_ms = span->end_ms;
    }
    timeline_queue_copies(t);
}

static inline int timeline_column(double ms, double ms_per_column)
{
    int column = (int)(ms / ms_per_column + 0.5);
    return column < 0 ? 0 : column > TIMELINE_COLUMNS ? TIMELINE_COLUMNS : column;
}

// Draws the lines, TIMELINE_COLUMNS characters for shown_ms: give two timelines the same shown_ms to
// compare them by eye. What comes after shown_ms is left out.
static inline void timeline_print(const struct timeline *t, double shown_ms)
{
    double ms_per_column = shown_ms > 0 ? shown_ms / TIMELINE_COLUMNS : 1;
    int end = timeline_column(t->total_ms, ms_per_column);
    printf("%s: ", t->title);
    if (shown_ms < t->total_ms)
        printf("the first %.3f of ", shown_ms);
    printf("%.3f ms, one character is %.4f ms\n", t->total_ms, ms_per_column);
    for (int row = 0; row < t->rows; row++) {
        char line[TIMELINE_COLUMNS + 1];
        memset(line, '.', sizeof(line));
        line[end > 0 ? end : 1] = '\0';
        // Spans of less than half a character would vanish: they get one, after all others.
        for (int pass = 0; pass < 2; pass++)
            for (size_t i = 0; i < t->count; i++) {
                const struct timeline_span *span = &t->spans[i];
                int first = timeline_column(span->begin_ms, ms_per_column);
                int last = timeline_column(span->end_ms, ms_per_column);
                if (span->row != row || span->begin_ms > shown_ms || (pass == 1) != (first == last))
                    continue;
                if (first == last) {
                    first = (int)(0.5 * (span->begin_ms + span->end_ms) / ms_per_column);
                    first = first >= end && end > 0 ? end - 1 : first;
                    last = first + 1;
                }
                memset(line + first, span->letter, (size_t)(last - first));
            }
        printf("  %s %d |%s|\n", t->row_name, row, line);
    }
}

static inline void timeline_free(struct timeline *t)
{
    free(t->spans);
    t->spans = NULL;
    t->count = t->capacity = 0;
}

// What this device can overlap, in one line.
static inline void overlap_print(void)
{
    int engines = device_attribute(cudaDevAttrAsyncEngineCount);
    int concurrent = device_attribute(cudaDevAttrConcurrentKernels);
    if (DEVICE_IS_CPU) {
        printf("CPU backend: every operation runs at once, in the order of the calls. The results "
               "are right, but\nnothing overlaps here.\n");
        return;
    }
    printf("%d copy engine%s: %s; kernels of different streams %s\n", engines,
           engines == 1 ? "" : "s",
           engines == 0   ? "a copy and a kernel cannot overlap on this GPU"
           : engines == 1 ? "a copy can overlap a kernel, but not a copy the other way"
                          : "a copy in, a kernel and a copy out can overlap",
           concurrent ? "can run at the same time" : "run one after another on this GPU");
}

// ---- the trace file: Chrome's trace event format, for ui.perfetto.dev or chrome://tracing

static inline const char *timeline_letter_name(char letter, char text[16])
{
    if (letter == TIMELINE_COPY_IN)
        return "copy in";
    if (letter == TIMELINE_COPY_OUT)
        return "copy out";
    snprintf(text, 16, letter == 'k' ? "kernel" : "kernel %c", letter);
    return text;
}

// Whole nanoseconds: ends are compared and subtracted without rounding twice.
static inline long long timeline_ns(double ms)
{
    return (long long)(ms * 1e6 + 0.5);
}

// Writes `count` timelines into one file, each as a process of its own with a row a stream.
static inline void timeline_write_trace(FILE *f, const struct timeline *timelines, int count)
{
    fprintf(f, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n");
    for (int pid = 0; pid < count; pid++) {
        const struct timeline *t = &timelines[pid];
        fprintf(f,
                "%s{\"ph\": \"M\", \"name\": \"process_name\", \"pid\": %d, \"args\": {\"name\": ",
                pid ? ",\n" : "", pid + 1);
        json_string(f, t->title);
        fprintf(f, "}}");
        for (int row = 0; row < t->rows; row++)
            fprintf(f,
                    ",\n{\"ph\": \"M\", \"name\": \"thread_name\", \"pid\": %d, \"tid\": %d, "
                    "\"args\": {\"name\": \"%s %d\"}}",
                    pid + 1, row, t->row_name, row);
        for (size_t i = 0; i < t->count; i++) {
            const struct timeline_span *span = &t->spans[i];
            long long begin = timeline_ns(span->begin_ms), end = timeline_ns(span->end_ms);
            char name[16];
            fprintf(f,
                    ",\n{\"ph\": \"X\", \"name\": \"%s\", \"pid\": %d, \"tid\": %d, \"ts\": %.3f, "
                    "\"dur\": %.3f, \"args\": {\"waited_us\": %.3f}}",
                    timeline_letter_name(span->letter, name), pid + 1, span->row,
                    1e-3 * (double)begin, 1e-3 * (double)(end - begin),
                    1e-3 * (double)(begin - timeline_ns(span->ready_ms)));
        }
    }
    fprintf(f, "\n]}\n");
}

#endif
