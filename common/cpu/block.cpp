// Within a block: who starts next, who waits for whom at barriers and in warps, and the block's shared memory.
#include "scheduler.h"

#include <stdlib.h>

__thread uint3 threadIdx, blockIdx;
__thread dim3 blockDim, gridDim;

namespace cuda_cpu
{
__thread Block block;

// ---- Waiting ----

uint3 index_of(unsigned t)
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

// Started, and neither parked nor running.
bool has_ended(unsigned t)
{
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

int block_barrier(bool vote, const char *file, int line)
{
    if (!in_kernel()) return 0;
    Worker &w = *worker;
    if (w.arrived == 0) {
        w.barrier_file = file;
        w.barrier_line = line;
    }
    bool elsewhere = line != w.barrier_line && !settings().early_exit;
    Thread &me = park(AT_BARRIER, file, line);
    w.arrived++;
    w.votes += vote;
    if (elsewhere) {
        report_waiting("threads of one block wait at different barriers");
        me.fiber = nullptr; // it is the running one, which kernel_fault frees
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

void yield()
{
    park(NOT, "", 0);
    make_ready(linear_index());
    if (block.next < block.count)
        switch_to(new_fiber());
    else
        dispatch();
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
} // namespace cuda_cpu

void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
