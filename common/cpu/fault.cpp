// What ends a kernel: a signal, a failed assertion, a barrier that not all threads reach. Says which thread of which
// launch, gives the block up where it stands, and leaves the error for the next synchronise.
#include "scheduler.h"

#include <signal.h>

namespace cuda_cpu
{
static std::string index_text(uint3 v)
{
    return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

static std::string launch_text(const Launch &l)
{
    return std::string(l.name) + " launched at " + l.file + ":" + std::to_string(l.line);
}

std::string where()
{
    return std::string("kernel ") + launch_text(*current_launch) + ", block " +
           index_text(blockIdx) + ", thread " + index_text(threadIdx);
}

[[noreturn]] static void give_up(cudaError_t error)
{
    worker->fault = error;
    leave_for(&worker->main);
}

// Ends the running thread's grid: the block is given up where it stands.
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

static struct sigaction old_segv, old_bus, old_fpe;

static void on_signal(int number, siginfo_t *info, void *)
{
    if (!in_kernel() || worker->running == &worker->main) { // not ours: as if we had not been here
        sigaction(SIGSEGV, &old_segv, nullptr);
        sigaction(SIGBUS, &old_bus, nullptr);
        sigaction(SIGFPE, &old_fpe, nullptr);
        if (in_device_region(info->si_addr))
            message("host code touches device memory at %p: cudaMemcpy brings it", info->si_addr);
        return;
    }
    worker->signal = number;
    char *stack = worker->running->stack, *address = (char *)info->si_addr;
    worker->stack_overflow = address >= stack && address < stack + 4096; // the page below it
    worker->fault_address = info->si_addr;
    give_up(number == SIGFPE ? cudaErrorLaunchFailure : cudaErrorIllegalAddress);
}

void install_handlers()
{
    if (with_asan()) return; // it says more than we could
    struct sigaction action = {};
    action.sa_sigaction = on_signal;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGBUS, &action, &old_bus);
    sigaction(SIGFPE, &action, &old_fpe);
}

void report_signal()
{
    Worker &w = *worker;
    if (!w.signal) return;
    if (w.signal == SIGFPE)
        message("%s: integer division by zero (a GPU goes on with an undefined number)",
                where().c_str());
    else if (w.stack_overflow)
        message("%s: the thread's stack is full", where().c_str());
    else
        message("%s: no memory of the device at address %p", where().c_str(), w.fault_address);
    w.signal = 0;
}

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
    Worker &w = *worker;
    message("kernel %s, block %s: %s", launch_text(*current_launch).c_str(),
            index_text(blockIdx).c_str(), what);
    std::vector<unsigned> ended;
    std::vector<bool> said(block.count);
    for (unsigned t = 0; t < block.count; t++) {
        if (has_ended(t)) ended.push_back(t);
        if (!w.threads[t].fiber || said[t]) continue;
        Thread &a = w.threads[t];
        std::vector<unsigned> same;
        for (unsigned u = t; u < block.count; u++) {
            Thread &b = w.threads[u];
            if (!b.fiber || b.line != a.line || b.wait != a.wait ||
                (a.wait == AT_WARP_OP && b.mask != a.mask))
                continue;
            same.push_back(u);
            said[u] = true;
        }
        char mask[32] = "";
        if (a.wait == AT_WARP_OP) snprintf(mask, sizeof mask, " (mask 0x%x)", a.mask);
        message("  %s:%d: %s wait at %s%s", a.file, a.line, threads_text(same).c_str(),
                a.wait == AT_BARRIER ? "the block's barrier" : "an operation of their warp", mask);
    }
    if (!ended.empty()) message("  %s have returned from the kernel", threads_text(ended).c_str());
}
} // namespace cuda_cpu
