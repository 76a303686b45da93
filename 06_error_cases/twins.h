// twins.h - the frame of this lesson's programs. A case is a pair of functions: one that fails on
// purpose and its fixed twin. A program lists its pairs and hands them to twin_main():
//
//     ./launch_failure                         lists its cases
//     ./launch_failure null_pointer            runs the broken function
//     ./launch_failure null_pointer --fixed    runs the fixed twin
//
// In a broken function every CUDA call that matters stands in one of
//   STEP(call)                      prints the call and what it returned
//   RESULT(call)                    the same; this is the error that the case is about
//   SYMPTOM(holds, format, ...)     for cases without an error code: what was seen instead
//   RATIO(slow, fast)               for slow code: how many times slower
// What is expected stands in cases.h alone. Exit codes: 0 it failed as expected, 1 it did not.
#ifndef ERROR_CASES_TWINS_H
#define ERROR_CASES_TWINS_H

#include "../common/lesson.h"
#include "cases.h"
#include <sys/wait.h>

struct twin {
    const char *name;
    void (*broken)(void);
    void (*fixed)(void);
};
#define TWIN(name)                                                                                 \
    {                                                                                              \
#name, name##_broken, name##_fixed                                                         \
    }

static struct {
    const struct error_case *c; // the case that runs
    int results;                // how often RESULT, SYMPTOM or RATIO was reached
    int really;                 // --really: the user allows what disturbs others
} twin_state;

#define STEP(call) twin_step((call), #call)
#define RESULT(call) twin_result((call), #call)
#define SYMPTOM(holds, ...) twin_symptom((holds) != 0, __VA_ARGS__)
#define RATIO(slow, fast) twin_ratio((slow).median_ms / (fast).median_ms)
#define twin_waive(...) lesson_waive(__VA_ARGS__)

// One line for the runner, on the file descriptor that it named; nothing when run by hand.
__attribute__((format(printf, 1, 2))) static inline void twin_tell_runner(const char *format, ...)
{
    const char *fd = getenv(RUNNER_FD);
    if (!fd)
        return;
    va_list args;
    va_start(args, format);
    vdprintf(atoi(fd), format, args);
    va_end(args);
}

static inline cudaError_t twin_step(cudaError_t error, const char *call)
{
    printf("  %-66s -> %d %s\n", call, (int)error, cudaGetErrorName(error));
    return error;
}

// `error` is what the case is about: one of the numbers that the table accepts?
static inline void twin_result(cudaError_t error, const char *call)
{
    twin_state.results++;
    twin_step(error, call);
    int accepted = case_accepts(twin_state.c, (int)error);
    printf("  %s: %d %s, \"%s\"\n", accepted ? "as expected" : "NOT as expected", (int)error,
           cudaGetErrorName(error), cudaGetErrorString(error));
    twin_tell_runner("error|%d|%s|%s\n", (int)error, cudaGetErrorName(error), call);
    check_that(accepted, "%s: expected %s, got %d %s", twin_state.c->name, twin_state.c->expected,
               (int)error, cudaGetErrorName(error));
}

__attribute__((format(printf, 2, 3))) static inline void twin_symptom(int holds, const char *format,
                                                                      ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    twin_state.results++;
    printf("  %s: %s\n", holds ? "as expected" : "NOT as expected", text);
    twin_tell_runner("symptom|%s\n", text);
    check_that(holds, "%s: expected %s, got: %s", twin_state.c->name, twin_state.c->expected, text);
}

static inline void twin_ratio(double ratio)
{
    twin_state.results++;
    if (DEVICE_IS_CPU && checks.failed == 0)
        twin_waive("both twins gave the right result, but times on the CPU backend say nothing "
                   "about a GPU");
    printf("  %s: %.1f times slower (checked: at least %.1f times)\n",
           ratio >= twin_state.c->ratio ? "as expected" : "NOT as expected", ratio,
           twin_state.c->ratio);
    twin_tell_runner("ratio|%.3f\n", ratio);
    check_that(ratio >= twin_state.c->ratio, "%s: only %.2f times slower, at least %.1f expected",
               twin_state.c->name, ratio, twin_state.c->ratio);
}

// 1 under the Windows Subsystem for Linux, where the driver pages device memory to the host.
static inline int on_wsl(void)
{
    return access("/dev/dxg", F_OK) == 0;
}

// Free and total device memory, in one line.
static inline size_t show_memory(const char *when)
{
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    printf("  %-28s %.1f of %.1f MiB of the device are free\n", when, free_bytes / 1048576.0,
           total_bytes / 1048576.0);
    return free_bytes;
}

static inline void twin_list(const char *program, const struct twin *twins, int count)
{
    printf("\nusage: %s CASE [--fixed]\n", program);
    for (int i = 0; i < count; i++)
        printf("  %-24s %s\n", twins[i].name, case_find(twins[i].name)->question);
    printf("\nerror_cases CASE runs both twins and explains; error_cases lists all cases.\n");
}

// For the tests: a broken twin that hangs, crashes or does not fail, so that they can see whether
// the runner notices.
static inline void twin_sabotage(const struct twin *t)
{
    const char *how = getenv("ERROR_CASES_SABOTAGE");
    if (how && strcmp(how, "hang") == 0)
        for (;;)
            pause();
    if (how && strcmp(how, "crash") == 0)
        abort();
    if (how && strcmp(how, "pass") == 0)
        t->fixed();
    else
        t->broken();
}

static inline int twin_main(int argc, char **argv, const char *id, const char *about,
                            const struct twin *twins, int count)
{
    const char *name = NULL, *program = strrchr(id, '/') + 1;
    int fixed = 0;
    const struct option_spec options[] = {
        OPTION_TEXT(NULL, &name, "the case to run; without it: the list"),
        OPTION_FLAG("fixed", &fixed, "run the fixed twin"),
        OPTION_FLAG("really", &twin_state.really, "allow what disturbs other users of the GPU"),
        OPTION_END,
    };
    setvbuf(stdout, NULL, _IOLBF, 0); // so that stdout and stderr keep their order in one file
    report.id = id;
    report.about = about;
    report.specs = options;
    options_parse(argc, argv, program, about, options);
    json_open();
    printf("%s: %s\n", id, about);
    if (!name) {
        twin_list(program, twins, count);
        return EXIT_OK;
    }
    const struct twin *t = NULL;
    for (int i = 0; i < count; i++)
        if (strcmp(twins[i].name, name) == 0)
            t = &twins[i];
    if (!t)
        lesson_exit(EXIT_BAD_USAGE, "%s: unknown case '%s' (without arguments: the list)", program,
                    name);
    twin_state.c = case_find(name);
    if (DEVICE_IS_CPU && !(twin_state.c->flags & ON_CPU))
        twin_waive("%s needs a GPU: %s", name, twin_state.c->needs);
    if (!(twin_state.c->flags & STARTS_CUDA_ITSELF)) {
        device_select(common_options.device);
        device_print();
    }
    if (!fixed)
        printf("expected: %s\n", twin_state.c->expected);
    printf(TWIN_MARK "%s, %s\n", name, fixed ? "fixed" : "broken on purpose");
    if (fixed)
        t->fixed();
    else
        twin_sabotage(t);
    if (!fixed)
        check_that(twin_state.results > 0, "%s: the broken twin did not fail", name);
    return lesson_end();
}

#define TWINS_MAIN(id, about, twins)                                                               \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return twin_main(argc, argv, id, about, twins, (int)(sizeof(twins) / sizeof(twins[0])));   \
    }

#endif
