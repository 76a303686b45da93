// Grids: blocks are spread over OS threads (workers), each of which runs one block after another.
#include "scheduler.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <condition_variable>
#include <memory>
#include <numeric>

namespace cuda_cpu
{
__thread Worker *worker;
const Launch *current_launch;

Worker::Worker(int n) : number(n)
{
    main.started = true;
    arena = (char *)mmap(nullptr, ARENA_RESERVED, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    mprotect(arena, ARENA, PROT_READ | PROT_WRITE); // an index far outside faults
    stack_t alternate = {};
    alternate.ss_size = sizeof signal_stack;
    alternate.ss_sp = signal_stack;
    if (!with_asan()) sigaltstack(&alternate, nullptr);
}

Worker::~Worker()
{
    delete_fibers();
    munmap(arena, ARENA_RESERVED);
    stack_t none = {};
    none.ss_flags = SS_DISABLE;
    if (!with_asan()) sigaltstack(&none, nullptr);
    worker = nullptr;
}

static void make_worker(int number)
{
    static thread_local std::unique_ptr<Worker> owner;
    if (!worker) owner.reset(worker = new Worker(number));
}

struct Grid {
    const Launch *launch;
    uint64_t blocks, portion;      // so many blocks an OS thread takes at a time
    uint64_t step = 1, offset = 0; // block i runs as number (i * step + offset) % blocks
    alignas(64) std::atomic<uint64_t> next{
        0}; // each in a cache line of its own: all workers write it
    alignas(64) std::atomic<int> fault{cudaSuccess};

    uint64_t number(uint64_t i) const
    {
        if (step == 1 && offset == 0) return i;
        return (uint64_t)(((unsigned __int128)i * step + offset) % blocks);
    }
};

static void work(Grid &grid)
{
    const Launch &l = *grid.launch;
    worker->main.size = 0; // unknown
    blockDim = l.block;
    gridDim = l.grid;
    block.count = l.block.x * l.block.y * l.block.z;
    uint64_t i;
    while (!grid.fault && (i = grid.next.fetch_add(grid.portion)) < grid.blocks)
        for (uint64_t end = min(i + grid.portion, grid.blocks); i < end && !grid.fault; i++)
            if (cudaError_t fault = run_block(l, grid.number(i))) grid.fault = fault;
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

static void work_together(Grid &grid)
{
    std::unique_lock<std::mutex> lock(pool.mutex);
    while (pool.threads < settings().threads - 1) {
        pthread_t thread;
        pool.threads++;
        if (pthread_create(&thread, nullptr, pool_main, (void *)(intptr_t)pool.threads) == 0)
            pthread_detach(thread);
    }
    pool.grid = &grid;
    pool.generation++;
    pool.wake.notify_all();
    lock.unlock();
    work(grid);
    lock.lock();
    pool.grid = nullptr;
    pool.done.wait(lock, [] { return pool.active == 0; });
}

cudaError_t run_grid(const Launch &l)
{
    make_worker(0);
    uint64_t blocks = (uint64_t)l.grid.x * l.grid.y * l.grid.z;
    uint64_t portion = min((uint64_t)16, blocks / (64 * (uint64_t)settings().threads));
    Grid grid{&l, blocks, max((uint64_t)1, portion)};
    if (settings().schedule == Settings::REVERSE) {
        grid.step = grid.offset = blocks - 1;
    } else if (settings().schedule == Settings::RANDOM) {
        std::minstd_rand random(settings().seed + 17);
        grid.offset = random() % blocks;
        do grid.step = random() % blocks + 1;
        while (std::gcd(grid.step, blocks) != 1);
    }
    current_launch = &l;
    if (settings().threads > 1 && blocks > 1)
        work_together(grid);
    else
        work(grid);
    current_launch = nullptr;
    return (cudaError_t)grid.fault.load();
}

uint64_t special_register(const char *name)
{
    if (!strcmp(name, "smid")) return (uint64_t)worker->number;
    if (!strcmp(name, "nsmid")) return (uint64_t)settings().threads;
    if (!strcmp(name, "laneid")) return linear_index() % 32;
    if (!strcmp(name, "warpid")) return linear_index() / 32;
    if (strcmp(name, "globaltimer")) return (uint64_t)clock64(); // clock, clock64
    timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}
} // namespace cuda_cpu
