// error_cases: runs programs that fail on purpose, shows what CUDA reports, says why, and runs the
// fixed twin. Each run is a process of its own, started before this one makes any CUDA call - it
// never makes one: a failed kernel ruins its process, and the next case must not notice.
//
// Predict before you run it: a kernel wrote through a null pointer. Which of the process's later CUDA
// calls still work?   ./error_cases null_pointer
//
// usage: error_cases                       lists the cases
//        error_cases CASE | --topic T | --all
//        error_cases --explain CASE        the explanation and the source, without running
#include "../common/lesson.h"
#include "cases.h"
#include "child.h"
#include <libgen.h>

enum { TEXT_WIDTH = 96, LOG_LINES = 3, TOOL_LINES = 4, MACHINE_LIMIT_S = 60, LINE_SIZE = 1024 };

enum outcome { SHOWN, FAILED, WAIVED };

static struct {
    char programs[PATH_MAX]; // the folder with the compiled programs
    char sources[PATH_MAX];  // the folder with the .cu files, "" when it is not here
    char sanitizer[PATH_MAX];
    char no_gpu[512]; // why cases that need a GPU are waived; "" when there is one
    int display;      // the card draws a desktop
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
    const char *const places[] = {dirname(source), run.programs, "06_error_cases", "."};
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
    int column = printf("%-10s", label);
    for (const char *word = text; *word;) {
        int length = (int)strcspn(word, " ");
        if (column + length > TEXT_WIDTH)
            column = printf("\n%-10s", "") - 1;
        column += printf("%.*s ", length, word);
        word += length + strspn(word + length, " ");
    }
    printf("\n");
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
        if (inside || strncmp(line, "waived: ", 8) == 0)
            printf("%s%s", indent, line);
        inside |= strncmp(line, TWIN_MARK, strlen(TWIN_MARK)) == 0;
    }
    if (f && !inside) { // it did not come that far: everything may matter
        rewind(f);
        while (fgets(line, sizeof(line), f))
            printf("%s%s", indent, line);
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
        printf("  | %s", text);
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

// The last line on RUNNER_FD: "error|700|cudaErrorIllegalAddress|cudaDeviceSynchronize()", "symptom|
// text" or "ratio|3.2". Goes into the JSON.
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

// Prints the few lines of compute-sanitizer that matter; returns the number of errors it counted, -1
// when it came to no count.
static int print_tool(const struct child *c)
{
    static const char *const matter[] = {"Invalid ", "Race reported", "Error: ", "Warning: ",
                                         "Barrier error", "Uninitialized ", "by thread", " at ",
                                         "Address ", "ERROR SUMMARY", "RACECHECK SUMMARY"};
    char line[LINE_SIZE];
    int printed = 0, errors = -1, number;
    FILE *f = fopen(c->output, "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *summary = strstr(line, "SUMMARY: ");
        if (strncmp(line, "=========", 9) != 0)
            continue;
        if (summary && sscanf(summary, "SUMMARY: %d", &number) == 1)
            errors = number;
        for (size_t i = 0; i < sizeof(matter) / sizeof(matter[0]); i++)
            if (strstr(line, matter[i]) && (printed < TOOL_LINES || summary)) {
                printf("  | %s", line);
                printed++;
                break;
            }
    }
    if (f)
        fclose(f);
    return errors;
}

// ---- one case

static void twin_start(struct child *child, const struct error_case *c, int fixed, const char *tool)
{
    char path[2 * PATH_MAX], device[16];
    char *argv[12];
    int n = 0;
    snprintf(path, sizeof(path), "%s/%s", run.programs, c->program);
    snprintf(device, sizeof(device), "%d", common_options.device);
    if (strcmp(c->topic, "build_and_link") == 0) {
        snprintf(path, sizeof(path), "%s/link_errors/show", run.sources);
        argv[n++] = path;
        argv[n++] = (char *)c->name;
    } else {
        if (tool) {
            argv[n++] = run.sanitizer;
            argv[n++] = (char *)"--tool";
            argv[n++] = (char *)tool;
        }
        argv[n++] = path;
        argv[n++] = (char *)c->name;
        argv[n++] = (char *)"--device";
        argv[n++] = device;
        if (fixed)
            argv[n++] = (char *)"--fixed";
        if (run.really)
            argv[n++] = (char *)"--really";
    }
    argv[n] = NULL;
    child_start(child, argv);
}

static void print_explanation(const struct error_case *c)
{
    char label[64];
    if (!c->why)
        return;
    print_wrapped("why:", c->why);
    snprintf(label, sizeof(label), "%s", "part:");
    print_wrapped(label, c->part);
    print_wrapped("fix:", c->fix);
    if (c->profile) {
        printf("%-10sncu --metrics %.*s ./%s %s\n", "profile:", (int)strcspn(c->profile, " ,"),
               c->profile, c->program, c->name);
        print_wrapped("", c->profile);
    }
}

static enum outcome waive(const struct error_case *c, const char *reason)
{
    printf("waived: %s: %s\n", c->name, reason);
    char text[120];
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

// The build half: link_errors/show does both halves itself.
static enum outcome run_link_case(const struct error_case *c)
{
    struct child child;
    char reason[LINE_SIZE];
    if (!run.sources[0])
        return waive(c, "the folder link_errors is not here: run it where the sources are");
    twin_start(&child, c, 0, NULL);
    children_wait(run.limit_s);
    if (child_code(&child) == EXIT_WAIVED) {
        waived_reason(&child, reason, sizeof(reason));
        return waive(c, reason);
    }
    print_output(&child, "");
    print_how_it_ended(&child);
    return conclude(c, child_code(&child) == EXIT_OK, "not as expected");
}

// 1 when the tool found what it should and was silent on the fixed twin; prints its lines.
static int tool_finds_it(const struct error_case *c)
{
    struct child broken, fixed;
    if (!run.sanitizer[0]) {
        printf("compute-sanitizer --tool %s names the line; it is not installed here\n", c->tool);
        return !(c->flags & TOOL_ALONE_FINDS_IT) || DEVICE_IS_CPU ? 1 : -1;
    }
    twin_start(&broken, c, 0, c->tool);
    twin_start(&fixed, c, 1, c->tool);
    children_wait(run.limit_s);
    printf("compute-sanitizer --tool %s ./%s %s\n", c->tool, c->program, c->name);
    int found = print_tool(&broken);
    print_how_it_ended(&broken);
    printf("the same with --fixed\n");
    int left = print_tool(&fixed);
    print_how_it_ended(&fixed);
    return found > 0 && left == 0;
}

static enum outcome run_twins(const struct error_case *c)
{
    struct child broken, fixed;
    char reason[LINE_SIZE];
    twin_start(&broken, c, 0, NULL);
    if (c->flags & ALONE)
        children_wait(run.limit_s);
    if (!(c->flags & ALONE) || child_code(&broken) != EXIT_WAIVED) {
        twin_start(&fixed, c, 1, NULL);
        children_wait(run.limit_s);
    } else {
        fixed = broken;
    }
    if (child_code(&broken) == EXIT_WAIVED || child_code(&fixed) == EXIT_WAIVED) {
        waived_reason(child_code(&broken) == EXIT_WAIVED ? &broken : &fixed, reason, sizeof(reason));
        return waive(c, reason);
    }
    printf("expected:  %s\n", c->expected);
    printf("broken:    ./%s %s\n", c->program, c->name);
    print_output(&broken, "  | ");
    print_how_it_ended(&broken);
    print_driver_log(&broken);
    record_result(c, &broken);
    int tool = c->tool ? tool_finds_it(c) : 1;
    print_explanation(c);
    printf("fixed:     ./%s %s --fixed\n", c->program, c->name);
    print_output(&fixed, "  | ");
    print_how_it_ended(&fixed);
    if (child_code(&broken) != EXIT_OK)
        return conclude(c, 0, "the broken twin did not fail as expected");
    if (child_code(&fixed) != EXIT_OK)
        return conclude(c, 0, "the fixed twin failed");
    if (tool < 0)
        return waive(c, "only compute-sanitizer shows this fault, and it is not installed");
    return conclude(c, tool, "compute-sanitizer did not find it, or complains about the fixed twin");
}

static enum outcome run_case(const struct error_case *c)
{
    printf("\n== %s (%s)\n%s\n", c->name, c->topic, c->question);
    if (strcmp(c->topic, "build_and_link") == 0)
        return run_link_case(c);
    if (DEVICE_IS_CPU && !(c->flags & ON_CPU))
        return waive(c, c->needs);
    if (run.no_gpu[0] && !(c->flags & NEEDS_NO_GPU))
        return waive(c, run.no_gpu);
    if (run.display && (c->flags & NOT_ON_DISPLAY))
        return waive(c, "this card draws a desktop, which the case could disturb");
    return run_twins(c);
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
    int linking = strcmp(c->topic, "build_and_link") == 0;
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
    dprintf(fd ? atoi(fd) : STDERR_FILENO, "device|%s|%d|%d|%d|%d\n", device_facts.name,
            device_facts.major, device_facts.minor, device_facts.sm_count, display);
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
    children_wait(MACHINE_LIMIT_S);
    FILE *f = fopen(child.result, "r");
    if (f && !fgets(line, sizeof(line), f))
        line[0] = '\0';
    if (f)
        fclose(f);
    struct device_facts *d = &device_facts;
    if (sscanf(line, "device|%255[^|]|%d|%d|%d|%d", d->name, &d->major, &d->minor, &d->sm_count,
               &run.display) != 5) {
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
        printf("device %d: %s. These programs run on the CPU; what only a GPU can show is waived.\n",
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
    for (int i = 0; i < ERROR_CASE_COUNT; i++) {
        const struct error_case *c = &error_cases[i];
        if (only ? c == only : !topic || strcmp(topic, c->topic) == 0)
            run_case(c);
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
