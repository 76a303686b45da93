// Grids: blocks are spread over OS threads, each of which runs one block after another.
#include "scheduler.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <numeric>
#include <random>

namespace cuda_cpu
{

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
    uint64_t portion = 1;          // that an OS thread takes at a time: a few, when there are many
    alignas(64) std::atomic<uint64_t> next{0};
    alignas(64) std::atomic<int> fault{0};
};

struct WorkerOwner {
    Worker *w = nullptr;
    ~WorkerOwner()
    {
        if (!w) return;
        delete_fibers();
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
    for (uint64_t first; (first = grid.next.fetch_add(grid.portion)) < grid.blocks;) {
        uint64_t end = min(first + grid.portion, grid.blocks);
        for (uint64_t i = first; i < end; i++) {
            uint64_t number = i;
            if (grid.step != 1)
                number = (uint64_t)(((unsigned __int128)i * grid.step + grid.offset) % grid.blocks);
            if (grid.fault) return;
            if (cudaError_t fault = run_block(l, number)) grid.fault = fault;
        }
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
    grid.portion =
        max((uint64_t)1, min((uint64_t)16, grid.blocks / (64 * (uint64_t)settings().threads)));
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
    yield();
}
