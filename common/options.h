// options.h - the command line, the same for every program; getopt_long does the parsing.
//
// A program lists its options in an array of struct option_spec, made with the OPTION_ macros,
// and ends it with OPTION_END. --help, --device, --json and --reps are added to every list.
// A value is taken whole or not at all: "12abc", "", "-1", "1e99" end the program with one line
// and exit code 64.
#ifndef COMMON_OPTIONS_H
#define COMMON_OPTIONS_H

#include "timer.h"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdint.h>

enum option_kind {
    KIND_END,
    KIND_FLAG,
    KIND_SIZE,
    KIND_INT,
    KIND_REAL,
    KIND_TEXT,
    KIND_CHOICE,
    KIND_DIM3
};

struct option_spec {
    const char *name; // without the dashes; NULL: the one positional argument
    enum option_kind kind;
    void *value;         // where the parsed value goes; it holds the default before
    double low, high;    // smallest and largest value taken
    const char *what;    // one line for --help; for KIND_CHOICE the names come from `choices`
    const char *choices; // "one|two|three": the value becomes 0, 1, 2
};

// int flag: 1 when given
#define OPTION_FLAG(name, var, what)                                                               \
    {                                                                                              \
        name, KIND_FLAG, (var), 0, 1, what, NULL                                                   \
    }
// size_t with k, M, G for powers of 1024
#define OPTION_SIZE(name, var, low, high, what)                                                    \
    {                                                                                              \
        name, KIND_SIZE, (var), (double)(low), (double)(high), what, NULL                          \
    }
// int
#define OPTION_INT(name, var, low, high, what)                                                     \
    {                                                                                              \
        name, KIND_INT, (var), low, high, what, NULL                                               \
    }
// double
#define OPTION_REAL(name, var, low, high, what)                                                    \
    {                                                                                              \
        name, KIND_REAL, (var), low, high, what, NULL                                              \
    }
// const char *
#define OPTION_TEXT(name, var, what)                                                               \
    {                                                                                              \
        name, KIND_TEXT, (var), 0, 0, what, NULL                                                   \
    }
// int: index into "one|two|three"
#define OPTION_CHOICE(name, var, choices, what)                                                    \
    {                                                                                              \
        name, KIND_CHOICE, (var), 0, 0, what, choices                                              \
    }
// dim3 from "x", "x,y" or "x,y,z"
#define OPTION_DIM3(name, var, what)                                                               \
    {                                                                                              \
        name, KIND_DIM3, (var), 1, 2147483647.0, what, NULL                                        \
    }
#define OPTION_END                                                                                 \
    {                                                                                              \
        NULL, KIND_END, NULL, 0, 0, NULL, NULL                                                     \
    }

// The default of an OPTION_SIZE whose value then comes from elsewhere, such as another option.
#define SIZE_NOT_GIVEN SIZE_MAX
// Sizes beyond this are typing errors: 2^44 floats are 64 TiB.
#define MAX_ELEMENTS ((size_t)1 << 44)

struct common_options {
    int device;
    int reps;
    const char *json; // NULL: no JSON; "-": on stdout
};
static struct common_options common_options = {0, 10, NULL};

// 1 and the value when `text` is, whole, a non-negative whole number with an optional k, M or G.
static inline int parse_size(const char *text, size_t *value)
{
    if (text[0] < '0' || text[0] > '9')
        return 0; // strtoull would take spaces and a sign
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    int shift = 0;
    if (*end == 'k' || *end == 'K')
        shift = 10;
    else if (*end == 'M')
        shift = 20;
    else if (*end == 'G')
        shift = 30;
    if (shift)
        end++;
    if (errno || *end != '\0' || number > (SIZE_MAX >> shift))
        return 0;
    *value = (size_t)number << shift;
    return 1;
}

static inline int parse_real(const char *text, double *value)
{
    char *end;
    if (text[0] == '\0' || text[0] == ' ' || strpbrk(text, "xX"))
        return 0; // strtod would take hexadecimal
    errno = 0;
    *value = strtod(text, &end);
    return !errno && *end == '\0' && isfinite(*value);
}

static inline int parse_int(const char *text, int *value)
{
    char *end;
    if (text[0] == '\0' || text[0] == ' ')
        return 0;
    errno = 0;
    long number = strtol(text, &end, 10);
    *value = (int)number;
    return !errno && *end == '\0' && number == (long)*value;
}

// "one" in "one|two|three": 1 and its index.
static inline int parse_choice(const char *text, const char *choices, int *value)
{
    size_t length = strlen(text);
    int index = 0;
    for (const char *c = choices; length > 0; c++, index++) {
        const char *end = strchr(c, '|');
        size_t n = end ? (size_t)(end - c) : strlen(c);
        if (n == length && strncmp(c, text, n) == 0) {
            *value = index;
            return 1;
        }
        if (!end)
            break;
        c = end;
    }
    return 0;
}

// "8", "8,4" or "8,4,2"; what is not named is 1.
static inline int parse_dim3(const char *text, dim3 *value)
{
    unsigned sides[3] = {1, 1, 1};
    for (int i = 0; i < 3; i++) {
        if (text[0] < '0' || text[0] > '9')
            return 0;
        char *end;
        errno = 0;
        unsigned long side = strtoul(text, &end, 10);
        if (errno || side > 2147483647UL)
            return 0;
        sides[i] = (unsigned)side;
        if (*end == '\0') {
            *value = dim3(sides[0], sides[1], sides[2]);
            return 1;
        }
        if (*end != ',')
            return 0;
        text = end + 1;
    }
    return 0;
}

// "2k", "64M": the shortest exact way to write a size.
static inline const char *size_text(size_t value, char text[32])
{
    const char *suffix = "";
    const char *const suffixes[] = {"k", "M", "G"};
    for (int i = 0; i < 3 && value && value % 1024 == 0; i++) {
        value /= 1024;
        suffix = suffixes[i];
    }
    snprintf(text, 32, "%zu%s", value, suffix);
    return text;
}

static inline void option_expects(const struct option_spec *o, char *text, size_t size)
{
    char low[32], high[32];
    switch (o->kind) {
    case KIND_SIZE:
        snprintf(text, size, "a size from %s to %s (k, M, G are powers of 1024)",
                 size_text((size_t)o->low, low), size_text((size_t)o->high, high));
        break;
    case KIND_INT:
        snprintf(text, size, "a whole number from %.0f to %.0f", o->low, o->high);
        break;
    case KIND_REAL:
        snprintf(text, size, "a number from %g to %g", o->low, o->high);
        break;
    case KIND_CHOICE:
        snprintf(text, size, "one of %s", o->choices);
        break;
    case KIND_DIM3:
        snprintf(text, size, "x or x,y or x,y,z");
        break;
    default:
        snprintf(text, size, "a text");
        break;
    }
}

// Parses `text` into *o->value; 1 when it fits the option's kind and range.
static inline int option_take(const struct option_spec *o, const char *text)
{
    size_t size;
    double real;
    int number;
    switch (o->kind) {
    case KIND_SIZE:
        if (!parse_size(text, &size) || (double)size < o->low || (double)size > o->high)
            return 0;
        *(size_t *)o->value = size;
        return 1;
    case KIND_INT:
        if (!parse_int(text, &number) || number < o->low || number > o->high)
            return 0;
        *(int *)o->value = number;
        return 1;
    case KIND_REAL:
        if (!parse_real(text, &real) || real < o->low || real > o->high)
            return 0;
        *(double *)o->value = real;
        return 1;
    case KIND_CHOICE:
        return parse_choice(text, o->choices, (int *)o->value);
    case KIND_DIM3:
        return parse_dim3(text, (dim3 *)o->value);
    case KIND_TEXT:
        *(const char **)o->value = text;
        return text[0] != '\0';
    default:
        return 0;
    }
}

static inline void option_apply(const char *program, const struct option_spec *o, const char *text)
{
    char expects[256];
    if (option_take(o, text))
        return;
    option_expects(o, expects, sizeof(expects));
    lesson_exit(EXIT_BAD_USAGE, "%s: %s%s takes %s, not '%s'", program, o->name ? "--" : "",
                o->name ? o->name : "the argument", expects, text);
}

// The value of an option as text, as --help and the JSON show it.
static inline const char *option_value_text(const struct option_spec *o, char text[64])
{
    char size[32];
    const dim3 *d = (const dim3 *)o->value;
    switch (o->kind) {
    case KIND_FLAG:
        snprintf(text, 64, "%s", *(int *)o->value ? "yes" : "no");
        break;
    case KIND_SIZE:
        snprintf(text, 64, "%s",
                 *(size_t *)o->value == SIZE_NOT_GIVEN ? "not given"
                                                       : size_text(*(size_t *)o->value, size));
        break;
    case KIND_INT:
        snprintf(text, 64, "%d", *(int *)o->value);
        break;
    case KIND_REAL:
        snprintf(text, 64, "%g", *(double *)o->value);
        break;
    case KIND_CHOICE: {
        const char *c = o->choices;
        for (int i = *(int *)o->value; i > 0 && strchr(c, '|'); i--)
            c = strchr(c, '|') + 1;
        snprintf(text, 64, "%.*s", (int)strcspn(c, "|"), c);
        break;
    }
    case KIND_DIM3:
        snprintf(text, 64, "%u,%u,%u", d->x, d->y, d->z);
        break;
    default:
        snprintf(text, 64, "%.60s", *(const char **)o->value ? *(const char **)o->value : "none");
        break;
    }
    return text;
}

static inline void options_help_line(const struct option_spec *o)
{
    static const char *const takes[] = {"", "", " SIZE", " N", " X", " TEXT", " NAME", " X,Y,Z"};
    char left[64], value[64];
    snprintf(left, sizeof(left), "%s%s%s", o->name ? "--" : "", o->name ? o->name : "[N]",
             o->name ? takes[o->kind] : "");
    printf("  %-18s %s", left, o->what);
    if (o->kind == KIND_CHOICE)
        printf(" (%s)", o->choices);
    if (o->kind != KIND_FLAG)
        printf(" [%s]", option_value_text(o, value));
    printf("\n");
}

static const struct option_spec options_common[] = {
    OPTION_INT("device", &common_options.device, 0, 1023, "the device to run on"),
    OPTION_INT("reps", &common_options.reps, 1, TIMER_MAX_REPS, "timed runs after the warm-up"),
    OPTION_TEXT("json", &common_options.json,
                "write the results to this file as JSON, - for stdout"),
    OPTION_END,
};

__attribute__((noreturn)) static inline void options_help(const char *program, const char *about,
                                                          const struct option_spec *specs)
{
    printf("%s: %s\n\nusage: %s [options]\n", program, about, program);
    for (const struct option_spec *o = specs; o->kind != KIND_END; o++)
        options_help_line(o);
    for (const struct option_spec *o = options_common; o->kind != KIND_END; o++)
        options_help_line(o);
    printf(
        "  %-18s this text\n\nSizes take k, M, G (powers of 1024). The value in brackets is the "
        "default.\nExit codes: 0 shown and right, 1 a check or a CUDA call failed, 2 waived (not "
        "possible\non this machine), 64 wrong command line.\n",
        "--help");
    exit(EXIT_OK);
}

// Reads argv into the variables that `specs` and the common options name.
static inline void options_parse(int argc, char **argv, const char *program, const char *about,
                                 const struct option_spec *specs)
{
    enum { MAX_OPTIONS = 32 };
    const struct option_spec *known[MAX_OPTIONS];
    struct option longs[MAX_OPTIONS + 2];
    const struct option_spec *positional = NULL;
    int count = 0;
    const struct option_spec *const lists[] = {specs, options_common};
    for (int list = 0; list < 2; list++)
        for (const struct option_spec *o = lists[list]; o->kind != KIND_END; o++) {
            if (!o->name) {
                positional = o;
            } else if (count < MAX_OPTIONS) {
                struct option entry = {o->name,
                                       o->kind == KIND_FLAG ? no_argument : required_argument, NULL,
                                       256 + count};
                longs[count] = entry;
                known[count++] = o;
            }
        }
    struct option help = {"help", no_argument, NULL, 'h'}, end = {NULL, 0, NULL, 0};
    longs[count] = help;
    longs[count + 1] = end;

    opterr = 0;
    int code;
    while ((code = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
        if (code == 'h')
            options_help(program, about, specs);
        if (code == '?' && optopt > 0 && optopt < 256)
            lesson_exit(EXIT_BAD_USAGE, "%s: unknown option '-%c' (--help lists the options)",
                        program, optopt);
        if (code == '?' || code == ':')
            lesson_exit(EXIT_BAD_USAGE, "%s: %s '%s' (--help lists the options)", program,
                        code == ':' ? "a value is missing after" : "cannot take the option",
                        argv[optind - 1]);
        const struct option_spec *o = known[code - 256];
        if (o->kind == KIND_FLAG)
            *(int *)o->value = 1;
        else
            option_apply(program, o, optarg);
    }
    for (; optind < argc; optind++) {
        if (!positional)
            lesson_exit(EXIT_BAD_USAGE, "%s: unexpected argument '%s' (--help lists the options)",
                        program, argv[optind]);
        option_apply(program, positional, argv[optind]);
        positional = NULL; // one is enough
    }
}

#endif
