// nvcc-cpu --racecheck: finds two threads of a block that touch the same __shared__ byte, at least one of them
// writing, with no barrier between. g++ -fsanitize=thread calls a __tsan_ function at every access; they end here
// instead of in libtsan. A shadow of shared memory remembers, for each byte, the last write and two last readers.
// Because threads run one after another, what is found does not depend on luck.
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <set>
#include <vector>

#include "runtime.h"

namespace cuda_cpu
{
struct Access {
    const void *pc; // null: none yet
    unsigned epoch, warp_epoch;
    unsigned short thread;
    bool atomic, write;
};
struct Cell {
    Access write, readers[2];
};

static __thread Cell *shadow;
static std::mutex &race_mutex = *new std::mutex();
static auto &reported_pcs = *new std::set<std::pair<const void *, const void *>>();
static auto &reported_lines = *new std::set<std::pair<std::string, std::string>>();

// "file:line" of the source behind a return address, from addr2line; the innermost one that is not the backend's.
static std::string source_of(const void *pc)
{
    char program[4096] = "", command[4600], line[4096];
    Dl_info info = {};
    struct link_map *map = nullptr;
    if (readlink("/proc/self/exe", program, sizeof program - 1) < 0 ||
        !dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP))
        return "?";
    snprintf(command, sizeof command, "addr2line -i -e '%s' %#zx 2>/dev/null", program,
             (size_t)pc - 1 - (map ? map->l_addr : 0));
    std::string found;
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof line, pipe)) {
        line[strcspn(line, " \n")] = 0;
        if (found.empty() && !strstr(line, "/common/cpu/") && line[0] != '?') found = line;
    }
    if (pipe) pclose(pipe);
    char here[4096] = "";
    if (getcwd(here, sizeof here - 1) && found.compare(0, strlen(here), here) == 0)
        found.erase(0, strlen(here) + 1);
    if (!found.empty()) return found;
    snprintf(line, sizeof line, "address %p (addr2line is needed for the line)", pc);
    return line;
}

static const char *verb(const Access &a, bool now)
{
    if (a.atomic) return now ? "updates it atomically" : "updated it atomically";
    return a.write ? (now ? "writes it" : "wrote it") : (now ? "reads it" : "read it");
}

// Once for each pair of instructions, and of source lines.
static void report(const Access &before, const Access &now, const void *p)
{
    std::lock_guard<std::mutex> lock(race_mutex);
    if (!reported_pcs.insert({before.pc, now.pc}).second) return;
    std::string first = source_of(before.pc) + ": ", second = source_of(now.pc) + ": ";
    if (!reported_lines.insert({first + verb(before, false), second + verb(now, false)}).second)
        return;
    message("race on __shared__ memory (%s), %s", shared_name(p).c_str(), where().c_str());
    message("  %sthread %u %s", first.c_str(), before.thread, verb(before, false));
    message("  %sthread %u %s, with no barrier between", second.c_str(), now.thread,
            verb(now, true));
}

static bool conflict(const Access &before, const Access &now)
{
    if (!before.pc || before.thread == now.thread || before.epoch != now.epoch) return false;
    if (before.atomic && now.atomic) return false;
    bool same_warp = before.thread / 32 == now.thread / 32;
    return !same_warp || before.warp_epoch == now.warp_epoch;
}

static void access(const void *p, size_t size, bool write, bool atomic, const void *pc)
{
    if (!in_kernel()) return;
    size_t arena_size, offset = (size_t)((const char *)p - (const char *)shared_arena(&arena_size));
    if (offset >= arena_size) return;
    if (!shadow) {
        void *memory = mmap(nullptr, arena_size * sizeof(Cell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) abort();
        shadow = (Cell *)memory;
    }
    Access now = {pc, 0, 0, (unsigned short)linear_index(), atomic, write};
    barrier_epochs(&now.epoch, &now.warp_epoch);
    for (size_t i = offset; i < offset + size && i < arena_size; i++) {
        Cell &c = shadow[i];
        if (conflict(c.write, now)) report(c.write, now, p);
        if (write) {
            for (const Access &reader : c.readers)
                if (conflict(reader, now)) report(reader, now, p);
            c.write = now;
        } else if (c.readers[0].thread != now.thread || c.readers[0].epoch != now.epoch) {
            c.readers[1] =
                c.readers[0]; // two readers are enough: one of them is not the next writer
            c.readers[0] = now;
        } else {
            c.readers[0] = now;
        }
    }
}

__attribute__((destructor)) static void at_exit()
{
    if (reported_lines.empty()) return;
    fflush(nullptr);
    _exit(66);
}
} // namespace cuda_cpu

using cuda_cpu::access;
#define PC __builtin_return_address(0)

extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_read_range(void *p, size_t n) { access(p, n, false, false, PC); }
void __tsan_write_range(void *p, size_t n) { access(p, n, true, false, PC); }
#define PLAIN(bytes)                                                                               \
    void __tsan_read##bytes(void *p) { access(p, bytes, false, false, PC); }                       \
    void __tsan_write##bytes(void *p) { access(p, bytes, true, false, PC); }                       \
    void __tsan_unaligned_read##bytes(void *p) { access(p, bytes, false, false, PC); }             \
    void __tsan_unaligned_write##bytes(void *p) { access(p, bytes, true, false, PC); }
// clang-format off
PLAIN(1) PLAIN(2) PLAIN(4) PLAIN(8) PLAIN(16)
// clang-format on

// The atomics themselves: done, and remembered as atomic.
#define FETCH(bits, T, name, builtin)                                                              \
    T __tsan_atomic##bits##_##name(volatile T *p, T v, int)                                        \
    {                                                                                              \
        access((void *)p, sizeof(T), true, true, PC);                                              \
        return builtin(p, v, __ATOMIC_SEQ_CST);                                                    \
    }
#define EXCHANGE(bits, T, name)                                                                    \
    int __tsan_atomic##bits##_compare_exchange_##name(volatile T *p, T *c, T v, int, int)          \
    {                                                                                              \
        access((void *)p, sizeof(T), true, true, PC);                                              \
        return __atomic_compare_exchange_n(p, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
    }
#define ATOMIC(bits, T)                                                                            \
    T __tsan_atomic##bits##_load(const volatile T *p, int)                                         \
    {                                                                                              \
        access((void *)p, sizeof(T), false, true, PC);                                             \
        return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                               \
    }                                                                                              \
    void __tsan_atomic##bits##_store(volatile T *p, T v, int)                                      \
    {                                                                                              \
        access((void *)p, sizeof(T), true, true, PC);                                              \
        __atomic_store_n(p, v, __ATOMIC_SEQ_CST);                                                  \
    }                                                                                              \
    FETCH(bits, T, exchange, __atomic_exchange_n)                                                  \
    FETCH(bits, T, fetch_add, __atomic_fetch_add)                                                  \
    FETCH(bits, T, fetch_sub, __atomic_fetch_sub)                                                  \
    FETCH(bits, T, fetch_and, __atomic_fetch_and)                                                  \
    FETCH(bits, T, fetch_or, __atomic_fetch_or)                                                    \
    FETCH(bits, T, fetch_xor, __atomic_fetch_xor)                                                  \
    FETCH(bits, T, fetch_nand, __atomic_fetch_nand)                                                \
    EXCHANGE(bits, T, strong)                                                                      \
    EXCHANGE(bits, T, weak)                                                                        \
    T __tsan_atomic##bits##_compare_exchange_val(volatile T *p, T c, T v, int, int)                \
    {                                                                                              \
        access((void *)p, sizeof(T), true, true, PC);                                              \
        __atomic_compare_exchange_n(p, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);          \
        return c;                                                                                  \
    }
    // clang-format off
ATOMIC(8, unsigned char) ATOMIC(16, unsigned short) ATOMIC(32, unsigned) ATOMIC(64, unsigned long)
    // clang-format on
    void __tsan_atomic_thread_fence(int)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {}
}
