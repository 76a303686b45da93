// What threads do together: barriers, votes and shuffles within a warp, fences, atomics. A barrier's file and
// line arrive as default arguments, so that the runtime can say where each thread waits.
#pragma once
#pragma GCC system_header
#include <string.h>
#include <time.h>

#include "thread.h"

#define CUDA_CPU_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace cuda_cpu
{
int block_barrier(bool vote, const char *file, int line); // returns how many threads voted true
enum WarpOp { warp_sync, warp_shuffle, warp_ballot, warp_active };
uint64_t warp_operation(WarpOp op, unsigned mask, uint64_t value, int source, const char *file,
                        int line);
inline void in_step(CUDA_CPU_HERE) { warp_operation(warp_active, 0, 1, 0, file, line); }
inline int lane() { return linear_index() % 32; }
[[noreturn]] void trap();
uint64_t special_register(const char *name); // of PTX: smid, laneid ...
} // namespace cuda_cpu

// ---- Barriers and votes ----

inline void __syncthreads(CUDA_CPU_HERE) { cuda_cpu::block_barrier(false, file, line); }
#define CUDA_CPU_VOTE(name, result)                                                                \
    inline int name(int predicate, CUDA_CPU_HERE)                                                  \
    {                                                                                              \
        int votes = cuda_cpu::block_barrier(predicate, file, line);                                \
        return result;                                                                             \
    }
CUDA_CPU_VOTE(__syncthreads_count, votes)
CUDA_CPU_VOTE(__syncthreads_or, votes != 0)
CUDA_CPU_VOTE(__syncthreads_and, votes == (int)cuda_cpu::block.count)

inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_CPU_HERE)
{
    cuda_cpu::warp_operation(cuda_cpu::warp_sync, mask, 0, 0, file, line);
}
inline unsigned __activemask(CUDA_CPU_HERE)
{
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::warp_active, 0, 1, 0, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int p, CUDA_CPU_HERE)
{
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::warp_ballot, mask, p != 0, 0, file, line);
}
inline int __any_sync(unsigned mask, int p, CUDA_CPU_HERE)
{
    return __ballot_sync(mask, p, file, line) != 0;
}
inline int __all_sync(unsigned mask, int p, CUDA_CPU_HERE)
{
    return __ballot_sync(mask, !p, file, line) == 0;
}

// ---- Shuffles ----

namespace cuda_cpu
{
template <class T> T shuffle(unsigned mask, T value, int source, const char *file, int line)
{
    static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8,
                  "a shuffle moves a number of at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = warp_operation(warp_shuffle, mask, bits, source, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}
} // namespace cuda_cpu

// From which lane the value comes, or else from the lane itself. The warp is cut into parts of `width` lanes.
#define CUDA_CPU_SHUFFLE(name, N, source, exists)                                                  \
    template <class T> T name(unsigned mask, T value, N n, int width = 32, CUDA_CPU_HERE)          \
    {                                                                                              \
        int lane = cuda_cpu::lane(), first = lane & ~(width - 1), from = source;                   \
        return cuda_cpu::shuffle(mask, value, exists ? from : lane, file, line);                   \
    }
CUDA_CPU_SHUFFLE(__shfl_sync, int, first + (n & (width - 1)), true)
CUDA_CPU_SHUFFLE(__shfl_up_sync, unsigned, lane - (int)n, from >= first)
CUDA_CPU_SHUFFLE(__shfl_down_sync, unsigned, lane + (int)n, from < first + width)
CUDA_CPU_SHUFFLE(__shfl_xor_sync, int, lane ^ n, from < first + width)

// ---- Memory ----

// Loads and stores with a cache hint are plain ones here.
#define CUDA_CPU_LOAD(name)                                                                        \
    template <class T> T name(const T *p) { return *p; }
#define CUDA_CPU_STORE(name)                                                                       \
    template <class T> void name(T *p, T value) { *p = value; }
// clang-format off
CUDA_CPU_LOAD(__ldg) CUDA_CPU_LOAD(__ldca) CUDA_CPU_LOAD(__ldcg) CUDA_CPU_LOAD(__ldcs)
CUDA_CPU_STORE(__stwb) CUDA_CPU_STORE(__stcg) CUDA_CPU_STORE(__stcs) CUDA_CPU_STORE(__stwt)
void __threadfence_block();
void __threadfence();
void __threadfence_system();
void __nanosleep(unsigned ns);
inline void __trap() { cuda_cpu::trap(); }
// clang-format on

inline long long clock64() // in nanoseconds: clockRate says 1 GHz
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

// ---- Atomics ----
// Blocks run on several OS threads, so these are real. They return the old value.

namespace cuda_cpu
{
template <class T, class... These> // T, if it is one of these types
using OneOf = std::enable_if_t<(std::is_same_v<T, These> || ...), T>;

template <class T, class Update> T atomic_update(T *p, Update update)
{
    T old, value;
    __atomic_load(p, &old, __ATOMIC_RELAXED);
    do value = update(old); // until nobody has come between
    while (!__atomic_compare_exchange(p, &old, &value, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}
} // namespace cuda_cpu

// How each is done, by an instruction or by atomic_update, and for which types.
#define CUDA_CPU_FETCH(operation) __atomic_##operation(p, v, __ATOMIC_SEQ_CST)
#define CUDA_CPU_UPDATE(value) cuda_cpu::atomic_update(p, [=](T old) -> T { return value; })
#define CUDA_CPU_ATOMIC(name, result, ...)                                                         \
    template <class T> T name(T *p, cuda_cpu::OneOf<T, __VA_ARGS__> v) { return result; }
CUDA_CPU_ATOMIC(atomicAdd, CUDA_CPU_FETCH(fetch_add), int, unsigned, unsigned long long)
CUDA_CPU_ATOMIC(atomicAdd, CUDA_CPU_UPDATE(old + v), float, double)
CUDA_CPU_ATOMIC(atomicSub, CUDA_CPU_FETCH(fetch_sub), int, unsigned)
CUDA_CPU_ATOMIC(atomicExch, CUDA_CPU_FETCH(exchange_n), int, unsigned, unsigned long long)
CUDA_CPU_ATOMIC(atomicExch, CUDA_CPU_UPDATE(v), float)
CUDA_CPU_ATOMIC(atomicAnd, CUDA_CPU_FETCH(fetch_and), int, unsigned, unsigned long long)
CUDA_CPU_ATOMIC(atomicOr, CUDA_CPU_FETCH(fetch_or), int, unsigned, unsigned long long)
CUDA_CPU_ATOMIC(atomicXor, CUDA_CPU_FETCH(fetch_xor), int, unsigned, unsigned long long)
CUDA_CPU_ATOMIC(atomicMin, CUDA_CPU_UPDATE(v < old ? v : old), int, unsigned, long long,
                unsigned long long)
CUDA_CPU_ATOMIC(atomicMax, CUDA_CPU_UPDATE(v > old ? v : old), int, unsigned, long long,
                unsigned long long)
CUDA_CPU_ATOMIC(atomicInc, CUDA_CPU_UPDATE(old >= v ? 0 : old + 1), unsigned)
CUDA_CPU_ATOMIC(atomicDec, CUDA_CPU_UPDATE(old == 0 || old > v ? v : old - 1), unsigned)
template <class T,
          class Only = cuda_cpu::OneOf<T, unsigned short, int, unsigned, unsigned long long>>
T atomicCAS(T *p, std::common_type_t<Only> compare, std::common_type_t<Only> v)
{
    __atomic_compare_exchange_n(p, &compare, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return compare;
}

// Atomic only among the threads of a block, or with the host too: all of the above are both.
#define CUDA_CPU_SCOPED(name)                                                                      \
    template <class T, class... V> T name##_block(T *p, V... v) { return name(p, v...); }          \
    template <class T, class... V> T name##_system(T *p, V... v) { return name(p, v...); }
// clang-format off
CUDA_CPU_SCOPED(atomicAdd) CUDA_CPU_SCOPED(atomicSub) CUDA_CPU_SCOPED(atomicExch)
CUDA_CPU_SCOPED(atomicMin) CUDA_CPU_SCOPED(atomicMax) CUDA_CPU_SCOPED(atomicInc)
CUDA_CPU_SCOPED(atomicAnd) CUDA_CPU_SCOPED(atomicOr)  CUDA_CPU_SCOPED(atomicXor)
CUDA_CPU_SCOPED(atomicDec) CUDA_CPU_SCOPED(atomicCAS)
    // clang-format on
