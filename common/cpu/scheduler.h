// How a block runs, in the words that fiber.cpp, block.cpp, grid.cpp and fault.cpp share. The threads of a block are
// plain calls, one after another, on one stack (a fiber). Only a thread that has to wait, at __syncthreads() or for
// its warp, is left standing on its fiber, and the next thread goes on with another one. A kernel without barriers
// never switches.
#pragma once
#include <setjmp.h>

#include <random>
#include <vector>

#include "runtime.h"

namespace cuda_cpu
{

// The compiler's own setjmp saves three registers and makes no system call. Where it has none, the C library's does.
#if defined(__clang__) && defined(__aarch64__)
typedef jmp_buf Jump;
#define JUMP_SET(jump) _setjmp(jump)
#define JUMP_TO(jump) _longjmp(jump, 1)
#else
typedef void *Jump[5];
#define JUMP_SET(jump) __builtin_setjmp(jump)
#define JUMP_TO(jump) __builtin_longjmp(jump, 1)
#endif

const size_t STACK = 256 << 10, ARENA = 228 << 10, ARENA_RESERVED = 16 << 20, GUARD = 4096;
const unsigned MAX_THREADS = 1024;

struct Fiber {
    Jump jump; // where it stands, once it has started
    bool started;
    char *stack;
    size_t size;
};

// A thread that does not run, and is not ready to, has stopped for one of these reasons.
enum Stop { AT_BARRIER, AT_OPERATION, AT_ACTIVEMASK, ENDED, STOPS };

struct Warp {
    unsigned lanes;          // one bit each: all 32, except in the last warp of a block
    unsigned stopped[STOPS]; // which of them have stopped, by reason
    unsigned epoch;          // counts its __syncwarp()s
};

struct Thread {   // that is ready or has stopped
    Fiber *fiber; // where it stands; null: not started yet
    uint3 index;
    const char *file; // of the call in which it waits
    int line;
    WarpOp op; // and what it gave to an operation of its warp
    unsigned mask;
    int source;
    uint64_t value, result;
};

struct SharedVariable {
    const char *name;
    char *start;
    size_t size;
};

struct Worker { // an OS thread, which runs one block after another
    explicit Worker(int number);
    ~Worker();
    const int number;
    Fiber main = {}, *running = &main;
    std::vector<Fiber *> fibers, idle; // all; those without a thread

    // The threads of the block. Used from the moment when one of them waits, or when they run in another order.
    Thread threads[MAX_THREADS];
    Warp warps[MAX_THREADS / 32] = {};
    unsigned stopped[STOPS];           // how many, by reason
    std::vector<unsigned short> ready; // those that can run, the next one last
    std::minstd_rand random;
    int barrier_line, votes, vote_result;
    unsigned epoch = 1; // counts blocks and barriers
    uint64_t serial = 0;

    char *arena; // the block's shared memory
    size_t arena_used;
    std::vector<SharedVariable> shared;

    cudaError_t fault = cudaSuccess; // what ended the block, from a signal with the text for it
    const char *fault_text = nullptr;
    const void *fault_address;
    char signal_stack[32 << 10]; // a fault by stack overflow needs another stack
};
extern __thread Worker *worker;
extern const Launch *current_launch; // one grid runs at a time

inline bool has_stopped(unsigned thread, Stop reason)
{
    return worker->warps[thread / 32].stopped[reason] >> thread % 32 & 1;
}

// fiber.cpp
Fiber *new_fiber();
void switch_to(Fiber *to);
[[noreturn]] void leave_for_main(); // for good
void reset_fibers();                // what stands on them is given up
void delete_fibers();

// block.cpp
cudaError_t run_block(const Launch &launch, uint64_t number);
void dispatch(); // leaves the running fiber for the next thread

// fault.cpp
void report_waiting(const char *what);
void report_signal();
} // namespace cuda_cpu
