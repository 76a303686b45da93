// child.h - the child processes of error_cases: started by fork and exec, each in a process group
// of its own, with its output in files of one temporary folder, and a time limit. A failing kernel
// ruins the process it runs in, and no other.
#ifndef ERROR_CASES_CHILD_H
#define ERROR_CASES_CHILD_H

#include "cases.h"
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CHILDREN = 32, CHILD_NOT_STARTED = 127, POLL_MICROSECONDS = 2000 };

struct child {
    pid_t pid;                                              // 0: not running
    char output[PATH_MAX], result[PATH_MAX], log[PATH_MAX]; // stdout and stderr; RUNNER_FD; driver
    struct timespec started;
    int status; // as waitpid gives it
    int timed_out;
};

static struct {
    char folder[PATH_MAX - 64]; // "" while there is none
    int count;                  // children so far: numbers their files
    struct child *running[MAX_CHILDREN];
    volatile sig_atomic_t signal; // the signal that asked us to stop
} children;

static int children_remove_entry(const char *path, const struct stat *s, int kind, struct FTW *ftw)
{
    (void)s, (void)kind, (void)ftw;
    return remove(path);
}

// Ends every child with all that it started, and removes the temporary folder.
static void children_clean_up(void)
{
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (children.running[i] && children.running[i]->pid > 0) {
            kill(-children.running[i]->pid, SIGKILL);
            waitpid(children.running[i]->pid, NULL, 0);
            children.running[i] = NULL;
        }
    if (children.folder[0])
        nftw(children.folder, children_remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    children.folder[0] = '\0';
}

static void children_on_signal(int number)
{
    children.signal = number;
}

// Makes the temporary folder; returns 0 when that is not possible.
static int children_begin(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(children.folder, sizeof(children.folder), "%s/error_cases.XXXXXX",
             base && base[0] ? base : "/tmp");
    if (!mkdtemp(children.folder)) {
        children.folder[0] = '\0';
        return 0;
    }
    atexit(children_clean_up);
    struct sigaction action;
    memset(&action, 0, sizeof(action));
    action.sa_handler = children_on_signal;
    const int stops[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}; // SIGPIPE: ... | head
    for (int i = 0; i < 5; i++)
        sigaction(stops[i], &action, NULL);
    return 1;
}

// What the child does between fork and exec; does not return.
static void child_become(const struct child *c, char *const argv[], pid_t parent)
{
    char number[16];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); // not even a killed runner leaves a child behind
    int output = open(c->output, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int result = open(c->result, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int nothing = open("/dev/null", O_RDONLY);
    if (getppid() != parent || output < 0 || result < 0 || nothing < 0)
        _exit(CHILD_NOT_STARTED);
    dup2(nothing, STDIN_FILENO);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    snprintf(number, sizeof(number), "%d", result);
    setenv(RUNNER_FD, number, 1);
    setenv("CUDA_LOG_FILE", c->log, 1);            // driver 575 and newer explain errors there
    setenv("TMPDIR", children.folder, 1);          // what the tools leave is removed with it,
    setenv("CUDA_CACHE_PATH", children.folder, 1); // and what the driver compiles
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1);   // the cases end in the middle, and that is fine
    static const char *const change_the_cases[] = {"CUDA_LAUNCH_BLOCKING", "CUDA_MODULE_LOADING",
                                                   "CUDA_FORCE_PTX_JIT", "CUDA_DISABLE_PTX_JIT",
                                                   "CUDA_CACHE_DISABLE"};
    for (int i = 0; i < 5; i++)
        unsetenv(change_the_cases[i]); // whatever the user's shell has set
    execv(argv[0], argv);
    _exit(CHILD_NOT_STARTED);
}

static void child_start(struct child *c, char *const argv[])
{
    int number = children.count++;
    memset(c, 0, sizeof(*c));
    snprintf(c->output, sizeof(c->output), "%s/%d.output", children.folder, number);
    snprintf(c->result, sizeof(c->result), "%s/%d.result", children.folder, number);
    snprintf(c->log, sizeof(c->log), "%s/%d.log", children.folder, number);
    fflush(stdout);
    clock_gettime(CLOCK_MONOTONIC, &c->started);
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0)
        child_become(c, argv, parent);
    if (c->pid < 0) {
        c->status = CHILD_NOT_STARTED << 8;
        return;
    }
    setpgid(c->pid, c->pid); // here as well: whoever comes first
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (!children.running[i]) {
            children.running[i] = c;
            break;
        }
}

static void child_ended(struct child *c)
{
    kill(-c->pid, SIGKILL); // whatever it started and did not wait for
    for (int i = 0; i < MAX_CHILDREN; i++)
        if (children.running[i] == c)
            children.running[i] = NULL;
    c->pid = 0;
}

// Waits for `c`; ends it when it has run for more than `limit_s` seconds.
static void child_wait(struct child *c, double limit_s)
{
    struct timespec now;
    while (c->pid > 0) {
        if (waitpid(c->pid, &c->status, WNOHANG) == c->pid) {
            child_ended(c);
            return;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        double ran_s = (double)(now.tv_sec - c->started.tv_sec) +
                       1e-9 * (double)(now.tv_nsec - c->started.tv_nsec);
        if (ran_s > limit_s && !c->timed_out) {
            c->timed_out = 1;
            kill(-c->pid, SIGKILL);
        }
        if (children.signal) { // Ctrl-C: leave nothing behind, then end by the same signal
            children_clean_up();
            signal(children.signal, SIG_DFL);
            raise(children.signal);
        }
        usleep(POLL_MICROSECONDS);
    }
}

// Exit code of a child that ended by itself; -1 when a signal or the time limit ended it.
static int child_code(const struct child *c)
{
    return !c->timed_out && WIFEXITED(c->status) ? WEXITSTATUS(c->status) : -1;
}

#endif
