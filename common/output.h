// output.h - a file that appears whole or not at all.
//
// It is written beside its final name and renamed when it is complete. Whatever ends the program
// before that, Ctrl-C included, removes the unfinished one.
#ifndef COMMON_OUTPUT_H
#define COMMON_OUTPUT_H

#include "check.h"
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

struct output_file {
    FILE *stream;
    char path[4096], temporary[4160]; // temporary is empty when there is nothing to rename
};

enum { OUTPUT_MAX_OPEN = 4 };
static struct output_file *volatile output_open_files[OUTPUT_MAX_OPEN];

// unlink() is one of the few calls that a signal handler may make.
static inline void output_remove_unfinished(void)
{
    for (int i = 0; i < OUTPUT_MAX_OPEN; i++) {
        struct output_file *o = output_open_files[i];
        if (o && o->temporary[0])
            unlink(o->temporary);
    }
}

static inline void output_on_signal(int number)
{
    output_remove_unfinished();
    signal(number, SIG_DFL); // die of the signal, as the shell expects
    raise(number);
}

static inline void output_watch_exit(void)
{
    static int watched = 0;
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    if (watched++)
        return;
    atexit(output_remove_unfinished);
    for (int i = 0; i < 3; i++)
        if (signal(signals[i], output_on_signal) == SIG_IGN)
            signal(signals[i], SIG_IGN); // nohup: stay deaf to it
}

// Opens `path` for writing; 1 when it can be written. A pipe or a device such as /dev/null is
// written directly: nothing may be renamed over it.
static inline int output_open(struct output_file *o, const char *path)
{
    struct stat status;
    int slot = 0, direct = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    memset(o, 0, sizeof(*o));
    while (slot < OUTPUT_MAX_OPEN && output_open_files[slot])
        slot++;
    if (slot == OUTPUT_MAX_OPEN || strlen(path) >= sizeof(o->path)) {
        errno = slot == OUTPUT_MAX_OPEN ? EMFILE : ENAMETOOLONG;
        return 0;
    }
    output_watch_exit();
    snprintf(o->path, sizeof(o->path), "%s", path);
    if (!direct)
        snprintf(o->temporary, sizeof(o->temporary), "%s.%ld.part", path, (long)getpid());
    o->stream = fopen(direct ? o->path : o->temporary, "w");
    if (o->stream)
        output_open_files[slot] = o;
    return o->stream != NULL;
}

// Closes the file and gives it its name; 1 when every byte was written.
static inline int output_commit(struct output_file *o)
{
    int ok = fflush(o->stream) == 0 && !ferror(o->stream);
    ok = fclose(o->stream) == 0 && ok;
    if (ok && o->temporary[0])
        ok = rename(o->temporary, o->path) == 0;
    if (!ok && o->temporary[0])
        unlink(o->temporary);
    for (int i = 0; i < OUTPUT_MAX_OPEN; i++)
        if (output_open_files[i] == o)
            output_open_files[i] = NULL;
    o->stream = NULL;
    return ok;
}

#endif
