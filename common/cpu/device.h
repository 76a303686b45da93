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
[[noreturn]] void trap();
uint64_t special_register(const char *name); // of PTX: smid, laneid ...
} // namespace cuda_cpu

inline void __syncthreads(CUDA_CPU_HERE) { cuda_cpu::block_barrier(false, file, line); }
inline int __syncthreads_count(int p, CUDA_CPU_HERE)
{
    return cuda_cpu::block_barrier(p, file, line);
}
inline int __syncthreads_or(int p, CUDA_CPU_HERE)
{
    return cuda_cpu::block_barrier(p, file, line) != 0;
}
inline int __syncthreads_and(int p, CUDA_CPU_HERE)
{
    return cuda_cpu::block_barrier(p, file, line) == (int)cuda_cpu::block.count;
}

inline void __syncwarp(unsigned mask = 0xffffffff, CUDA_CPU_HERE)
{
    cuda_cpu::warp_operation(cuda_cpu::warp_sync, mask, 0, 0, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_CPU_HERE)
{
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::warp_ballot, mask, predicate != 0, 0, file,
                                              line);
}
inline int __any_sync(unsigned mask, int predicate, CUDA_CPU_HERE)
{
    return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_CPU_HERE)
{
    return __ballot_sync(mask, !predicate, file, line) == 0;
}
inline unsigned __activemask(CUDA_CPU_HERE)
{
    return (unsigned)cuda_cpu::warp_operation(cuda_cpu::warp_active, 0, 1, 0, file, line);
}

namespace cuda_cpu
{
inline void in_step(CUDA_CPU_HERE) { warp_operation(warp_active, 0, 1, 0, file, line); }
inline int lane() { return linear_index() % 32; }

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

template <class T> T __shfl_sync(unsigned mask, T value, int source, int width = 32, CUDA_CPU_HERE)
{
    int first = cuda_cpu::lane() & ~(width - 1);
    return cuda_cpu::shuffle(mask, value, first + (source & (width - 1)), file, line);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_HERE)
{
    int lane = cuda_cpu::lane(), source = lane - (int)delta;
    return cuda_cpu::shuffle(mask, value, source < (lane & ~(width - 1)) ? lane : source, file,
                             line);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, CUDA_CPU_HERE)
{
    int lane = cuda_cpu::lane(), source = lane + (int)delta;
    return cuda_cpu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file,
                             line);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32, CUDA_CPU_HERE)
{
    int lane = cuda_cpu::lane(), source = lane ^ bits;
    return cuda_cpu::shuffle(mask, value, source > (lane | (width - 1)) ? lane : source, file,
                             line);
}
template <class T> unsigned __match_any_sync(unsigned mask, T value, CUDA_CPU_HERE)
{
    unsigned equal = 0;
    for (int l = 0; l < 32; l++)
        if (mask >> l & 1 && cuda_cpu::shuffle(mask, value, l, file, line) == value)
            equal |= 1u << l;
    return equal;
}

// Reductions over the lanes of mask, for int and unsigned.
#define CUDA_CPU_REDUCE(name, T, expression)                                                       \
    inline T __reduce_##name##_sync(unsigned mask, T value, CUDA_CPU_HERE)                         \
    {                                                                                              \
        int first = __builtin_ctz(mask);                                                           \
        T a = cuda_cpu::shuffle(mask, value, first, file, line);                                   \
        for (int l = first + 1; l < 32; l++)                                                       \
            if (mask >> l & 1) {                                                                   \
                T b = cuda_cpu::shuffle(mask, value, l, file, line);                               \
                a = expression;                                                                    \
            }                                                                                      \
        return a;                                                                                  \
    }
CUDA_CPU_REDUCE(add, int, a + b)
CUDA_CPU_REDUCE(add, unsigned, a + b)
CUDA_CPU_REDUCE(min, int, b < a ? b : a)
CUDA_CPU_REDUCE(min, unsigned, b < a ? b : a)
CUDA_CPU_REDUCE(max, int, b > a ? b : a)
CUDA_CPU_REDUCE(max, unsigned, b > a ? b : a)
CUDA_CPU_REDUCE(and, unsigned, a &b)
CUDA_CPU_REDUCE(or, unsigned, a | b)
CUDA_CPU_REDUCE(xor, unsigned, a ^ b)

void __threadfence_block();
void __threadfence();
void __threadfence_system();
inline void __trap() { cuda_cpu::trap(); }
inline void __brkpt() { __builtin_trap(); }

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
void __nanosleep(unsigned ns);

// Loads and stores with a cache hint are plain ones here.
#define CUDA_CPU_LOAD(name)                                                                        \
    template <class T> T name(const T *p) { return *p; }
CUDA_CPU_LOAD(__ldg)
CUDA_CPU_LOAD(__ldca)
CUDA_CPU_LOAD(__ldcg)
CUDA_CPU_LOAD(__ldcs)
CUDA_CPU_LOAD(__ldcv)
CUDA_CPU_LOAD(__ldlu)
template <class T> void __stwb(T *p, T value) { *p = value; }
template <class T> void __stcg(T *p, T value) { *p = value; }
template <class T> void __stcs(T *p, T value) { *p = value; }
template <class T> void __stwt(T *p, T value) { *p = value; }

// Atomics: blocks run on several OS threads, so these are real. They return the old value. Each name comes
// also with _block and _system.
namespace cuda_cpu
{
template <class T> struct AtomicBits {
    typedef std::conditional_t<sizeof(T) == 8, uint64_t,
                               std::conditional_t<sizeof(T) == 4, uint32_t, uint16_t>>
        type;
};

template <class T, class Update> T atomic_update(T *address, Update update)
{
    typedef typename AtomicBits<T>::type Bits;
    Bits *p = (Bits *)address, seen = __atomic_load_n(p, __ATOMIC_RELAXED), wanted;
    T old, value;
    do {
        memcpy(&old, &seen, sizeof old);
        value = update(old);
        memcpy(&wanted, &value, sizeof wanted);
    } while (
        !__atomic_compare_exchange_n(p, &seen, wanted, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    return old;
}
} // namespace cuda_cpu

#define CUDA_CPU_ATOMIC(name, T, ...)                                                              \
    inline T name(T *p, T v) { return __VA_ARGS__; }                                               \
    inline T name##_block(T *p, T v) { return __VA_ARGS__; }                                       \
    inline T name##_system(T *p, T v) { return __VA_ARGS__; }
#define CUDA_CPU_ATOMIC_32_64(name, ...)                                                           \
    CUDA_CPU_ATOMIC(name, int, __VA_ARGS__)                                                        \
    CUDA_CPU_ATOMIC(name, unsigned, __VA_ARGS__)                                                   \
    CUDA_CPU_ATOMIC(name, unsigned long long, __VA_ARGS__)
#define CUDA_CPU_UPDATE(T, expression)                                                             \
    cuda_cpu::atomic_update(p, [=](T old) -> T { return expression; })

CUDA_CPU_ATOMIC_32_64(atomicAdd, __atomic_fetch_add(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC(atomicAdd, float, CUDA_CPU_UPDATE(float, old + v))
CUDA_CPU_ATOMIC(atomicAdd, double, CUDA_CPU_UPDATE(double, old + v))
CUDA_CPU_ATOMIC(atomicSub, int, __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC(atomicSub, unsigned, __atomic_fetch_sub(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC_32_64(atomicExch, __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC(atomicExch, float, CUDA_CPU_UPDATE(float, (old, v)))
CUDA_CPU_ATOMIC_32_64(atomicMin, CUDA_CPU_UPDATE(decltype(v), v < old ? v : old))
CUDA_CPU_ATOMIC(atomicMin, long long, CUDA_CPU_UPDATE(long long, v < old ? v : old))
CUDA_CPU_ATOMIC_32_64(atomicMax, CUDA_CPU_UPDATE(decltype(v), v > old ? v : old))
CUDA_CPU_ATOMIC(atomicMax, long long, CUDA_CPU_UPDATE(long long, v > old ? v : old))
CUDA_CPU_ATOMIC_32_64(atomicAnd, __atomic_fetch_and(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC_32_64(atomicOr, __atomic_fetch_or(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC_32_64(atomicXor, __atomic_fetch_xor(p, v, __ATOMIC_SEQ_CST))
CUDA_CPU_ATOMIC(atomicInc, unsigned, CUDA_CPU_UPDATE(unsigned, old >= v ? 0 : old + 1))
CUDA_CPU_ATOMIC(atomicDec, unsigned, CUDA_CPU_UPDATE(unsigned, old == 0 || old > v ? v : old - 1))

#define CUDA_CPU_CAS(name, T)                                                                      \
    inline T name(T *p, T compare, T value)                                                        \
    {                                                                                              \
        __atomic_compare_exchange_n(p, &compare, value, false, __ATOMIC_SEQ_CST,                   \
                                    __ATOMIC_SEQ_CST);                                             \
        return compare;                                                                            \
    }
#define CUDA_CPU_CAS_SCOPES(T)                                                                     \
    CUDA_CPU_CAS(atomicCAS, T) CUDA_CPU_CAS(atomicCAS_block, T) CUDA_CPU_CAS(atomicCAS_system, T)
CUDA_CPU_CAS_SCOPES(int)
CUDA_CPU_CAS_SCOPES(unsigned)
CUDA_CPU_CAS_SCOPES(unsigned long long)
CUDA_CPU_CAS_SCOPES(unsigned short)
