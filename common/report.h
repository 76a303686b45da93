// report.h - results: a table on the screen, the same rows as JSON with --json.
//
//     report_table("one element a thread", "block", "occupancy %", NULL);   // extra columns
//     report_extra(256); report_extra(100);                                 // of the next row
//     report_bandwidth("saxpy", t, 3.0 * n * sizeof(float), ok);
//
// GB is 1e9 bytes and TFLOP/s 1e12 operations a second; a rate is printed with its percentage of
// the device's limit where that limit is known, and with a warning when it is above it.
#ifndef COMMON_REPORT_H
#define COMMON_REPORT_H

#include "device.h"
#include "options.h"
#include "output.h"
#include "verify.h"

enum { CHECK_NONE = -1, CHECK_FAILED = 0, CHECK_OK = 1 }; // the `check` of a row
enum { REPORT_MAX_EXTRAS = 8 };

struct report_row {
    char table[64], name[96];
    struct timing time;
    double amount, limit; // amount: bytes, flops ... done in one run; limit: of the rate, 0 unknown
    const char *amount_key, *rate_unit;
    double rate; // in rate_unit; NaN when nothing was counted
    int check;
    int extra_count;
    const char *extra_names[REPORT_MAX_EXTRAS];
    double extras[REPORT_MAX_EXTRAS];
};

struct report_value_entry {
    char name[64];
    double number;
    char text[128]; // used when is_text
    int is_text;
};

static struct {
    const char *id, *about; // "02_saxpy/saxpy"
    const struct option_spec *specs;
    FILE *json_stdout;            // --json -
    struct output_file json_file; // --json FILE
    char table[64];
    int extra_count, extras_given;
    const char *extra_names[REPORT_MAX_EXTRAS];
    double extras[REPORT_MAX_EXTRAS];
    struct report_row *rows;
    struct report_value_entry *values;
    size_t row_count, value_count;
} report;

// ---- the table on the screen

// Begins a table: its title and up to REPORT_MAX_EXTRAS names of extra columns, then NULL.
__attribute__((sentinel)) static inline void report_table(const char *title, ...)
{
    snprintf(report.table, sizeof(report.table), "%s", title);
    report.extra_count = report.extras_given = 0;
    va_list args;
    va_start(args, title);
    const char *name;
    while ((name = va_arg(args, const char *)) && report.extra_count < REPORT_MAX_EXTRAS)
        report.extra_names[report.extra_count++] = name;
    va_end(args);
    printf("\n%-34s", title);
    for (int i = 0; i < report.extra_count; i++)
        printf(" %*s",
               (int)strlen(report.extra_names[i]) < 8 ? 8 : (int)strlen(report.extra_names[i]),
               report.extra_names[i]);
    printf(" %10s %21s %10s %8s  check\n", "median ms", "min .. max", "rate",
           DEVICE_IS_CPU ? "" : "limit");
}

// The value of the next extra column of the row that comes next.
static inline void report_extra(double value)
{
    if (report.extras_given < report.extra_count)
        report.extras[report.extras_given++] = value;
}

static inline void report_print_row(const struct report_row *r)
{
    static const char *const marks[] = {"-", "FAILED", "ok"};
    char range[64], rate[64] = "-", share[32] = "";
    snprintf(range, sizeof(range), "%.4f .. %.4f", r->time.min_ms, r->time.max_ms);
    if (!isnan(r->rate))
        snprintf(rate, sizeof(rate), "%.*f %s", r->rate < 100 ? 2 : 0, r->rate, r->rate_unit);
    if (!isnan(r->rate) && r->limit > 0)
        snprintf(share, sizeof(share), "%.1f %%", 100 * r->rate / r->limit);
    printf("  %-32s", r->name);
    for (int i = 0; i < r->extra_count; i++) {
        int width = (int)strlen(r->extra_names[i]) < 8 ? 8 : (int)strlen(r->extra_names[i]);
        if (isnan(r->extras[i]))
            printf(" %*s", width, "-");
        else if (r->extras[i] == floor(r->extras[i]) || fabs(r->extras[i]) >= 1000)
            printf(" %*.0f", width, r->extras[i]); // counts stay whole: 67108864, not 6.71e+07
        else
            printf(" %*.4g", width, r->extras[i]);
    }
    printf(" %10.4f %21s %10s %8s  %s\n", r->time.median_ms, range, rate, share,
           marks[r->check + 1]);
    if (!isnan(r->rate) && r->limit > 0 && r->rate > r->limit)
        printf("    warning: above the limit. The data sits in a cache, or the count is wrong.\n");
    fflush(stdout);
}

// One row. amount: what one run moves or computes, under the JSON key amount_key; rate_scale
// turns amount a second into rate_unit (1e9 for GB/s); limit: of that rate, 0 when unknown.
static inline void report_rate(const char *name, struct timing time, double amount,
                               const char *amount_key, const char *rate_unit, double rate_scale,
                               double limit, int check)
{
    report.rows = (struct report_row *)realloc(report.rows,
                                               (report.row_count + 1) * sizeof(struct report_row));
    if (!report.rows)
        lesson_exit(EXIT_FAILED, "no host memory for the results");
    struct report_row *r = &report.rows[report.row_count++];
    memset(r, 0, sizeof(*r));
    snprintf(r->table, sizeof(r->table), "%s", report.table);
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->time = time;
    r->amount = amount;
    r->amount_key = amount_key;
    r->rate_unit = rate_unit;
    r->rate =
        amount > 0 && time.median_ms > 0 ? amount / (time.median_ms * 1e-3) / rate_scale : NAN;
    r->limit = limit;
    r->check = check;
    r->extra_count = report.extra_count;
    for (int i = 0; i < r->extra_count; i++) {
        r->extra_names[i] = report.extra_names[i];
        r->extras[i] = i < report.extras_given ? report.extras[i] : NAN;
    }
    report.extras_given = 0;
    report_print_row(r);
}

// bytes: read + written in device memory by one run.
static inline void report_bandwidth(const char *name, struct timing time, double bytes, int check)
{
    report_rate(name, time, bytes, "bytes", "GB/s", 1e9, device_facts.memory_limit_gbs, check);
}

// flops: floating-point operations of one run, a multiply-add counting two; fp32.
static inline void report_flops(const char *name, struct timing time, double flops, int check)
{
    report_rate(name, time, flops, "flops", "TFLOP/s", 1e12, device_facts.fp32_limit_gflops / 1e3,
                check);
}

static inline void report_time(const char *name, struct timing time, int check)
{
    report_rate(name, time, 0, "bytes", "", 1, 0, check);
}

// ---- single values, for the JSON only (print them yourself)

static inline struct report_value_entry *report_new_value(const char *name)
{
    report.values = (struct report_value_entry *)realloc(
        report.values, (report.value_count + 1) * sizeof(struct report_value_entry));
    if (!report.values)
        lesson_exit(EXIT_FAILED, "no host memory for the results");
    struct report_value_entry *v = &report.values[report.value_count++];
    memset(v, 0, sizeof(*v));
    snprintf(v->name, sizeof(v->name), "%s", name);
    return v;
}

static inline void report_number(const char *name, double number)
{
    report_new_value(name)->number = number;
}

static inline void report_text(const char *name, const char *text)
{
    struct report_value_entry *v = report_new_value(name);
    v->is_text = 1;
    snprintf(v->text, sizeof(v->text), "%s", text);
}

// ---- JSON

static inline void json_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(f, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(f, "\\u%04x", *c);
        else
            fputc(*c, f);
    }
    fputc('"', f);
}

static inline void json_number(FILE *f, double number)
{
    if (isfinite(number))
        fprintf(f, "%.15g", number);
    else
        fprintf(f, "null"); // JSON has no NaN
}

static inline void json_known(FILE *f, const char *key, double number)
{
    fprintf(f, ", \"%s\": ", key);
    json_number(f, number > 0 ? number : NAN);
}

static inline void json_option(FILE *f, const struct option_spec *o)
{
    char text[64];
    if (o->kind == KIND_FLAG)
        fprintf(f, "%s", *(int *)o->value ? "true" : "false");
    else if (o->kind == KIND_SIZE)
        fprintf(f, "%zu", *(size_t *)o->value);
    else if (o->kind == KIND_INT)
        fprintf(f, "%d", *(int *)o->value);
    else if (o->kind == KIND_REAL)
        json_number(f, *(double *)o->value);
    else if (o->kind == KIND_TEXT && *(const char **)o->value)
        json_string(f, *(const char **)o->value);
    else if (o->kind == KIND_TEXT)
        fprintf(f, "null");
    else
        json_string(f, option_value_text(o, text));
}

static inline void json_row(FILE *f, const struct report_row *r)
{
    fprintf(f, "    {\"table\": ");
    json_string(f, r->table);
    fprintf(f, ", \"name\": ");
    json_string(f, r->name);
    fprintf(f, ", \"milliseconds\": {\"median\": ");
    json_number(f, r->time.median_ms);
    fprintf(f, ", \"min\": ");
    json_number(f, r->time.min_ms);
    fprintf(f, ", \"max\": ");
    json_number(f, r->time.max_ms);
    fprintf(f, "}, \"reps\": %d", r->time.reps);
    if (r->amount > 0) {
        fprintf(f, ", \"%s\": ", r->amount_key);
        json_number(f, r->amount);
        fprintf(f, ", \"rate\": ");
        json_number(f, r->rate);
        fprintf(f, ", \"unit\": ");
        json_string(f, r->rate_unit);
        json_known(f, "limit", r->limit);
        json_known(f, "percent", r->limit > 0 ? 100 * r->rate / r->limit : NAN);
    }
    for (int i = 0; i < r->extra_count; i++) {
        fprintf(f, ", ");
        json_string(f, r->extra_names[i]);
        fprintf(f, ": ");
        json_number(f, r->extras[i]);
    }
    fprintf(f, ", \"check\": %s}", r->check < 0 ? "null" : r->check ? "\"ok\"" : "\"failed\"");
}

static inline void json_device(FILE *f)
{
    const struct device_facts *d = &device_facts;
    if (!d->name[0]) { // the program ended before it had one
        fprintf(f, "  \"device\": null,\n");
        return;
    }
    fprintf(f, "  \"device\": {\"id\": %d, \"name\": ", d->id);
    json_string(f, d->name);
    if (!DEVICE_IS_CPU)
        fprintf(f, ", \"compute_capability\": \"%d.%d\"", d->major, d->minor);
    json_known(f, "sms", d->sm_count);
    json_known(f, "memory_bytes", (double)d->memory_bytes);
    json_known(f, "l2_bytes", (double)d->l2_bytes);
    json_known(f, "memory_limit_gbs", d->memory_limit_gbs);
    json_known(f, "fp32_limit_gflops", d->fp32_limit_gflops);
    fprintf(f, "},\n");
}

static inline void json_write(FILE *f)
{
    static const char *const states[] = {"ok", "failed", "waived"};
    int code = lesson_outcome.exit_code;
    fprintf(f, "{\n  \"lesson\": \"%.*s\", \"program\": ", (int)strcspn(report.id, "/"), report.id);
    const char *slash = strchr(report.id, '/');
    json_string(f, slash ? slash + 1 : report.id);
    fprintf(f, ", \"backend\": \"%s\",\n  \"status\": \"%s\", \"message\": ",
            DEVICE_IS_CPU ? "cpu" : "cuda", states[code == 1 || code == 2 ? code : 0]);
    if (lesson_outcome.message[0])
        json_string(f, lesson_outcome.message);
    else
        fprintf(f, "null");
    fprintf(f, ",\n");
    json_device(f);
    fprintf(f, "  \"parameters\": {\"reps\": %d", common_options.reps);
    for (const struct option_spec *o = report.specs; o->kind != KIND_END; o++) {
        if (!o->name)
            continue; // the positional argument is another way to give a named one
        fprintf(f, ", \"%s\": ", o->name);
        json_option(f, o);
    }
    fprintf(f, "},\n  \"checks\": {\"done\": %d, \"failed\": %d},\n  \"values\": {", checks.done,
            checks.failed);
    for (size_t i = 0; i < report.value_count; i++) {
        fprintf(f, i ? ", " : "");
        json_string(f, report.values[i].name);
        fprintf(f, ": ");
        if (report.values[i].is_text)
            json_string(f, report.values[i].text);
        else
            json_number(f, report.values[i].number);
    }
    fprintf(f, "},\n  \"measurements\": [");
    for (size_t i = 0; i < report.row_count; i++) {
        fprintf(f, i ? ",\n" : "\n");
        json_row(f, &report.rows[i]);
    }
    fprintf(f, "%s]\n}\n", report.row_count ? "\n  " : "");
}

// Called by lesson_end(), and by exit() when the program ends earlier: the options are main()'s own
// variables and gone once it has returned. With a wrong command line there are no results, and no
// file appears.
static inline void json_finish(void)
{
    int wrong_usage = lesson_outcome.exit_code == EXIT_BAD_USAGE, failed = 0;
    static int finished = 0;
    if (finished++)
        return;
    if (report.json_file.stream && !wrong_usage) {
        json_write(report.json_file.stream);
        failed = !output_commit(&report.json_file);
    } else if (report.json_stdout && !wrong_usage) {
        json_write(report.json_stdout);
        failed = ferror(report.json_stdout) || fclose(report.json_stdout) != 0;
        report.json_stdout = NULL;
    }
    free(report.rows);
    free(report.values);
    report.rows = NULL;
    report.values = NULL;
    report.row_count = report.value_count = 0;
    if (failed) {
        fprintf(stderr, "--json: the results could not be written: %s\n", strerror(errno));
        _exit(EXIT_FAILED);
    }
}

// Opens the place for the JSON before any work is done, so that a wrong path costs no time.
static inline void json_open(void)
{
    const char *path = common_options.json;
    if (path && strcmp(path, "-") == 0) { // keep the real stdout for the JSON, send all else away
        int out = dup(STDOUT_FILENO);
        report.json_stdout = out < 0 ? NULL : fdopen(out, "w");
        if (!report.json_stdout || !freopen("/dev/null", "w", stdout))
            lesson_exit(EXIT_FAILED, "--json -: stdout cannot be written");
    } else if (path && !output_open(&report.json_file, path)) {
        lesson_exit(EXIT_FAILED, "--json %s: %s", path, strerror(errno));
    }
    atexit(json_finish); // after output_open: exit() calls the newest handler first
}

#endif
