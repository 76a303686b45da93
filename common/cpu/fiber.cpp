// Stacks of their own for threads that wait, and switching between them. A switch saves a few registers and makes no
// system call; only the first entry of a stack does.
#include "scheduler.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>

extern "C" { // ASan must know which stack is in use; present when the program is linked with it
[[gnu::weak]] void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
[[gnu::weak]] void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
}

namespace cuda_cpu
{
static void leave(Fiber *to, void **save)
{
    if (__sanitizer_start_switch_fiber) __sanitizer_start_switch_fiber(save, to->stack, to->size);
}

static void arrive(void *saved)
{
    if (!__sanitizer_finish_switch_fiber) return;
    const void *bottom;
    size_t size;
    __sanitizer_finish_switch_fiber(saved, &bottom, &size);
    if (worker->main.size) return;
    worker->main.stack = (char *)bottom; // the first switch came from there
    worker->main.size = size;
}

// What a fiber does: it starts threads until there is none left to start, then it has no thread.
static void fiber_main()
{
    arrive(nullptr);
    for (;;) {
        current_launch->run(current_launch->body);
        worker->idle.push_back(worker->running);
        dispatch();
    }
}

[[gnu::noinline, noreturn]] static void resume(Fiber *to)
{
    worker->running = to;
    if (to->started) JUMP_TO(to->jump);
    to->started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = to->stack;
    context.uc_stack.ss_size = to->size;
    context.uc_link = nullptr;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
    abort(); // setcontext does not return
}

[[gnu::noinline]] void switch_to(Fiber *to)
{
    Fiber *from = worker->running;
    if (to == from) return;
    void *saved = nullptr;
    leave(to, &saved);
    if (JUMP_SET(from->jump) == 0) resume(to);
    arrive(saved);
}

void leave_for_main()
{
    leave(&worker->main, nullptr);
    resume(&worker->main);
}

Fiber *new_fiber()
{
    Worker &w = *worker;
    if (w.idle.empty()) {
        void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
        if (stack == MAP_FAILED) {
            message("no memory for the stack of another thread of the block");
            abort();
        }
        mprotect(stack, GUARD, PROT_NONE); // a stack overflow faults instead of writing elsewhere
        // Tops at different places of the caches, or they push each other out.
        size_t size = STACK - w.fibers.size() % 64 * 1088;
        w.fibers.push_back(new Fiber{{}, false, (char *)stack, size});
        w.idle.push_back(w.fibers.back());
    }
    Fiber *f = w.idle.back();
    w.idle.pop_back();
    return f;
}

void reset_fibers()
{
    for (Fiber *f : worker->fibers) f->started = false;
    worker->idle = worker->fibers;
}

void delete_fibers()
{
    for (Fiber *f : worker->fibers) {
        munmap(f->stack, STACK);
        delete f;
    }
}
} // namespace cuda_cpu
