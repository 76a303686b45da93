// timer.h - honest times: a warm-up, several runs, the median with its extremes.
//
//     struct timing t;
//     MEASURE_GPU(t, reps) { kernel<<<grid, block>>>(...); CUDA_CHECK_LAUNCH(); }
//
// The body runs once to warm up and then `reps` times, an event before and after each run.
// The runs are queued back to back, so that the device never waits for the host between two
// of them; the host waits once, at the end. MEASURE_HOST does the same with the host's clock:
// its body must wait for the device itself, or it times nothing but the call.
#ifndef COMMON_TIMER_H
#define COMMON_TIMER_H

#include "check.h"
#include <time.h>

enum { TIMER_MAX_REPS = 1000 };

struct timing {
    double median_ms, min_ms, max_ms;
    int reps;
};

// Seconds on the host's monotonic clock.
static inline double host_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static inline int timer_compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// Median, minimum and maximum of `count` samples in milliseconds; sorts them in place.
static inline struct timing timing_of(double *samples_ms, int count)
{
    struct timing t = {0, 0, 0, count};
    if (count < 1)
        return t;
    qsort(samples_ms, (size_t)count, sizeof(double), timer_compare);
    t.min_ms = samples_ms[0];
    t.max_ms = samples_ms[count - 1];
    t.median_ms = 0.5 * (samples_ms[(count - 1) / 2] + samples_ms[count / 2]);
    return t;
}

// A time measured once, by whatever means.
static inline struct timing timing_once(double ms)
{
    struct timing t = {ms, ms, ms, 1};
    return t;
}

struct measurement_loop {
    struct timing *result;
    int reps, runs; // runs: how many have begun; run 0 is the warm-up
    int on_gpu;
    cudaEvent_t *events; // events[i] stands before run i + 1
    double *stamps;      // the same for the host's clock, in seconds
};

static inline struct measurement_loop measure_begin(struct timing *result, int reps, int on_gpu)
{
    struct measurement_loop loop = {result, reps, 0, on_gpu, NULL, NULL};
    size_t marks = (size_t)reps + 1;
    loop.stamps = (double *)host_malloc(marks * sizeof(double));
    loop.events = (cudaEvent_t *)host_malloc(marks * sizeof(cudaEvent_t));
    for (size_t i = 0; on_gpu && i < marks; i++)
        CUDA_CHECK(cudaEventCreate(&loop.events[i]));
    return loop;
}

static inline void measure_finish(struct measurement_loop *loop)
{
    if (loop->on_gpu)
        CUDA_CHECK(cudaEventSynchronize(loop->events[loop->reps]));
    for (int i = 0; i < loop->reps; i++) {
        float gpu_ms = 0;
        if (loop->on_gpu)
            CUDA_CHECK(cudaEventElapsedTime(&gpu_ms, loop->events[i], loop->events[i + 1]));
        double host_ms = 1e3 * (loop->stamps[i + 1] - loop->stamps[i]);
        loop->stamps[i] = loop->on_gpu ? (double)gpu_ms : host_ms; // stamp i is needed no more
    }
    *loop->result = timing_of(loop->stamps, loop->reps);
    for (int i = 0; loop->on_gpu && i <= loop->reps; i++)
        CUDA_CHECK(cudaEventDestroy(loop->events[i]));
    free(loop->events);
    free(loop->stamps);
}

// Called before each run, and once after the last: sets the marks between the runs.
static inline int measure_next(struct measurement_loop *loop)
{
    int mark = loop->runs++ - 1; // the first call stands before the warm-up: no mark
    if (mark < 0)
        return 1;
    if (loop->on_gpu)
        CUDA_CHECK(cudaEventRecord(loop->events[mark]));
    loop->stamps[mark] = host_seconds();
    if (mark < loop->reps)
        return 1;
    measure_finish(loop);
    return 0;
}

#define MEASURE_GPU(t, reps)                                                                       \
    for (struct measurement_loop loop_ = measure_begin(&(t), (reps), 1); measure_next(&loop_);)
#define MEASURE_HOST(t, reps)                                                                      \
    for (struct measurement_loop loop_ = measure_begin(&(t), (reps), 0); measure_next(&loop_);)

#endif
