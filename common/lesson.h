// lesson.h - the one include of a lesson, and the frame around its main():
//
//     int main(int argc, char **argv)
//     {
//         size_t n = default_size(1 << 26, 1 << 20);
//         const struct option_spec options[] = {
//             OPTION_SIZE("n", &n, 0, MAX_ELEMENTS, "elements"), OPTION_END};
//         lesson_begin(argc, argv, "02_saxpy/saxpy", "y = a*x + y, start to end", options);
//         ... allocate, copy in, launch, copy out, check, free ...
//         return lesson_end();
//     }
#ifndef COMMON_LESSON_H
#define COMMON_LESSON_H

#include "check.h"
#include "device.h"
#include "options.h"
#include "report.h"
#include "timer.h"
#include "verify.h"

// Reads the command line, chooses the device and prints what runs where. id: "folder/program".
// Ends the program with 64 (wrong command line), 2 (no usable GPU), 1 (wrong build) or 0 (--help).
static inline void lesson_begin(int argc, char **argv, const char *id, const char *about,
                                const struct option_spec *specs)
{
    const char *slash = strrchr(id, '/');
    report.id = id;
    report.about = about;
    report.specs = specs;
    options_parse(argc, argv, slash ? slash + 1 : id, about, specs);
    json_open();
    device_select(common_options.device);
    printf("%s: %s\n", id, about);
    device_print();
}

// This machine cannot show the lesson: the reason and what to do on one line, exit code 2.
#define lesson_waive(...) lesson_exit(EXIT_WAIVED, "waived: " __VA_ARGS__)

// The last line of a lesson and the exit code of main.
static inline int lesson_end(void)
{
    lesson_outcome.exit_code = checks.failed ? EXIT_FAILED : EXIT_OK;
    if (checks.failed)
        printf("\nFAILED: %d of %d checks\n", checks.failed, checks.done);
    else if (checks.done)
        printf("\nok: %d check%s\n", checks.done, checks.done == 1 ? "" : "s");
    json_finish();
    return lesson_outcome.exit_code;
}

#endif
