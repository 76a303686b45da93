// Runs grids. Blocks are spread over OS threads. The threads of a block are plain calls, one after another, on
// one stack (a fiber). Only a thread that has to wait, at __syncthreads() or for its warp, is left standing on
// its fiber; the next thread goes on with another one. A kernel without barriers never switches.
#include "runtime.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <numeric>
#include <random>
#include <vector>

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

extern "C" { // present when the program is linked with -fsanitize=address
void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size)
    __attribute__((weak));
void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size)
    __attribute__((weak));
}

namespace cuda_cpu
{
__thread Block block;

// ---- Fibers ----

// GCC's own setjmp saves three registers and makes no system call. Elsewhere the C library's does.
#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__))
typedef void *Jump[5];
#define JUMP_SET(jump) __builtin_setjmp(jump)
#define JUMP_TO(jump) __builtin_longjmp(jump, 1)
#else
typedef jmp_buf Jump;
#define JUMP_SET(jump) _setjmp(jump)
#define JUMP_TO(jump) _longjmp(jump, 1)
#endif

const size_t STACK = 256 << 10, ARENA = 228 << 10, ARENA_RESERVED = 16 << 20;
const unsigned MAX_THREADS = 1024;

struct Fiber {
    Jump jump;
    char *stack;
    size_t size;
    bool started; // has been entered, jump is valid
    Fiber *next_idle;
};

enum Wait { NOT, AT_BARRIER, AT_WARP_OP, AT_ACTIVEMASK };

struct Thread { // a CUDA thread that is parked
    Fiber *fiber;
    Wait wait;
    WarpOp op;
    unsigned mask;
    int source;
    uint64_t value, result;
    uint3 index;
    const char *file;
    int line;
};

struct SharedVariable {
    const char *name;
    char *start;
    size_t size;
};

struct Worker { // an OS thread that runs blocks
    int number = 0;
    Fiber main = {}, *running = &main, *idle = nullptr;
    Thread threads[MAX_THREADS] = {};
    unsigned short ready[MAX_THREADS], order[MAX_THREADS], rank[MAX_THREADS];
    unsigned ready_first = 0, ready_count = 0;
    unsigned arrived = 0, votes = 0, vote_result = 0;
    unsigned active_waiting = 0; // threads that stand at an __activemask()
    const char *barrier_file = nullptr;
    int barrier_line = 0;
    uint64_t serial = 0;
    unsigned epoch = 1, warp_epoch[MAX_THREADS / 32] = {};
    char *arena = nullptr;
    size_t arena_used = 0;
    std::vector<SharedVariable> shared; // of the block
    cudaError_t fault = cudaSuccess;
    int signal = 0;
    const void *fault_address = nullptr;
    char signal_stack[32 << 10]; // a fault by stack overflow needs another stack
};
static __thread Worker *worker;
static const Launch *current_launch;

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

__attribute__((noinline)) static void switch_to(Fiber *to)
{
    Fiber *from = worker->running;
    if (to == from) return;
    void *fake = nullptr;
    asan_leave(to, &fake);
    if (JUMP_SET(from->jump) == 0) resume(to);
    asan_arrive(fake);
}

static Fiber *new_fiber()
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

static void free_fiber(Fiber *f)
{
    f->next_idle = worker->idle;
    worker->idle = f;
}

// Leaves the running fiber for a thread that can go on, else for a thread not started yet, else for the scheduler.
static void dispatch()
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

// ---- Waiting ----

static uint3 index_of(unsigned t)
{
    return {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
}

bool start_thread()
{
    if (block.in_turn) {
        threadIdx = {0, 0, 0};
        return true;
    }
    if (block.next >= block.count) return false;
    threadIdx = index_of(block.order ? block.order[block.next] : block.next);
    block.next++;
    return true;
}

static Thread &park(Wait wait, const char *file, int line)
{
    unsigned me = linear_index();
    if (block.in_turn) { // the others started in turn, up to this one
        block.in_turn = false;
        block.next = me + 1;
    }
    Thread &t = worker->threads[me];
    t.fiber = worker->running;
    t.wait = wait;
    t.index = threadIdx;
    t.file = file;
    t.line = line;
    block.parked++;
    return t;
}

static void make_ready(unsigned t)
{
    Worker &w = *worker;
    w.ready[(w.ready_first + w.ready_count++) % MAX_THREADS] = (unsigned short)t;
    w.threads[t].wait = NOT;
}

// A warp that can go on does so before the others: they need not be as far.
static void make_warp_ready(unsigned first, unsigned lanes)
{
    Worker &w = *worker;
    for (unsigned i = 0; i < 32; i++) {
        unsigned l = settings().schedule == Settings::REVERSE ? i : 31 - i;
        if (!(lanes >> l & 1)) continue;
        w.ready_first = (w.ready_first + MAX_THREADS - 1) % MAX_THREADS;
        w.ready[w.ready_first] = (unsigned short)(first + l);
        w.ready_count++;
        w.threads[first + l].wait = NOT;
    }
}

static bool has_ended(unsigned t)
{ // started, and neither parked nor running
    unsigned rank = block.order ? worker->rank[t] : t;
    return rank < block.next && !worker->threads[t].fiber &&
           !(t == linear_index() && worker->running != &worker->main);
}

static void release_barrier()
{
    Worker &w = *worker;
    w.vote_result = w.votes;
    w.votes = w.arrived = 0;
    w.epoch++;
    for (unsigned i = 0; i < block.count; i++) {
        unsigned t = block.order ? block.order[i] : i;
        if (w.threads[t].wait == AT_BARRIER) make_ready(t);
    }
}

static unsigned first_of_warp(unsigned t) { return t & ~31u; }
static void release_active(unsigned first, unsigned ended_now);
static void report_waiting(const char *what);

int block_barrier(bool vote, const char *file, int line)
{
    if (!in_kernel()) return 0;
    Worker &w = *worker;
    if (w.arrived == 0) {
        w.barrier_file = file;
        w.barrier_line = line;
    }
    bool elsewhere = line != w.barrier_line;
    park(AT_BARRIER, file, line);
    w.arrived++;
    w.votes += vote;
    if (elsewhere) {
        report_waiting("threads of one block wait at different barriers");
        w.threads[linear_index()].fiber =
            nullptr; // it is the running one, which kernel_fault frees
        kernel_fault(cudaErrorLaunchFailure, nullptr);
    }
    unsigned ended = settings().early_exit ? block.next - block.parked : 0;
    if (w.arrived + ended == block.count)
        release_barrier();
    else if (w.active_waiting)
        release_active(first_of_warp(linear_index()), MAX_THREADS);
    dispatch();
    return (int)w.vote_result;
}

// Completes the operation of the lanes in mask when all that still run have arrived.
static void try_complete(unsigned first, unsigned mask, unsigned ended_now)
{
    Worker &w = *worker;
    unsigned arrived = 0, bits = 0;
    WarpOp op = warp_sync;
    for (unsigned l = 0; l < 32 && first + l < block.count; l++) {
        if (!(mask >> l & 1)) continue;
        Thread &t = w.threads[first + l];
        if (t.wait == AT_WARP_OP && t.mask == mask && t.fiber) {
            arrived |= 1u << l;
            bits |= (unsigned)(t.value != 0) << l;
            op = t.op;
        } else if (first + l != ended_now && !has_ended(first + l)) {
            return;
        }
    }
    if (op == warp_sync) w.warp_epoch[first / 32]++;
    for (unsigned l = 0; l < 32; l++) {
        if (!(arrived >> l & 1)) continue;
        Thread &t = w.threads[first + l];
        if (op == warp_ballot) t.result = bits;
        if (op == warp_shuffle) {
            bool there = t.source >= 0 && t.source < 32 && arrived >> t.source & 1;
            t.result = there ? w.threads[first + (unsigned)t.source].value : 0xfffafffafffafffaull;
        }
    }
    make_warp_ready(first, arrived);
}

// The lanes that stand at one __activemask() are the active ones, once no lane of their warp can run.
static void release_active(unsigned first, unsigned ended_now)
{
    Worker &w = *worker;
    unsigned last = min(first + 32, block.count);
    for (unsigned t = first; t < last; t++)
        if (t != ended_now && !has_ended(t) && (!w.threads[t].fiber || w.threads[t].wait == NOT))
            return;
    for (unsigned t = first; t < last; t++) {
        if (w.threads[t].wait != AT_ACTIVEMASK) continue;
        unsigned mask = 0;
        for (unsigned u = t; u < last; u++)
            if (w.threads[u].wait == AT_ACTIVEMASK && w.threads[u].line == w.threads[t].line)
                mask |= 1u << (u - first);
        for (unsigned u = t; u < last; u++)
            if (mask >> (u - first) & 1) w.threads[u].result = mask;
        w.active_waiting -= (unsigned)__builtin_popcount(mask);
        make_warp_ready(first, mask);
    }
}

uint64_t warp_operation(WarpOp op, unsigned mask, uint64_t value, int source, const char *file,
                        int line)
{
    if (!in_kernel()) return op == warp_shuffle ? value : 1;
    unsigned me = linear_index(), first = first_of_warp(me);
    if (op != warp_active && !(mask >> (me - first) & 1))
        kernel_fault(cudaErrorLaunchFailure,
                     "%s:%d: lane %u calls with mask 0x%x, in which it is missing", file, line,
                     me - first, mask);
    Thread &t = park(op == warp_active ? AT_ACTIVEMASK : AT_WARP_OP, file, line);
    t.op = op;
    t.mask = mask;
    t.value = value;
    t.source = source;
    if (op == warp_active)
        worker->active_waiting++;
    else
        try_complete(first, mask, MAX_THREADS);
    if (worker->active_waiting) release_active(first, MAX_THREADS);
    dispatch();
    return t.result;
}

void thread_ended()
{
    Worker &w = *worker;
    unsigned me = linear_index(), first = first_of_warp(me);
    for (unsigned l = 0; l < 32 && first + l < block.count; l++) {
        Thread &t = w.threads[first + l];
        if (t.wait == AT_WARP_OP && t.mask >> (me - first) & 1) try_complete(first, t.mask, me);
    }
    if (w.active_waiting) release_active(first, me);
    if (settings().early_exit && w.arrived && w.arrived + block.next - block.parked == block.count)
        release_barrier();
}

void barrier_epochs(unsigned *of_block, unsigned *of_warp)
{
    *of_block = worker->epoch;
    *of_warp = worker->warp_epoch[linear_index() / 32];
}

// ---- Shared memory ----

void *shared_allocate(const char *name, size_t size, size_t align)
{
    Worker &w = *worker;
    void *p;
    if (align < 16) align = 16;
    size_t start = (w.arena_used + align - 1) / align * align;
    w.arena_used = start + size;
    if (w.arena_used > ARENA)
        kernel_fault(cudaErrorLaunchFailure, "the block uses more than %zu KiB of shared memory",
                     ARENA >> 10);
    if (with_asan()) { // an allocation of its own, so that ASan sees its end
        if (posix_memalign(&p, align, size) != 0) abort();
    } else {
        p = w.arena + start;
    }
    w.shared.push_back({name, (char *)p, size});
    poison(p, size);
    return p;
}

std::string shared_name(const void *p)
{
    for (const SharedVariable &v : worker->shared)
        if (p >= v.start && p < v.start + v.size)
            return std::string(v.name) + ", byte " + std::to_string((const char *)p - v.start);
    return "past the end of an array";
}

const void *shared_arena(size_t *size)
{
    *size = ARENA;
    return worker->arena;
}

// ---- Faults ----

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
    worker->running->started = false;
    free_fiber(worker->running);
    asan_leave(&worker->main, nullptr);
    resume(&worker->main);
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

static void report_signal()
{
    Worker &w = *worker;
    if (!w.signal) return;
    if (w.signal == SIGFPE)
        message("%s: integer division by zero (a GPU goes on with an undefined number)",
                where().c_str());
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

static void report_waiting(const char *what)
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

// ---- Blocks ----

// Another order of the threads, the same one in every run with the same seed.
static void choose_order(uint64_t block_number)
{
    Worker &w = *worker;
    block.order = nullptr;
    if (settings().schedule == Settings::FORWARD) return;
    for (unsigned i = 0; i < block.count; i++) w.order[i] = (unsigned short)(block.count - 1 - i);
    if (settings().schedule == Settings::RANDOM) {
        std::minstd_rand random(settings().seed * 7919u + (unsigned)block_number + 1);
        for (unsigned i = block.count - 1; i > 0; i--)
            std::swap(w.order[i], w.order[random() % (i + 1)]);
    }
    for (unsigned i = 0; i < block.count; i++) w.rank[w.order[i]] = (unsigned short)i;
    block.order = w.order;
}

static void clear_after_fault()
{
    Worker &w = *worker;
    for (unsigned t = 0; t < block.count; t++) {
        if (Fiber *f = w.threads[t].fiber) {
            f->started = false;
            free_fiber(f);
        }
        w.threads[t] = {};
    }
    w.ready_count = w.arrived = w.votes = w.active_waiting = 0;
    block.parked = 0;
}

static cudaError_t run_block(const Launch &l, uint64_t number)
{
    Worker &w = *worker;
    unsigned row = (unsigned)(number / l.grid.x);
    blockIdx = {(unsigned)(number - (uint64_t)row * l.grid.x), row % l.grid.y, row / l.grid.y};
    block.serial = ++w.serial;
    block.next = block.parked = 0;
    choose_order(number);
    block.in_turn = !block.order;
    w.epoch++;
    w.arena_used = 0;
    block.dynamic_shared = (char *)w.arena;
    if (l.shared || with_asan())
        block.dynamic_shared = (char *)shared_allocate("extern", l.shared, 1024);
    dispatch(); // comes back when nothing can run
    if (w.fault) {
        report_signal();
    } else if (block.parked) {
        report_waiting("not all threads of the block reach the barrier");
        w.fault = cudaErrorLaunchFailure;
    }
    cudaError_t fault = w.fault;
    if (fault) clear_after_fault();
    w.fault = cudaSuccess;
    if (with_asan())
        for (const SharedVariable &v : w.shared) free(v.start);
    w.shared.clear();
    block.serial = 0;
    return fault;
}

// ---- Grids ----

struct Grid {
    const Launch *launch;
    uint64_t blocks, step, offset; // block i runs as number (i * step + offset) % blocks
    std::atomic<uint64_t> next{0};
    std::atomic<int> fault{0};
};

struct WorkerOwner {
    Worker *w = nullptr;
    ~WorkerOwner()
    {
        if (!w) return;
        while (Fiber *f = w->idle) {
            w->idle = f->next_idle;
            munmap(f->stack, STACK);
            delete f;
        }
        munmap(w->arena, ARENA_RESERVED);
        stack_t none = {};
        none.ss_flags = SS_DISABLE;
        if (!with_asan()) sigaltstack(&none, nullptr);
        delete w;
        worker = nullptr;
    }
};

static void make_worker(int number)
{
    static thread_local WorkerOwner owner;
    if (worker) return;
    owner.w = worker = new Worker();
    worker->number = number;
    worker->main.started = true;
    worker->arena = (char *)mmap(nullptr, ARENA_RESERVED, PROT_NONE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(worker->arena, ARENA, PROT_READ | PROT_WRITE);
    stack_t alternate = {};
    alternate.ss_size = sizeof worker->signal_stack;
    alternate.ss_sp = worker->signal_stack;
    if (!with_asan()) sigaltstack(&alternate, nullptr);
}

static void work(Grid &grid)
{
    const Launch &l = *grid.launch;
    worker->main.size = 0;
    blockDim = l.block;
    gridDim = l.grid;
    block.count = l.block.x * l.block.y * l.block.z;
    for (uint64_t i; !grid.fault && (i = grid.next++) < grid.blocks;) {
        if (grid.step != 1)
            i = (uint64_t)(((unsigned __int128)i * grid.step + grid.offset) % grid.blocks);
        if (cudaError_t fault = run_block(l, i)) grid.fault = fault;
    }
}

// The other OS threads wait here for grids. Never destroyed: they wait until the process is gone.
struct Pool {
    std::mutex mutex;
    std::condition_variable wake, done;
    Grid *grid = nullptr;
    uint64_t generation = 0;
    int threads = 0, active = 0;
};
static Pool &pool = *new Pool();

static void *pool_main(void *number)
{
    make_worker((int)(intptr_t)number);
    std::unique_lock<std::mutex> lock(pool.mutex);
    for (uint64_t seen = 0;;) {
        pool.wake.wait(lock, [&] { return pool.grid && pool.generation != seen; });
        seen = pool.generation;
        Grid &grid = *pool.grid;
        pool.active++;
        lock.unlock();
        work(grid);
        lock.lock();
        if (--pool.active == 0) pool.done.notify_one();
    }
    return nullptr;
}

static void open_grid(Grid &grid)
{
    std::lock_guard<std::mutex> lock(pool.mutex);
    while (pool.threads < settings().threads - 1) {
        pthread_t thread;
        pool.threads++;
        if (pthread_create(&thread, nullptr, pool_main, (void *)(intptr_t)pool.threads) == 0)
            pthread_detach(thread);
    }
    pool.grid = &grid;
    pool.generation++;
    pool.wake.notify_all();
}

static void close_grid()
{
    std::unique_lock<std::mutex> lock(pool.mutex);
    pool.grid = nullptr;
    pool.done.wait(lock, [] { return pool.active == 0; });
}

cudaError_t run_grid(const Launch &l)
{
    make_worker(0);
    Grid grid{&l, (uint64_t)l.grid.x * l.grid.y * l.grid.z, 1, 0};
    if (settings().schedule == Settings::REVERSE) {
        grid.step = grid.blocks - 1;
        grid.offset = grid.blocks - 1;
    } else if (settings().schedule == Settings::RANDOM) {
        std::minstd_rand random(settings().seed + 17);
        grid.offset = random() % grid.blocks;
        do grid.step = random() % grid.blocks + 1;
        while (std::gcd(grid.step, grid.blocks) != 1);
    }
    current_launch = &l;
    bool share = settings().threads > 1 && grid.blocks > 1;
    if (share) open_grid(grid);
    work(grid);
    if (share) close_grid();
    current_launch = nullptr;
    return (cudaError_t)grid.fault.load();
}

uint64_t special_register(const char *name)
{
    if (!strcmp(name, "smid")) return (uint64_t)worker->number;
    if (!strcmp(name, "nsmid")) return (uint64_t)settings().threads;
    if (!strcmp(name, "laneid")) return linear_index() % 32;
    if (!strcmp(name, "warpid")) return linear_index() / 32;
    if (!strcmp(name, "globaltimer")) {
        timespec t;
        clock_gettime(CLOCK_REALTIME, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
    }
    return (uint64_t)clock64(); // clock, clock64
}
} // namespace cuda_cpu

// Lets another thread of the block run: one that waits in a loop may wait for it.
void __nanosleep(unsigned ns)
{
    using namespace cuda_cpu;
    if (!in_kernel()) return;
    timespec t = {0, (long)ns};
    nanosleep(&t, nullptr);
    park(NOT, "", 0);
    make_ready(linear_index());
    if (block.next < block.count)
        switch_to(new_fiber());
    else
        dispatch();
}
