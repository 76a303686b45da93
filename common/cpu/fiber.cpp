// Stacks of their own for threads that wait, and switching between them. A switch saves a few registers and makes no
// system call; only the first entry of a stack does.
#include "scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>

extern "C" { // present when the program is linked with -fsanitize=address
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size)
    __attribute__((weak));
}

namespace cuda_cpu
{
#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__))
#define JUMP_SET(jump) __builtin_setjmp(jump)
#define JUMP_TO(jump) __builtin_longjmp(jump, 1)
#else
#define JUMP_SET(jump) _setjmp(jump)
#define JUMP_TO(jump) _longjmp(jump, 1)
#endif

__thread Worker *worker;
const Launch *current_launch;

static void fiber_entry();

__attribute__((noinline, noreturn)) static void resume(Fiber *to)
{
    worker->running = to;
    if (!to->started) {
        to->started = true;
        ucontext_t context;
        getcontext(&context);
        context.uc_stack.ss_sp = to->stack;
        context.uc_stack.ss_size = to->size;
        context.uc_link = nullptr;
        makecontext(&context, fiber_entry, 0);
        setcontext(&context);
    }
    JUMP_TO(to->jump);
}

// ASan must know which stack is in use.
static void asan_leave(Fiber *to, void **save)
{
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(save, to->stack, to->size);
}
static void asan_arrive(void *saved)
{
    if (!__sanitizer_finish_switch_fiber) return;
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(saved, &bottom, &size);
    if (worker->main.size) return;
    worker->main.stack = (char *)bottom; // the first switch came from there
    worker->main.size = size;
}

__attribute__((noinline)) void switch_to(Fiber *to)
{
    Fiber *from = worker->running;
    if (to == from) return;
    void *fake = nullptr;
    asan_leave(to, &fake);
    if (JUMP_SET(from->jump) == 0) resume(to);
    asan_arrive(fake);
}

Fiber *new_fiber()
{
    static std::atomic<unsigned> made{0};
    Fiber *f = worker->idle;
    if (f) {
        worker->idle = f->next_idle;
        return f;
    }
    f = new Fiber();
    f->size =
        STACK -
        made++ % 64 * 1088; // tops at different places of the caches, or they push each other out
    void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        message("no memory for the stack of another thread of the block");
        abort();
    }
    mprotect(stack, 4096, PROT_NONE); // a stack overflow faults instead of writing elsewhere
    f->stack = (char *)stack;
    return f;
}

void free_fiber(Fiber *f)
{
    f->next_idle = worker->idle;
    worker->idle = f;
}

// Leaves the running fiber for a thread that can go on, else for a thread not started yet, else for the scheduler.
void dispatch()
{
    Worker &w = *worker;
    Fiber *to = &w.main;
    if (w.ready_count) {
        unsigned t = w.ready[w.ready_first];
        w.ready_first = (w.ready_first + 1) % MAX_THREADS;
        w.ready_count--;
        to = w.threads[t].fiber;
        w.threads[t].fiber = nullptr;
        block.parked--;
        threadIdx = w.threads[t].index;
    } else if (block.next < block.count) {
        to = new_fiber();
    }
    switch_to(to);
}

static void fiber_entry()
{
    asan_arrive(nullptr);
    for (;;) {
        current_launch->run(
            current_launch->body); // starts threads until there is none left to start
        block.next = block.count;
        free_fiber(worker->running);
        dispatch();
    }
}

void delete_fibers()
{
    while (Fiber *f = worker->idle) {
        worker->idle = f->next_idle;
        munmap(f->stack, STACK);
        delete f;
    }
}

void leave_for(Fiber *to)
{
    worker->running->started = false; // what stood on its stack is given up
    free_fiber(worker->running);
    asan_leave(to, nullptr);
    resume(to);
}
} // namespace cuda_cpu
