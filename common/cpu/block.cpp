// Within a block: in which order its threads run, who waits for whom, and the block's shared memory.
#include "scheduler.h"

#include <stdlib.h>

#include <algorithm>

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace cuda_cpu
{
__thread Block block;

// ---- Who runs next ----

// Threads as CUDA_CPU_SCHEDULE wants them. They come in forward order, the next one last.
static void arrange(size_t from)
{
    auto first = worker->ready.begin() + (ptrdiff_t)from, last = worker->ready.end();
    if (settings().schedule == Settings::REVERSE) std::reverse(first, last);
    if (settings().schedule == Settings::RANDOM) std::shuffle(first, last, worker->random);
}

static unsigned lowest_bits(unsigned n) { return n < 32 ? (1u << n) - 1 : ~0u; }

// From now on each thread counts: the first `ended` of them have returned, and those from `next` on are to start.
static void line_up(unsigned ended, unsigned next)
{
    Worker &w = *worker;
    block.in_turn = false;
    for (unsigned first = 0; first < block.count; first += 32) {
        Warp &warp = w.warps[first / 32];
        warp = {lowest_bits(block.count - first), {}, warp.epoch};
        warp.stopped[ENDED] = lowest_bits(ended - min(first, ended));
    }
    std::fill_n(w.stopped, STOPS, 0);
    w.stopped[ENDED] = ended;
    w.votes = 0;
    w.ready.clear();
    for (unsigned t = block.count; t-- > next;) {
        w.threads[t].fiber = nullptr;
        w.ready.push_back((unsigned short)t);
    }
    arrange(0);
}

bool start_thread()
{
    if (block.in_turn) {
        threadIdx = {0, 0, 0};
        return true;
    }
    Worker &w = *worker;
    if (w.ready.empty() || w.threads[w.ready.back()].fiber) return false;
    unsigned t = w.ready.back();
    w.ready.pop_back();
    threadIdx = {t % blockDim.x, t / blockDim.x % blockDim.y, t / (blockDim.x * blockDim.y)};
    return true;
}

void dispatch()
{
    Worker &w = *worker;
    if (w.ready.empty()) return switch_to(&w.main); // the block is done, or it hangs
    Thread &next = w.threads[w.ready.back()];
    if (!next.fiber) return switch_to(new_fiber()); // which asks start_thread()
    w.ready.pop_back();
    threadIdx = next.index;
    switch_to(next.fiber);
}

// ---- Who waits ----

// The running thread stays where it is: as after this, dispatch() runs another one.
static Thread &stand(unsigned me, const char *file, int line)
{
    if (block.in_turn) line_up(me, me + 1);
    Thread &t = worker->threads[me];
    t.fiber = worker->running;
    t.index = threadIdx;
    t.file = file;
    t.line = line;
    return t;
}

static void stop(unsigned me, Stop reason)
{
    worker->warps[me / 32].stopped[reason] |= 1u << me % 32;
    worker->stopped[reason]++;
}

// Of some warps, those of `lanes` that stopped for this reason run next: nobody else need be as far.
static void release(Stop reason, unsigned first_warp, unsigned warps, unsigned lanes)
{
    Worker &w = *worker;
    size_t before = w.ready.size();
    for (unsigned n = first_warp + warps; n-- > first_warp;) {
        unsigned go = w.warps[n].stopped[reason] & lanes;
        w.warps[n].stopped[reason] &= ~lanes;
        for (unsigned l = 32; l-- > 0;)
            if (go >> l & 1) w.ready.push_back((unsigned short)(32 * n + l));
    }
    w.stopped[reason] -= (unsigned)(w.ready.size() - before);
    arrange(before);
}

// The block's barrier opens when all of its threads are there.
static void try_barrier()
{
    Worker &w = *worker;
    unsigned there = w.stopped[AT_BARRIER];
    bool or_ended = there + w.stopped[ENDED] == block.count && settings().early_exit;
    if (there < block.count && !or_ended) return;
    w.vote_result = w.votes;
    w.votes = 0;
    w.epoch++;
    release(AT_BARRIER, 0, (block.count + 31) / 32, ~0u);
}

// Of a warp's lanes that wait for each other, these have all come: each gets its result, and they go on.
static void complete(unsigned n, Stop reason, unsigned lanes)
{
    Thread *lane = worker->threads + 32 * n, *last = nullptr;
    unsigned votes = 0;
    for (unsigned l = 0; l < 32; l++)
        if (lanes >> l & 1 && lane[l].value) votes |= 1u << l;
    for (unsigned l = 0; l < 32; l++) {
        if (!(lanes >> l & 1)) continue;
        last = &lane[l];
        last->result = votes;
        if (last->op != warp_shuffle) continue;
        bool there = last->source >= 0 && last->source < 32 && lanes >> last->source & 1;
        last->result = there ? lane[last->source].value : 0xfffafffafffafffaull; // else nonsense
    }
    if (last->op == warp_sync) worker->warps[n].epoch++;
    release(reason, n, 1, lanes);
}

static void try_warp(unsigned n)
{
    const Warp &warp = worker->warps[n];
    const Thread *lane = worker->threads + 32 * n;
    const unsigned *stopped = warp.stopped;

    // An operation is done when all lanes of its mask have come with this mask, but for those that have ended.
    for (unsigned l = 0; l < 32 && stopped[AT_OPERATION]; l++) {
        unsigned came = 0, mask = lane[l].mask, wanted = mask & warp.lanes & ~stopped[ENDED];
        if (!(stopped[AT_OPERATION] >> l & 1) || wanted & ~stopped[AT_OPERATION]) continue;
        for (unsigned k = 0; k < 32; k++)
            if (stopped[AT_OPERATION] >> k & 1 && lane[k].mask == mask) came |= 1u << k;
        if (!(wanted & ~came)) complete(n, AT_OPERATION, came);
    }

    // The lanes that stand at one __activemask() are the active ones, once no lane of their warp can run.
    unsigned can_run = warp.lanes;
    for (unsigned lanes : warp.stopped) can_run &= ~lanes;
    for (unsigned l = 0; l < 32 && stopped[AT_ACTIVEMASK] && !can_run; l++) {
        unsigned came = 0;
        for (unsigned k = l; k < 32; k++)
            if (stopped[AT_ACTIVEMASK] >> k & 1 && lane[k].line == lane[l].line) came |= 1u << k;
        if (stopped[AT_ACTIVEMASK] >> l & 1) complete(n, AT_ACTIVEMASK, came);
    }
}

// The running thread has stopped, to wait or for good: was it the one that others waited for?
static void let_others_go_on(unsigned me)
{
    unsigned n = me / 32;
    Warp &warp = worker->warps[n];
    if (worker->stopped[AT_BARRIER]) try_barrier();
    if (warp.stopped[AT_OPERATION] | warp.stopped[AT_ACTIVEMASK]) try_warp(n);
}

void thread_ended()
{
    unsigned me = linear_index();
    stop(me, ENDED);
    let_others_go_on(me);
}

int block_barrier(bool vote, const char *file, int line)
{
    if (!in_kernel()) return 0;
    Worker &w = *worker;
    unsigned me = linear_index();
    stand(me, file, line);
    stop(me, AT_BARRIER);
    if (w.stopped[AT_BARRIER] == 1) w.barrier_line = line;
    if (line != w.barrier_line && !settings().early_exit) {
        report_waiting("threads of one block wait at different barriers");
        kernel_fault(cudaErrorLaunchFailure, nullptr);
    }
    w.votes += vote;
    let_others_go_on(me);
    dispatch();
    return w.vote_result;
}

uint64_t warp_operation(WarpOp op, unsigned mask, uint64_t value, int source, const char *file,
                        int line)
{
    if (!in_kernel()) return op == warp_shuffle ? value : 1;
    unsigned me = linear_index(), lane = me % 32;
    if (op != warp_active && !(mask >> lane & 1))
        kernel_fault(cudaErrorLaunchFailure,
                     "%s:%d: lane %u calls with mask 0x%x, in which it is missing", file, line,
                     lane, mask);
    Thread &t = stand(me, file, line);
    t.op = op;
    t.mask = mask;
    t.value = value;
    t.source = source;
    stop(me, op == warp_active ? AT_ACTIVEMASK : AT_OPERATION);
    let_others_go_on(me);
    dispatch();
    return t.result;
}

// ---- A block from beginning to end ----

cudaError_t run_block(const Launch &l, uint64_t number)
{
    Worker &w = *worker;
    uint64_t row = number / l.grid.x;
    blockIdx = {(unsigned)(number % l.grid.x), (unsigned)(row % l.grid.y),
                (unsigned)(row / l.grid.y)};
    block.serial = ++w.serial;
    block.in_turn = settings().schedule == Settings::FORWARD; // until one of them has to wait
    if (!block.in_turn) {
        w.random.seed(settings().seed * 7919u + (unsigned)number + 1);
        line_up(0, 0);
    }
    w.epoch++;
    w.arena_used = 0;
    block.dynamic_shared = w.arena;
    if (l.shared || with_asan())
        block.dynamic_shared = (char *)shared_allocate("extern", l.shared, 1024);
    switch_to(new_fiber()); // comes back when no thread can run
    if (w.fault) {
        report_signal();
    } else if (!block.in_turn && w.stopped[ENDED] < block.count) {
        report_waiting("not all threads of the block reach the barrier");
        w.fault = cudaErrorLaunchFailure;
    }
    cudaError_t fault = w.fault;
    w.fault = cudaSuccess;
    if (fault) reset_fibers();
    if (with_asan())
        for (const SharedVariable &v : w.shared) free(v.start);
    w.shared.clear();
    block.serial = 0;
    return fault;
}

// ---- Shared memory ----

void *shared_allocate(const char *name, size_t size, size_t align)
{
    Worker &w = *worker;
    align = max(align, (size_t)16);
    size_t start = (w.arena_used + align - 1) / align * align;
    w.arena_used = start + size;
    if (w.arena_used > ARENA)
        kernel_fault(cudaErrorLaunchFailure, "the block uses more than %zu KiB of shared memory",
                     ARENA >> 10);
    void *p = w.arena + start;
    if (with_asan() && posix_memalign(&p, align, size) != 0) abort(); // so that ASan sees its end
    w.shared.push_back({name, (char *)p, size});
    poison(p, size);
    return p;
}
} // namespace cuda_cpu

// Lets other threads of the block run first: one that waits in a loop may wait for them.
void __nanosleep(unsigned ns)
{
    using namespace cuda_cpu;
    if (!in_kernel()) return;
    timespec t = {0, (long)ns};
    nanosleep(&t, nullptr);
    unsigned me = linear_index();
    stand(me, "", 0);
    worker->ready.insert(worker->ready.begin(), (unsigned short)me);
    dispatch();
}

void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
