// The C library's functions that mean something else in a kernel: printf, assert, malloc, free and clock. The linker
// sends the program's calls here (--wrap).
#include "runtime.h"

#include <stdlib.h>
#include <unistd.h>

#include <atomic>

namespace cuda_cpu
{
static std::mutex printf_mutex;
static std::string &printf_fifo = *new std::string(), &assert_text = *new std::string();
Limits limits;
static std::atomic<size_t> heap_used{0};

void flush_printf()
{
    std::lock_guard<std::mutex> lock(printf_mutex);
    fwrite(printf_fifo.data(), 1, printf_fifo.size(), stdout);
    fwrite(assert_text.data(), 1, assert_text.size(), stderr);
    printf_fifo.clear();
    assert_text.clear();
}

// Kernels print into a FIFO, as on the GPU: it reaches stdout when the host synchronises. What does not fit is lost.
static int print(const char *format, va_list list)
{
    if (!in_kernel()) return vprintf(format, list);
    char text[4096];
    vsnprintf(text, sizeof text, format, list);
    std::lock_guard<std::mutex> lock(printf_mutex);
    if (printf_fifo.size() + strlen(text) <= limits.printf_fifo) printf_fifo += text;
    return 0;
}

// At exit: what is left in the FIFO is lost, as on a GPU; memory that was never freed is reported.
__attribute__((destructor)) static void at_exit()
{
    if (!settings().leak_check || state.dead || state.sticky || state.pending || state.forked)
        return;
    if (!report_leaks()) return;
    fflush(nullptr);
    _exit(23);
}
} // namespace cuda_cpu

using namespace cuda_cpu;

extern "C" {
void *__real_malloc(size_t size);
void __real_free(void *p);
clock_t __real_clock();
[[noreturn]] void __real___assert_fail(const char *expression, const char *file, unsigned line,
                                       const char *function);
size_t malloc_usable_size(void *p);

int __wrap_printf(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = print(format, list);
    va_end(list);
    return n;
}

int __wrap___printf_chk(int, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int n = print(format, list);
    va_end(list);
    return n;
}

void *__wrap_malloc(size_t size)
{
    if (!in_kernel()) return __real_malloc(size);
    if (size > limits.heap || heap_used + size > limits.heap) return nullptr;
    void *p = __real_malloc(size);
    heap_used += malloc_usable_size(p);
    return p;
}

void __wrap_free(void *p)
{
    if (in_kernel()) heap_used -= malloc_usable_size(p);
    __real_free(p);
}

clock_t __wrap_clock() { return in_kernel() ? (clock_t)clock64() : __real_clock(); }

void __wrap___assert_fail(const char *expression, const char *file, unsigned line,
                          const char *function)
{
    if (!in_kernel()) __real___assert_fail(expression, file, line, function);
    char text[1024];
    snprintf(text, sizeof text,
             "%s:%u: %s: block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `%s` failed.\n", file,
             line, function, blockIdx.x, blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y,
             threadIdx.z, expression);
    printf_mutex.lock(); // not a guard: kernel_fault does not come back
    if (assert_text.size() < limits.printf_fifo) assert_text += text;
    printf_mutex.unlock();
    kernel_fault(cudaErrorAssert, nullptr);
}
}
