// What ends a kernel: a signal, a failed assertion, a barrier that not all threads reach. Says which thread of which
// launch, gives the block up where it stands, and leaves the error for the next synchronise.
#include "scheduler.h"

#include <signal.h>

#include <map>

namespace cuda_cpu
{
static std::string index_text(uint3 v)
{
    return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

static std::string block_text()
{
    const Launch &l = *current_launch;
    return std::string("kernel ") + l.name + " launched at " + l.file + ":" +
           std::to_string(l.line) + ", block " + index_text(blockIdx);
}

std::string where() { return block_text() + ", thread " + index_text(threadIdx); }

[[noreturn]] static void give_up(cudaError_t error)
{
    worker->fault = error;
    leave_for_main();
}

// Ends the running thread's grid.
void kernel_fault(cudaError_t error, const char *format, ...)
{
    if (format) {
        char text[512];
        va_list list;
        va_start(list, format);
        vsnprintf(text, sizeof text, format, list);
        va_end(list);
        message("%s: %s", where().c_str(), text);
    }
    give_up(error);
}

void trap()
{
    if (!in_kernel()) __builtin_trap();
    kernel_fault(cudaErrorLaunchFailure, "__trap()");
}

// ---- Signals ----

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE};
static struct sigaction before[3];

static void on_signal(int number, siginfo_t *info, void *)
{
    char *address = (char *)info->si_addr;
    if (!in_kernel() || worker->running == &worker->main) { // not ours: as if we had not been here
        for (int i = 0; i < 3; i++) sigaction(caught[i], &before[i], nullptr);
        if (in_device_region(address))
            message("host code touches device memory at %p: cudaMemcpy brings it", address);
        return;
    }
    char *stack = worker->running->stack;
    worker->fault_address = address;
    worker->fault_text = "no memory of the device at address %p";
    if (address >= stack && address < stack + GUARD)
        worker->fault_text = "the thread's stack is full";
    if (number == SIGFPE)
        worker->fault_text = "integer division by zero (a GPU goes on with an undefined number)";
    give_up(number == SIGFPE ? cudaErrorLaunchFailure : cudaErrorIllegalAddress);
}

void install_handlers()
{
    if (with_asan()) return; // it says more than we could
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (int i = 0; i < 3; i++) sigaction(caught[i], &action, &before[i]);
}

// Says what a signal was about, when its handler has been left.
void report_signal()
{
    Worker &w = *worker;
    if (w.fault_text)
        message((std::string("%s: ") + w.fault_text).c_str(), where().c_str(), w.fault_address);
    w.fault_text = nullptr;
}

// ---- Barriers that not all threads reach ----

static std::string threads_text(const std::vector<unsigned> &threads)
{
    std::string s = threads.size() == 1 ? "thread " : "threads ";
    int shown = 0;
    for (size_t i = 0, j; i < threads.size(); i = j) {
        for (j = i + 1; j < threads.size() && threads[j] == threads[j - 1] + 1;) j++;
        if (shown++ == 8) return s + " ...";
        if (i) s += ", ";
        s += std::to_string(threads[i]);
        if (j - i > 1) s += "-" + std::to_string(threads[j - 1]);
    }
    return s;
}

void report_waiting(const char *what)
{
    message("%s: %s", block_text().c_str(), what);
    std::map<std::pair<std::string, std::string>, std::vector<unsigned>> waiting; // place, at what
    std::vector<unsigned> ended;
    for (unsigned t = 0; t < block.count; t++) {
        const Thread &thread = worker->threads[t];
        char at[80] = "an operation of their warp";
        if (has_stopped(t, AT_BARRIER)) strcpy(at, "the block's barrier");
        if (has_stopped(t, AT_OPERATION))
            snprintf(at, sizeof at, "an operation of their warp (mask 0x%x)", thread.mask);
        if (has_stopped(t, ENDED))
            ended.push_back(t);
        else if (has_stopped(t, AT_BARRIER) || has_stopped(t, AT_OPERATION) ||
                 has_stopped(t, AT_ACTIVEMASK))
            waiting[{thread.file + (":" + std::to_string(thread.line)), at}].push_back(t);
    }
    for (auto &[place, threads] : waiting)
        message("  %s: %s wait at %s", place.first.c_str(), threads_text(threads).c_str(),
                place.second.c_str());
    if (!ended.empty()) message("  %s have returned from the kernel", threads_text(ended).c_str());
}
} // namespace cuda_cpu
