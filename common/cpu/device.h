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

// Reductions over the lanes of mask, for int and unsigned.
#define CUDA_CPU_REDUCE(name, T, expression)                                                       \
    inline T name(unsigned mask, T value, CUDA_CPU_HERE)                                           \
    {                                                                                              \
        T a = cuda_cpu::shuffle(mask, value, __builtin_ctz(mask), file, line);                     \
        for (unsigned rest = mask & (mask - 1); rest; rest &= rest - 1) {                          \
            T b = cuda_cpu::shuffle(mask, value, __builtin_ctz(rest), file, line);                 \
            a = expression;                                                                        \
        }                                                                                          \
        return a;                                                                                  \
    }
CUDA_CPU_REDUCE(__reduce_add_sync, int, a + b)
CUDA_CPU_REDUCE(__reduce_add_sync, unsigned, a + b)
CUDA_CPU_REDUCE(__reduce_min_sync, int, b < a ? b : a)
CUDA_CPU_REDUCE(__reduce_min_sync, unsigned, b < a ? b : a)
CUDA_CPU_REDUCE(__reduce_max_sync, int, b > a ? b : a)
CUDA_CPU_REDUCE(__reduce_max_sync, unsigned, b > a ? b : a)

// ---- Memory ----

void __threadfence_block();
void __threadfence();
void __threadfence_system();
inline void __trap() { cuda_cpu::trap(); }
void __nanosleep(unsigned ns);

inline long long clock64()
{
#if defined(__x86_64__)
    return (long long)__builtin_ia32_rdtsc();
#else
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
#endif
}

// Loads and stores with a cache hint are plain ones here.
#define CUDA_CPU_LOAD(name)                                                                        \
    template <class T> T name(const T *p) { return *p; }
#define CUDA_CPU_STORE(name)                                                                       \
    template <class T> void name(T *p, T value) { *p = value; }
// clang-format off
CUDA_CPU_LOAD(__ldg) CUDA_CPU_LOAD(__ldca) CUDA_CPU_LOAD(__ldcg) CUDA_CPU_LOAD(__ldcs)
CUDA_CPU_LOAD(__ldcv) CUDA_CPU_LOAD(__ldlu)
CUDA_CPU_STORE(__stwb) CUDA_CPU_STORE(__stcg) CUDA_CPU_STORE(__stcs) CUDA_CPU_STORE(__stwt)
    // clang-format on

    // ---- Atomics ----
    // Blocks run on several OS threads, so these are real. They return the old value.

    namespace cuda_cpu
{
    template <class T, class Update> T atomic_update(T * address, Update update)
    {
        typedef std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t> Bits;
        Bits *p = (Bits *)address, seen = __atomic_load_n(p, __ATOMIC_RELAXED), wanted;
        T old, value;
        do {
            memcpy(&old, &seen, sizeof old);
            value = update(old);
            memcpy(&wanted, &value, sizeof wanted);
        } while (!__atomic_compare_exchange_n(p, &seen, wanted, true, __ATOMIC_SEQ_CST,
                                              __ATOMIC_RELAXED));
        return old;
    }

    template <class T> T atomic_cas(T * p, T compare, T value)
    {
        __atomic_compare_exchange_n(p, &compare, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
        return compare;
    }
} // namespace cuda_cpu

// Each name comes also with _block and _system.
#define CUDA_CPU_SCOPES(name, T, parameters, ...)                                                  \
    inline T name parameters { return __VA_ARGS__; }                                               \
    inline T name##_block parameters { return __VA_ARGS__; }                                       \
    inline T name##_system parameters { return __VA_ARGS__; }
// By an instruction, or by a loop that tries until nobody came between.
#define CUDA_CPU_FETCH(name, T, operation)                                                         \
    CUDA_CPU_SCOPES(name, T, (T * p, T v), __atomic_##operation(p, v, __ATOMIC_SEQ_CST))
#define CUDA_CPU_UPDATE(name, T, result)                                                           \
    CUDA_CPU_SCOPES(name, T, (T * p, T v),                                                         \
                    cuda_cpu::atomic_update(p, [=](T old) -> T { return result; }))
#define CUDA_CPU_CAS(name, T, ...)                                                                 \
    CUDA_CPU_SCOPES(name, T, (T * p, T compare, T v), cuda_cpu::atomic_cas(p, compare, v))
#define CUDA_CPU_INTEGERS(WAY, name, ...)                                                          \
    WAY(name, int, __VA_ARGS__)                                                                    \
    WAY(name, unsigned, __VA_ARGS__)                                                               \
    WAY(name, unsigned long long, __VA_ARGS__)

CUDA_CPU_INTEGERS(CUDA_CPU_FETCH, atomicAdd, fetch_add)
CUDA_CPU_INTEGERS(CUDA_CPU_FETCH, atomicExch, exchange_n)
CUDA_CPU_INTEGERS(CUDA_CPU_FETCH, atomicAnd, fetch_and)
CUDA_CPU_INTEGERS(CUDA_CPU_FETCH, atomicOr, fetch_or)
CUDA_CPU_INTEGERS(CUDA_CPU_FETCH, atomicXor, fetch_xor)
CUDA_CPU_INTEGERS(CUDA_CPU_UPDATE, atomicMin, v < old ? v : old)
CUDA_CPU_INTEGERS(CUDA_CPU_UPDATE, atomicMax, v > old ? v : old)
CUDA_CPU_INTEGERS(CUDA_CPU_CAS, atomicCAS, )
CUDA_CPU_UPDATE(atomicMin, long long, v < old ? v : old)
CUDA_CPU_UPDATE(atomicMax, long long, v > old ? v : old)
CUDA_CPU_FETCH(atomicSub, int, fetch_sub)
CUDA_CPU_FETCH(atomicSub, unsigned, fetch_sub)
CUDA_CPU_UPDATE(atomicInc, unsigned, old >= v ? 0 : old + 1)
CUDA_CPU_UPDATE(atomicDec, unsigned, old == 0 || old > v ? v : old - 1)
CUDA_CPU_UPDATE(atomicAdd, float, old + v)
CUDA_CPU_UPDATE(atomicAdd, double, old + v)
CUDA_CPU_UPDATE(atomicExch, float, (old, v))
CUDA_CPU_CAS(atomicCAS, unsigned short, )
