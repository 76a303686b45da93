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

#include "scheduler.h"

namespace cuda_cpu
{
struct Access {
    const void *pc; // null: none yet
    unsigned epoch, warp_epoch;
    unsigned short thread;
    bool write, atomic;
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
    Dl_info info = {};
    struct link_map *map = nullptr; // tells where the program was loaded
    char here[4096], command[100], line[4096];
    if (!getcwd(here, sizeof here) || !dladdr1(pc, &info, (void **)&map, RTLD_DL_LINKMAP))
        return "?";
    snprintf(command, sizeof command, "addr2line -i -e /proc/%d/exe %#zx 2>/dev/null", getpid(),
             (size_t)pc - 1 - (map ? map->l_addr : 0));
    std::string found;
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(line, sizeof line, pipe)) {
        line[strcspn(line, " \n")] = 0;
        if (found.empty() && !strstr(line, "/common/cpu/") && line[0] != '?') found = line;
    }
    if (pipe) pclose(pipe);
    if (found.rfind(std::string(here) + "/", 0) == 0) found.erase(0, strlen(here) + 1);
    if (!found.empty()) return found;
    snprintf(line, sizeof line, "address %p (addr2line is needed for the line)", pc);
    return line;
}

static std::string variable_of(const void *p)
{
    for (const SharedVariable &v : worker->shared)
        if (p >= v.start && p < v.start + v.size)
            return std::string(v.name) + ", byte " + std::to_string((const char *)p - v.start);
    return "past the end of an array";
}

// Once for each pair of instructions, and of source lines.
static void report(const Access &before, const Access &now, const void *p)
{
    static const char *const did[] = {"read it", "wrote it", "updated it atomically"};
    static const char *const does[] = {"reads it", "writes it", "updates it atomically"};
    std::lock_guard<std::mutex> lock(race_mutex);
    if (!reported_pcs.insert({before.pc, now.pc}).second) return;
    std::string at = source_of(before.pc), now_at = source_of(now.pc);
    const char *verb = did[before.atomic ? 2 : before.write];
    const char *now_verb = does[now.atomic ? 2 : now.write];
    if (!reported_lines.insert({at + verb, now_at + now_verb}).second) return;
    message("race on __shared__ memory (%s), %s", variable_of(p).c_str(), where().c_str());
    message("  %s: thread %u %s", at.c_str(), before.thread, verb);
    message("  %s: thread %u %s, with no barrier between", now_at.c_str(), now.thread, now_verb);
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
    size_t offset = (size_t)((const char *)p - worker->arena);
    if (offset >= ARENA) return;
    if (!shadow)
        shadow = (Cell *)mmap(nullptr, ARENA * sizeof(Cell), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shadow == MAP_FAILED) abort();
    unsigned me = linear_index();
    Access now = {pc,    worker->epoch, worker->warps[me / 32].epoch, (unsigned short)me,
                  write, atomic};
    for (size_t i = offset; i < offset + size && i < ARENA; i++) {
        Cell &c = shadow[i];
        Access &last = c.readers[0];
        if (conflict(c.write, now)) report(c.write, now, p);
        if (write) {
            for (const Access &reader : c.readers)
                if (conflict(reader, now)) report(reader, now, p);
            c.write = now;
        } else {
            // Two readers are enough: one of them is not the next writer.
            if (last.thread != now.thread || last.epoch != now.epoch) c.readers[1] = last;
            last = now;
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

// Some of these only g++ calls, and some only clang.
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_vptr_read(void **) {}
void __tsan_atomic_signal_fence(int) {}
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

// clang-format off
#define SIZE(bytes)                                                                                \
    void __tsan_read##bytes(void *p) { access(p, bytes, false, false, PC); }                       \
    void __tsan_write##bytes(void *p) { access(p, bytes, true, false, PC); }                       \
    void __tsan_unaligned_read##bytes(void *p) { access(p, bytes, false, false, PC); }             \
    void __tsan_unaligned_write##bytes(void *p) { access(p, bytes, true, false, PC); }
SIZE(1) SIZE(2) SIZE(4) SIZE(8) SIZE(16)
void __tsan_read_range(void *p, size_t n) { access(p, n, false, false, PC); }
void __tsan_write_range(void *p, size_t n) { access(p, n, true, false, PC); }
#define COPY(name)                                                                                 \
    void *__tsan_##name(void *to, const void *from, size_t n)                                      \
    {                                                                                              \
        access(from, n, false, false, PC);                                                         \
        access(to, n, true, false, PC);                                                            \
        return name(to, from, n);                                                                  \
    }
COPY(memcpy) COPY(memmove)
void *__tsan_memset(void *p, int value, size_t n)
{
    access(p, n, true, false, PC);
    return memset(p, value, n);
}

// Atomics are done here, and remembered as such.
#define DONE(function, ...) __atomic_##function(p, __VA_ARGS__, __ATOMIC_SEQ_CST)
#define ATOMIC(R, name, T, parameters, write, result)                                              \
    R __tsan_atomic##name parameters                                                               \
    {                                                                                              \
        access(p, sizeof(T), write, true, PC);                                                     \
        return result;                                                                             \
    }
#define FETCH(bits, T, name)                                                                       \
    ATOMIC(T, bits##_fetch_##name, T, (T *p, T v, int), true, DONE(fetch_##name, v))
#define ATOMICS(bits, T)                                                                           \
    ATOMIC(T, bits##_load, T, (T *p, int), false, __atomic_load_n(p, __ATOMIC_SEQ_CST))            \
    ATOMIC(void, bits##_store, T, (T *p, T v, int), true, DONE(store_n, v))                        \
    ATOMIC(T, bits##_exchange, T, (T *p, T v, int), true, DONE(exchange_n, v))                     \
    ATOMIC(int, bits##_compare_exchange_strong, T, (T *p, T *old, T v, int, int), true,            \
           DONE(compare_exchange_n, old, v, false, __ATOMIC_SEQ_CST))                              \
    ATOMIC(int, bits##_compare_exchange_weak, T, (T *p, T *old, T v, int, int), true,              \
           DONE(compare_exchange_n, old, v, false, __ATOMIC_SEQ_CST))                              \
    ATOMIC(T, bits##_compare_exchange_val, T, (T *p, T old, T v, int, int), true,                  \
           (DONE(compare_exchange_n, &old, v, false, __ATOMIC_SEQ_CST), old))                      \
    FETCH(bits, T, add) FETCH(bits, T, sub) FETCH(bits, T, and)                            \
    FETCH(bits, T, or) FETCH(bits, T, xor)
ATOMICS(8, unsigned char) ATOMICS(16, unsigned short)
ATOMICS(32, unsigned) ATOMICS(64, unsigned long)
// clang-format on
}
