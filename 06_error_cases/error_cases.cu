// error_cases: runs programs that fail on purpose, shows what CUDA reports, says why, and runs the
// fixed twin. Each run is a process of its own, started before this one makes any CUDA call - it
// never makes one: a failed kernel ruins its process, and the next case must not notice.
//
// Predict before you run it: a kernel wrote through a null pointer. Which of the process's later
// CUDA calls still work?   ./error_cases null_pointer
//
// usage: error_cases                       lists the cases
//        error_cases CASE | --topic T | --all
//        error_cases --explain CASE        the explanation and the source, without running
#include "../common/lesson.h"
#include "cases.h"
#include "child.h"
#include <libgen.h>

#ifndef SOURCE_FOLDER // lesson.mk names it; a bare nvcc does not
#define SOURCE_FOLDER "."
#endif

enum {
    TEXT_WIDTH = 98,
    LABEL = 11,
    LOG_LINES = 3,
    TOOL_LINES = 6,
    CHECK_LINES = 4,
    MACHINE_LIMIT_S = 60,
    LINE_SIZE = 1024
};

// Contexts need memory: below this much free memory, one case runs at a time.
enum { AHEAD = 2, ENOUGH_FOR_AHEAD_MIB = 8192 };

enum outcome { SHOWN, FAILED, WAIVED };

// The children of one case: both twins, and both again under a tool that looks for the fault.
struct case_run {
    int started, with_tool;
    struct child broken, fixed, tool_broken, tool_fixed;
};
static struct case_run case_runs[ERROR_CASE_COUNT];

static struct {
    char programs[PATH_MAX]; // the folder with the compiled programs
    char sources[PATH_MAX];  // the folder with the .cu files, "" when it is not here
    char sanitizer[PATH_MAX];
    char no_gpu[512]; // why cases that need a GPU are waived; "" when there is one
    int display;      // the card draws a desktop
    int free_mib;     // device memory that is free at the start
    double limit_s;
    int really;
    int counts[3];
} run;

// ---- finding things

static int is_file(const char *path)
{
    struct stat s;
    return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

static void find_folders(void)
{
    char self[PATH_MAX] = "", candidate[PATH_MAX + 32], source[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    snprintf(run.programs, sizeof(run.programs), "%s", dirname(self));
    snprintf(source, sizeof(source), "%s", __FILE__);
    const char *const places[] = {"06_error_cases", SOURCE_FOLDER, dirname(source), run.programs};
    for (int i = 0; i < 4 && !run.sources[0]; i++) {
        snprintf(candidate, sizeof(candidate), "%s/error_cases.cu", places[i]);
        if (is_file(candidate))
            snprintf(run.sources, sizeof(run.sources), "%s", places[i]);
    }
}

// The path of compute-sanitizer in run.sanitizer; "" when it is not installed.
static void find_sanitizer(void)
{
    char path[PATH_MAX], list[8192];
    const char *cuda = getenv("CUDA_PATH");
    snprintf(list, sizeof(list), "%s:%s/bin:/usr/local/cuda/bin:/usr/local/cuda/compute-sanitizer",
             getenv("PATH") ? getenv("PATH") : "", cuda ? cuda : "/usr/local/cuda");
    for (char *folder = strtok(list, ":"); folder; folder = strtok(NULL, ":")) {
        snprintf(path, sizeof(path), "%s/compute-sanitizer", folder);
        if (is_file(path) && access(path, X_OK) == 0) {
            snprintf(run.sanitizer, sizeof(run.sanitizer), "%s", path);
            return;
        }
    }
}

// ---- printing

// Prints `text` after `label`, wrapped, with the following lines indented.
static void print_wrapped(const char *label, const char *text)
{
    int column = printf("%-*s", LABEL - 1, label);
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " ");
        if (column + 1 + length > TEXT_WIDTH && column > LABEL)
            column = printf("\n%*s", LABEL - 1, "") - 1;
        column += printf(" %.*s", length, word);
        word += length + strspn(word + length, " ");
    }
    printf("\n");
}

// Prints a line of somebody else, broken at spaces where it is too long for a screen.
static void print_line(const char *indent, const char *line)
{
    enum { SCREEN = 120 };
    int length = (int)strcspn(line, "\n");
    while (length > SCREEN) {
        int cut = SCREEN;
        while (cut > SCREEN / 2 && line[cut] != ' ')
            cut--;
        printf("%s%.*s\n", indent, cut, line);
        line += cut;
        length -= cut;
    }
    printf("%s%.*s\n", indent, length, line);
}

static void print_list(void)
{
    const char *topic = "";
    for (int i = 0; i < ERROR_CASE_COUNT; i++) {
        const struct error_case *c = &error_cases[i];
        if (strcmp(topic, c->topic) != 0)
            printf("\n%s\n", topic = c->topic);
        printf("  %-24s %s\n", c->name, c->question);
    }
    printf("\nerror_cases CASE runs one, --topic TOPIC those of a topic, --all all of them;\n"
           "--explain CASE prints why, the fix, and the source of both twins.\n");
}

// The lines of a program's output that belong to the case: those after its TWIN_MARK line.
static void print_output(const struct child *c, const char *indent)
{
    char line[LINE_SIZE];
    FILE *f = fopen(c->output, "r");
    int inside = 0;
    while (f && fgets(line, sizeof(line), f)) {
        int frame = line[0] == '\n' || strncmp(line, "ok: ", 4) == 0; // of lesson_end()
        if ((inside && !frame) || strncmp(line, "waived: ", 8) == 0)
            print_line(indent, line);
        inside |= strncmp(line, TWIN_MARK, strlen(TWIN_MARK)) == 0;
    }
    if (f && !inside) { // it did not come that far: everything may matter
        rewind(f);
        while (fgets(line, sizeof(line), f))
            print_line(indent, line);
    }
    if (f)
        fclose(f);
}

// What the driver itself wrote about the error: the first different lines.
static void print_driver_log(const struct child *c)
{
    char line[LINE_SIZE], last[LINE_SIZE] = "";
    int printed = 0;
    FILE *f = fopen(c->log, "r");
    while (f && printed < LOG_LINES && fgets(line, sizeof(line), f)) {
        char *text = strchr(line, ']') && line[0] == '[' ? strrchr(line, ']') + 1 : line;
        text += strspn(text, " ");
        if (*text == '\n' || strcmp(text, last) == 0)
            continue;
        snprintf(last, sizeof(last), "%s", text);
        if (printed++ == 0)
            printf("the driver's own log (CUDA_LOG_FILE):\n");
        print_line("  | ", text);
    }
    if (f)
        fclose(f);
}

static void print_how_it_ended(const struct child *c)
{
    if (c->timed_out)
        printf("  ended by the time limit of %.0f s\n", run.limit_s);
    else if (WIFSIGNALED(c->status))
        printf("  crashed: signal %d (%s)\n", WTERMSIG(c->status), strsignal(WTERMSIG(c->status)));
    else if (WEXITSTATUS(c->status) == CHILD_NOT_STARTED)
        printf("  could not be started: is it built? make LESSONS=06_error_cases\n");
}

// ---- what a child said

// The reason after "waived: " in its output.
static void waived_reason(const struct child *c, char *reason, size_t size)
{
    char line[LINE_SIZE];
    FILE *f = fopen(c->output, "r");
    snprintf(reason, size, "no reason given");
    while (f && fgets(line, sizeof(line), f))
        if (strncmp(line, "waived: ", 8) == 0)
            snprintf(reason, size, "%.*s", (int)strcspn(line + 8, "\n"), line + 8);
    if (f)
        fclose(f);
}

// The last line on RUNNER_FD: "error|700|cudaErrorIllegalAddress|cudaDeviceSynchronize()",
// "symptom|text" or "ratio|3.2". Goes into the JSON.
static void record_result(const struct error_case *c, const struct child *broken)
{
    char line[LINE_SIZE], text[LINE_SIZE] = "", key[64];
    FILE *f = fopen(broken->result, "r");
    while (f && fgets(line, sizeof(line), f))
        snprintf(text, sizeof(text), "%.*s", (int)strcspn(line, "\n"), line);
    if (f)
        fclose(f);
    char *value = strchr(text, '|');
    if (!value)
        return;
    *value++ = '\0';
    snprintf(key, sizeof(key), "%s.%s", c->name, text);
    if (strcmp(text, "symptom") == 0)
        report_text(key, value);
    else
        report_number(key, atof(value));
    char *call = strcmp(text, "error") == 0 ? strrchr(value, '|') : NULL;
    snprintf(key, sizeof(key), "%s.call", c->name);
    if (call)
        report_text(key, call + 1);
}

// ---- the tools

// The program that looks for the fault of `c`: compute-sanitizer, or on the CPU backend the program
// compiled with a check, which lesson.mk puts into checked/. Returns 0 when there is none.
static int find_tool(const struct error_case *c, char *path, size_t size)
{
    if (!c->tool)
        return 0;
    if (!DEVICE_IS_CPU) {
        snprintf(path, size, "%s", run.sanitizer);
        return path[0] != '\0';
    }
    const char *check = strcmp(c->tool, "memcheck") == 0    ? "address"
                        : strcmp(c->tool, "racecheck") == 0 ? "race"
                                                            : "none";
    snprintf(path, size, "%s/checked/%s_%s", run.programs, c->program, check);
    return is_file(path) && access(path, X_OK) == 0;
}

// Prints the first report of compute-sanitizer, without the host's stack; returns the number of
// errors that it counted, -1 when it came to no count.
static int print_sanitizer(const struct child *c)
{
    char line[LINE_SIZE];
    int printed = 0, first_report = 1, errors = -1, number;
    FILE *f = fopen(c->output, "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *summary = strstr(line, "SUMMARY: ");
        if (strncmp(line, "=========", 9) != 0 || strstr(line, "COMPUTE-SANITIZER") ||
            strstr(line, "Host Frame") || strstr(line, "host backtrace"))
            continue;
        if (summary && errors < 0 && sscanf(summary, "SUMMARY: %d", &number) == 1) {
            errors = number;
            print_line("  | ", line);
        } else if (line[9] == '\n' || (line[9] == ' ' && line[10] == '\n')) {
            first_report = 0;
        } else if (first_report && !summary && printed++ < TOOL_LINES) {
            print_line("  | ", line);
        }
    }
    if (f)
        fclose(f);
    return errors;
}

// The same for a checked program of the CPU backend.
static int print_cpu_check(const struct child *c)
{
    static const char *const matter[] = {
        "ERROR: AddressSanitizer", "READ of size", "WRITE of size", "#0 ", "is located", "race"};
    char line[LINE_SIZE];
    int printed = 0, errors = 0;
    FILE *f = fopen(c->output, "r");
    while (f && fgets(line, sizeof(line), f))
        for (size_t i = 0; i < sizeof(matter) / sizeof(matter[0]); i++)
            if (strstr(line, matter[i])) {
                errors += i == 0 || i == sizeof(matter) / sizeof(matter[0]) - 1;
                if (printed++ < CHECK_LINES)
                    print_line("  | ", line);
                break;
            }
    if (f)
        fclose(f);
    return errors;
}

// ---- one case

static void start_program(struct child *child, const struct error_case *c, int fixed, int with_tool)
{
    char path[2 * PATH_MAX], tool[2 * PATH_MAX], device[16];
    char *argv[16];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", run.programs, c->program);
    snprintf(device, sizeof(device), "%d", common_options.device);
    if (with_tool && find_tool(c, tool, sizeof(tool))) {
        argv[n++] = tool;
        if (!DEVICE_IS_CPU) {
            argv[n++] = (char *)"--tool";
            argv[n++] = (char *)c->tool;
            argv[n++] = (char *)"--print-limit";
            argv[n++] = (char *)"2";
        }
    }
    if (!(with_tool && DEVICE_IS_CPU)) // there the tool is the program, compiled with a check
        argv[n++] = path;
    argv[n++] = (char *)c->name;
    argv[n++] = (char *)"--device";
    argv[n++] = device;
    if (fixed)
        argv[n++] = (char *)"--fixed";
    if (run.really)
        argv[n++] = (char *)"--really";
    argv[n] = NULL;
    child_start(child, argv);
}

static int is_link_case(const struct error_case *c)
{
    return strcmp(c->topic, "build_and_link") == 0;
}

// Why the case cannot run here, or NULL.
static const char *why_waived(const struct error_case *c)
{
    if (is_link_case(c))
        return run.sources[0] ? NULL : "link_errors is not here: run it where the sources are";
    if (DEVICE_IS_CPU && !(c->flags & ON_CPU))
        return c->needs;
    if (run.no_gpu[0] && !(c->flags & NEEDS_NO_GPU))
        return run.no_gpu;
    if (run.display && (c->flags & NOT_ON_DISPLAY))
        return "this card draws a desktop, which the case could disturb";
    return NULL;
}

// Starts the children of a case. One that must be alone runs to its end here.
static void start_case(int index)
{
    const struct error_case *c = &error_cases[index];
    struct case_run *r = &case_runs[index];
    char path[2 * PATH_MAX];
    if (r->started || why_waived(c))
        return;
    r->started = 1;
    if (is_link_case(c)) {
        snprintf(path, sizeof(path), "%s/link_errors/show", run.sources);
        char *argv[] = {path, (char *)c->name, NULL};
        child_start(&r->broken, argv);
        return;
    }
    start_program(&r->broken, c, 0, 0);
    if (c->flags & ALONE)
        child_wait(&r->broken, run.limit_s);
    if (!(c->flags & ALONE) || child_code(&r->broken) != EXIT_WAIVED)
        start_program(&r->fixed, c, 1, 0);
    r->with_tool = find_tool(c, path, sizeof(path));
    if (r->with_tool) {
        start_program(&r->tool_broken, c, 0, 1);
        start_program(&r->tool_fixed, c, 1, 1);
    }
}

static void wait_for_case(int index)
{
    struct case_run *r = &case_runs[index];
    child_wait(&r->broken, run.limit_s);
    child_wait(&r->fixed, run.limit_s);
    child_wait(&r->tool_broken, run.limit_s);
    child_wait(&r->tool_fixed, run.limit_s);
}

static void print_explanation(const struct error_case *c)
{
    char text[2 * LINE_SIZE];
    if (!c->why)
        return;
    snprintf(text, sizeof(text), "(%s) %s", c->part, c->why);
    print_wrapped("why:", text);
    print_wrapped("fix:", c->fix);
    if (c->profile && strchr(c->profile, ' '))
        printf("%-*s%s\n", LABEL, "profile:", c->profile);
    else if (c->profile)
        printf("%-*sncu --metrics %s \\\n%*s./%s %s --reps 1\n", LABEL, "profile:", c->profile,
               LABEL + 4, "", c->program, c->name);
}

static enum outcome waive(const struct error_case *c, const char *reason)
{
    char text[120];
    printf("waived: %s: %s\n", c->name, reason);
    snprintf(text, sizeof(text), "waived: %.*s", (int)sizeof(text) - 10, reason);
    report_text(c->name, text);
    run.counts[WAIVED]++;
    return WAIVED;
}

static enum outcome conclude(const struct error_case *c, int shown, const char *problem)
{
    check_that(shown, "%s: %s", c->name, problem);
    if (shown)
        printf("ok: %s behaves as expected\n", c->name);
    report_text(c->name, shown ? "shown" : problem);
    run.counts[shown ? SHOWN : FAILED]++;
    return shown ? SHOWN : FAILED;
}

// 1 when the tool found the fault and was silent on the fixed twin, or is not here.
static int tool_agrees(const struct error_case *c, const struct case_run *r)
{
    if (!c->tool)
        return 1;
    if (!r->with_tool) {
        if (!DEVICE_IS_CPU)
            printf(
                "%-*scompute-sanitizer --tool %s would name the line; it is not installed here\n",
                LABEL, "tool:", c->tool);
        return 1;
    }
    if (DEVICE_IS_CPU)
        printf("%-*snvcc-cpu %s\n", LABEL,
               "tool:", strcmp(c->tool, "memcheck") == 0 ? "-fsanitize=address" : "--racecheck");
    else
        printf("%-*scompute-sanitizer --tool %s ./%s %s\n", LABEL, "tool:", c->tool, c->program,
               c->name);
    int (*print)(const struct child *) = DEVICE_IS_CPU ? print_cpu_check : print_sanitizer;
    int found = print(&r->tool_broken);
    print_how_it_ended(&r->tool_broken);
    printf("           and the fixed twin\n");
    int left = print(&r->tool_fixed);
    print_how_it_ended(&r->tool_fixed);
    if (DEVICE_IS_CPU && child_code(&r->tool_fixed) == EXIT_OK && left == 0)
        printf("  |   nothing found\n");
    return found > 0 && left == 0;
}

static enum outcome show_link_case(const struct error_case *c, const struct case_run *r)
{
    print_output(&r->broken, "");
    print_how_it_ended(&r->broken);
    return conclude(c, child_code(&r->broken) == EXIT_OK, "not as expected");
}

static enum outcome show_twins(const struct error_case *c, const struct case_run *r)
{
    printf("expected:  %s\n", c->expected);
    printf("broken:    ./%s %s\n", c->program, c->name);
    print_output(&r->broken, "  | ");
    print_how_it_ended(&r->broken);
    print_driver_log(&r->broken);
    record_result(c, &r->broken);
    int tool = tool_agrees(c, r);
    print_explanation(c);
    printf("fixed:     ./%s %s --fixed\n", c->program, c->name);
    print_output(&r->fixed, "  | ");
    print_how_it_ended(&r->fixed);
    if (child_code(&r->fixed) == EXIT_OK)
        printf("  |   passes\n");
    if (child_code(&r->broken) != EXIT_OK)
        return conclude(c, 0, "the broken twin did not fail as expected");
    if (child_code(&r->fixed) != EXIT_OK)
        return conclude(c, 0, "the fixed twin failed");
    if (!r->with_tool && !DEVICE_IS_CPU && (c->flags & TOOL_ALONE_FINDS_IT))
        return waive(c, "only compute-sanitizer shows this fault, and it is not installed");
    return conclude(c, tool, "the tool did not find it, or complains about the fixed twin");
}

static enum outcome run_case(int index)
{
    const struct error_case *c = &error_cases[index];
    struct case_run *r = &case_runs[index];
    char reason[LINE_SIZE], key[64];
    double start = host_seconds();
    printf("\n== %s (%s)\n%s\n", c->name, c->topic, c->question);
    if (why_waived(c))
        return waive(c, why_waived(c));
    start_case(index);
    wait_for_case(index);
    snprintf(key, sizeof(key), "%s.seconds", c->name);
    report_number(key, host_seconds() - start);
    const struct child *const twins[] = {&r->broken, &r->fixed};
    for (int i = 0; i < 2; i++)
        if (child_code(twins[i]) == EXIT_WAIVED) {
            waived_reason(twins[i], reason, sizeof(reason));
            return waive(c, reason);
        }
    return is_link_case(c) ? show_link_case(c, r) : show_twins(c, r);
}

// Starts the next cases, as long as they may run beside this one and there is memory for them all.
static void start_ahead(int index, int last)
{
    if (!DEVICE_IS_CPU && run.free_mib < ENOUGH_FOR_AHEAD_MIB)
        return;
    for (int i = index; i <= index + AHEAD && i <= last && !(error_cases[i].flags & ALONE); i++)
        start_case(i);
}

// ---- --explain

// Prints the section of `path` that begins with "MARK ---- NAME", with its line numbers.
static int print_section(const char *path, const char *mark, const char *name)
{
    char line[LINE_SIZE], begin[128];
    int number = 0, inside = 0, printed = 0;
    FILE *f = fopen(path, "r");
    snprintf(begin, sizeof(begin), "%s ---- %s\n", mark, name);
    while (f && fgets(line, sizeof(line), f)) {
        number++;
        if (strcmp(line, begin) == 0)
            inside = 1;
        else if (inside && (strstr(line, " ---- ") == line + strlen(mark) ||
                            strncmp(line, "static const struct twin", 24) == 0))
            break;
        if (inside && printed++ == 0)
            printf("\n%s:%d\n", path, number);
        if (inside)
            printf("%5d  %s", number, line);
    }
    if (f)
        fclose(f);
    return printed;
}

static int explain(const struct error_case *c)
{
    char path[2 * PATH_MAX];
    int linking = is_link_case(c);
    printf("\n== %s (%s)\n%s\nexpected:  %s\n", c->name, c->topic, c->question, c->expected);
    print_explanation(c);
    snprintf(path, sizeof(path), linking ? "%s/link_errors/show" : "%s/%s.cu", run.sources,
             c->program);
    check_that(print_section(path, linking ? "#" : "//", c->name) > 0,
               "the source of %s was not found: run it where the sources are", c->name);
    return lesson_end();
}

// ---- the machine

// Runs in a child of its own: tells the parent which device there is.
static void tell_device(void)
{
    const char *fd = getenv(RUNNER_FD);
    device_select(common_options.device);
    int display = DEVICE_IS_CPU ? 0 : device_attribute(cudaDevAttrKernelExecTimeout);
    size_t free_bytes = 0, total_bytes = 0;
    CUDA_CHECK(cudaMemGetInfo(&free_bytes, &total_bytes));
    dprintf(fd ? atoi(fd) : STDERR_FILENO, "device|%s|%d|%d|%d|%d|%zu\n", device_facts.name,
            device_facts.major, device_facts.minor, device_facts.sm_count, display,
            free_bytes >> 20);
    exit(EXIT_OK);
}

static void look_at_machine(void)
{
    struct child child;
    char self[PATH_MAX] = "", device[16], line[LINE_SIZE] = "";
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = '\0';
    snprintf(device, sizeof(device), "%d", common_options.device);
    char *argv[] = {self, (char *)"--tell-device", (char *)"--device", device, NULL};
    child_start(&child, argv);
    child_wait(&child, MACHINE_LIMIT_S);
    FILE *f = fopen(child.result, "r");
    if (f && !fgets(line, sizeof(line), f))
        line[0] = '\0';
    if (f)
        fclose(f);
    struct device_facts *d = &device_facts;
    if (sscanf(line, "device|%255[^|]|%d|%d|%d|%d|%d", d->name, &d->major, &d->minor, &d->sm_count,
               &run.display, &run.free_mib) != 6) {
        if (child_code(&child) == EXIT_BAD_USAGE || child_code(&child) == EXIT_FAILED)
            print_output(&child, "  | ");
        if (child_code(&child) == EXIT_BAD_USAGE)
            lesson_exit(EXIT_BAD_USAGE, "--device %d: this machine has no such device",
                        common_options.device);
        waived_reason(&child, run.no_gpu, sizeof(run.no_gpu));
    }
    if (run.no_gpu[0])
        printf("no GPU: what needs one is waived\n");
    else if (DEVICE_IS_CPU)
        printf(
            "device %d: %s. These programs run on the CPU; what only a GPU can show is waived.\n",
            common_options.device, d->name);
    else
        printf("device %d: %s, sm_%d%d%s\n", common_options.device, d->name, d->major, d->minor,
               run.display ? ", drives a display" : "");
}

static int run_selected(const struct error_case *only, const char *topic)
{
    if (!children_begin())
        lesson_exit(EXIT_FAILED, "no temporary folder: set TMPDIR to one that can be written");
    find_sanitizer();
    look_at_machine();
    double start = host_seconds();
    int first = 0, last = ERROR_CASE_COUNT - 1; // a topic's cases stand together
    if (only)
        first = last = (int)(only - error_cases);
    while (topic && strcmp(topic, error_cases[first].topic) != 0)
        first++;
    while (topic && strcmp(topic, error_cases[last].topic) != 0)
        last--;
    for (int i = first; i <= last; i++) {
        start_ahead(i, last);
        run_case(i);
    }
    printf("\n%d shown, %d failed, %d waived, in %.1f s\n", run.counts[SHOWN], run.counts[FAILED],
           run.counts[WAIVED], host_seconds() - start);
    if (run.counts[WAIVED] && !run.counts[SHOWN] && !run.counts[FAILED])
        lesson_waive("nothing that was asked for can be shown on this machine");
    return lesson_end();
}

int main(int argc, char **argv)
{
    const char *name = NULL, *explained = NULL, *topic = NULL;
    int all = 0, tell = 0;
    run.limit_s = 30;
    const struct option_spec options[] = {
        OPTION_TEXT(NULL, &name, "the case to run; without it: the list"),
        OPTION_TEXT("explain", &explained, "why, the fix and the source of a case"),
        OPTION_TEXT("topic", &topic, "run the cases of this topic"),
        OPTION_FLAG("all", &all, "run every case"),
        OPTION_REAL("limit", &run.limit_s, 0.1, 600, "seconds that one run may take"),
        OPTION_FLAG("really", &run.really, "allow what disturbs other users of the GPU"),
        OPTION_FLAG("tell-device", &tell, "what error_cases asks of a child: which device?"),
        OPTION_END,
    };
    report.id = "06_error_cases/error_cases";
    report.about = "errors on purpose: see them, understand them, fix them";
    report.specs = options;
    options_parse(argc, argv, "error_cases", report.about, options);
    if (tell)
        tell_device();
    const struct error_case *c = name || explained ? case_find(explained ? explained : name) : NULL;
    if ((name || explained) && !c)
        lesson_exit(EXIT_BAD_USAGE, "error_cases: unknown case '%s' (without arguments: the list)",
                    explained ? explained : name);
    int known_topic = !topic;
    for (int i = 0; topic && i < ERROR_CASE_COUNT; i++)
        known_topic |= strcmp(topic, error_cases[i].topic) == 0;
    if (!known_topic)
        lesson_exit(EXIT_BAD_USAGE, "error_cases: unknown topic '%s' (without arguments: the list)",
                    topic);
    if (!!name + !!explained + !!topic + all > 1)
        lesson_exit(EXIT_BAD_USAGE, "error_cases: one of CASE, --explain, --topic and --all");
    json_open();
    find_folders();
    printf("%s: %s\n", report.id, report.about);
    if (explained)
        return explain(c);
    if (name || topic || all)
        return run_selected(c, topic);
    print_list();
    return EXIT_OK;
}
