// Unit tests of common/: what the headers promise, without a device. Compiled by both compilers.
// Prints a line for each expectation that does not hold; exit code 1 then.
#include "../../common/lesson.h"

static int failures;

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                       \
            failures++;                                                                            \
        }                                                                                          \
    } while (0)

static int size_is(const char *text, size_t want)
{
    size_t value = 0;
    return parse_size(text, &value) && value == want;
}

static int size_refused(const char *text)
{
    size_t value = 7;
    return !parse_size(text, &value) && value == 7;
}

static void test_sizes(void)
{
    EXPECT(size_is("0", 0));
    EXPECT(size_is("1k", 1024));
    EXPECT(size_is("3M", 3u << 20));
    EXPECT(size_is("16G", (size_t)16 << 30));
    EXPECT(size_is("18446744073709551615", SIZE_MAX));
    EXPECT(size_refused("18446744073709551616"));
    EXPECT(size_refused("17179869184G"));
    const char *const wrong[] = {"",    " ",   "-1",   "+1", " 1", "1 ",
                                 "1kk", "1e9", "0x10", "k",  "1T", "1.5"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        EXPECT(size_refused(wrong[i]));
    char text[32];
    EXPECT(strcmp(size_text(0, text), "0") == 0);
    EXPECT(strcmp(size_text(1536, text), "1536") == 0);
    EXPECT(strcmp(size_text(64 << 20, text), "64M") == 0);
    EXPECT(strcmp(size_text((size_t)1 << 44, text), "16384G") == 0);
}

static void test_other_kinds(void)
{
    int number = 0;
    double real = 0;
    dim3 sides(9, 9, 9);
    EXPECT(parse_int("-5", &number) && number == -5);
    EXPECT(!parse_int("2147483648", &number));
    EXPECT(!parse_int("5x", &number) && !parse_int("", &number) && !parse_int(" 5", &number));
    EXPECT(parse_real("1e-3", &real) && real == 1e-3);
    EXPECT(!parse_real("nan", &real) && !parse_real("inf", &real) && !parse_real("1e999", &real));
    EXPECT(parse_choice("two", "one|two|three", &number) && number == 1);
    EXPECT(parse_choice("three", "one|two|three", &number) && number == 2);
    EXPECT(!parse_choice("tw", "one|two|three", &number) && !parse_choice("", "one|two", &number));
    EXPECT(!parse_choice("one|two", "one|two", &number));
    EXPECT(parse_dim3("4", &sides) && sides.x == 4 && sides.y == 1 && sides.z == 1);
    EXPECT(parse_dim3("4,3,2", &sides) && sides.x == 4 && sides.y == 3 && sides.z == 2);
    EXPECT(!parse_dim3("4,", &sides) && !parse_dim3("4,3,2,1", &sides) && !parse_dim3("x", &sides));
    EXPECT(!parse_dim3("4294967296", &sides) && !parse_dim3("-4", &sides));
}

static void test_verification(void)
{
    struct verifier v = verify_begin("v", 1e-6, 0);
    verify_value(&v, 0, 1.0, 1.0);
    verify_value(&v, 1, INFINITY, INFINITY);
    EXPECT(v.wrong == 0);
    verify_value(&v, 2, NAN, 1.0); // the careless comparison lets these two pass
    verify_value(&v, 3, 1.0, NAN);
    verify_value(&v, 4, INFINITY, 1.0);
    EXPECT(v.wrong == 3 && v.first_index == 2 && v.compared == 5);
    EXPECT(!verify_end(&v) && checks.done == 1 && checks.failed == 1);
    struct verifier close = verify_begin("close", 1e-3, 0.5);
    verify_value(&close, 0, 1000.0 + 1.4, 1000.0);
    EXPECT(close.wrong == 0);
    verify_value(&close, 1, 1000.0 + 1.6, 1000.0);
    EXPECT(close.wrong == 1);
    EXPECT(check_that(1, "fine") && checks.done == 2 && checks.failed == 1);
    EXPECT(lesson_end() == EXIT_FAILED);
}

static void test_random_data_is_spread(void)
{
    static float values[10000];
    float low = 1, high = -1;
    double sum = 0;
    fill_random(values, 10000, 42);
    for (int i = 0; i < 10000; i++) {
        low = fminf(low, values[i]);
        high = fmaxf(high, values[i]);
        sum += values[i];
    }
    EXPECT(low >= -1 && low < -0.99f && high < 1 && high > 0.99f && fabs(sum / 10000) < 0.03);
    float again[2];
    fill_random(again, 2, 42);
    EXPECT(again[0] == values[0] && again[1] == values[1] && again[0] != again[1]);
}

static void test_statistics(void)
{
    double odd[] = {3, 1, 2}, even[] = {4, 1, 3, 2};
    struct timing t = timing_of(odd, 3);
    EXPECT(t.median_ms == 2 && t.min_ms == 1 && t.max_ms == 3 && t.reps == 3);
    t = timing_of(even, 4);
    EXPECT(t.median_ms == 2.5);
    t = timing_of(even, 0);
    EXPECT(t.median_ms == 0 && t.reps == 0);
    int runs = 0;
    MEASURE_HOST (t, 3) {
        struct timespec nap = {0, 2000000};
        nanosleep(&nap, NULL);
        runs++;
    }
    EXPECT(runs == 4 && t.reps == 3); // one to warm up
    EXPECT(t.min_ms >= 2 && t.max_ms < 1000 && t.min_ms <= t.median_ms);
}

static void test_fp32_lanes(void)
{
    EXPECT(fp32_lanes_per_sm(9, 0) == 128 && fp32_lanes_per_sm(8, 0) == 64);
    EXPECT(fp32_lanes_per_sm(8, 6) == 128 && fp32_lanes_per_sm(8, 9) == 128);
    EXPECT(fp32_lanes_per_sm(6, 0) == 64 && fp32_lanes_per_sm(6, 1) == 128);
    EXPECT(fp32_lanes_per_sm(7, 5) == 64 && fp32_lanes_per_sm(12, 0) == 128);
    EXPECT(fp32_lanes_per_sm(99, 0) == 0); // unknown, not guessed
}

// Each well-known error must come with advice.
static void test_hints(void)
{
    const int known[] = {2, 35, 98, 100, 209, 222, 700, 701, 716, 719, 801, 802, 803, 804, 999};
    char hint[512];
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        cuda_hint((cudaError_t)known[i], hint, sizeof(hint));
        EXPECT(hint[0] != '\0' && strlen(hint) < sizeof(hint) - 1);
    }
    size_t free_bytes, total_bytes;
    if (cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess) { // the user's own numbers
        cuda_hint(cudaErrorMemoryAllocation, hint, sizeof(hint));
        EXPECT(strstr(hint, "GiB are free now"));
    }
    cudaGetLastError();
    cuda_hint(cudaErrorProfilerDisabled, hint, sizeof(hint));
    EXPECT(hint[0] == '\0');
}

// An expression in a check is evaluated exactly once.
static cudaError_t count_calls(int *calls)
{
    ++*calls;
    return cudaSuccess;
}

static void test_check_evaluates_once(void)
{
    int calls = 0;
    CUDA_CHECK(count_calls(&calls));
    EXPECT(calls == 1);
}

static void test_json(void)
{
    char text[256] = "";
    FILE *f = fmemopen(text, sizeof(text), "w");
    json_string(f, "a\"b\\c\n\t\x01 ü");
    fputc(' ', f);
    json_number(f, NAN);
    fputc(' ', f);
    json_number(f, 0.1);
    fputc(' ', f);
    json_number(f, 1e300 * 1e300);
    fclose(f);
    EXPECT(strcmp(text, "\"a\\\"b\\\\c\\u000a\\u0009\\u0001 ü\" null 0.1 null") == 0);
}

// 1e6 bytes in a millisecond are 1 GB/s; test_common.py looks for the warning of the second row.
static void test_rates(void)
{
    char text[1024] = "";
    report_table("rates", "extra", NULL);
    report_extra(7);
    report_rate("half", timing_once(1), 1e6, "bytes", "GB/s", 1e9, 2, CHECK_OK);
    report_rate("above", timing_once(1), 1e6, "bytes", "GB/s", 1e9, 0.5, CHECK_NONE);
    report_time("time alone", timing_once(1), CHECK_NONE);
    FILE *f = fmemopen(text, sizeof(text), "w");
    json_row(f, &report.rows[0]);
    fclose(f);
    EXPECT(strstr(text, "\"bytes\": 1000000, \"rate\": 1, \"unit\": \"GB/s\", \"limit\": 2, "
                        "\"percent\": 50, \"extra\": 7, \"check\": \"ok\"}"));
    EXPECT(report.row_count == 3 && isnan(report.rows[1].extras[0]) && isnan(report.rows[2].rate));
}

static void test_output_file(const char *folder)
{
    char path[4096], line[64] = "";
    struct output_file out;
    snprintf(path, sizeof(path), "%s/result", folder);
    EXPECT(output_open(&out, path));
    fprintf(out.stream, "whole\n");
    EXPECT(access(path, F_OK) != 0); // not before it is complete
    EXPECT(output_commit(&out));
    FILE *f = fopen(path, "r");
    EXPECT(f && fgets(line, sizeof(line), f) && strcmp(line, "whole\n") == 0);
    if (f)
        fclose(f);
    EXPECT(!output_open(&out, "/no/such/folder/file") && errno == ENOENT);
}

int main(int argc, char **argv)
{
    (void)argc;
    test_sizes();
    test_other_kinds();
    test_verification();
    test_random_data_is_spread();
    test_statistics();
    test_fp32_lanes();
    test_hints();
    test_check_evaluates_once();
    test_json();
    test_rates();
    test_output_file(argv[1]);
    printf("%d failures\n", failures);
    return failures != 0;
}
