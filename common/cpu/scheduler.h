// The state that fiber.cpp, block.cpp, fault.cpp and grid.cpp share: fibers, the parked threads of a block, and the
// OS thread that runs them. The threads of a block are plain calls, one after another, on one stack (a fiber). Only
// a thread that has to wait, at __syncthreads() or for its warp, is left standing on its fiber, and the next thread
// goes on with another one. A kernel without barriers never switches.
#pragma once
#include <setjmp.h>

#include <vector>

#include "runtime.h"

namespace cuda_cpu
{

// GCC's own setjmp saves three registers and makes no system call. Elsewhere the C library's does.
#if defined(__x86_64__) || (defined(__aarch64__) && !defined(__clang__))
typedef void *Jump[5];
#else
typedef jmp_buf Jump;
#endif

const size_t STACK = 256 << 10, ARENA = 228 << 10, ARENA_RESERVED = 16 << 20;
const unsigned MAX_THREADS = 1024;

struct Fiber {
    Jump jump;
    char *stack;
    size_t size;
    bool started; // has been entered, jump is valid
    Fiber *next_idle;
};

enum Wait { NOT, AT_BARRIER, AT_WARP_OP, AT_ACTIVEMASK };

struct Thread { // a CUDA thread that is parked
    Fiber *fiber;
    Wait wait;
    WarpOp op;
    unsigned mask;
    int source;
    uint64_t value, result;
    uint3 index;
    const char *file;
    int line;
};

struct SharedVariable {
    const char *name;
    char *start;
    size_t size;
};

struct Worker { // an OS thread that runs blocks
    int number = 0;
    Fiber main = {}, *running = &main, *idle = nullptr;
    Thread threads[MAX_THREADS] = {};
    unsigned short ready[MAX_THREADS], order[MAX_THREADS], rank[MAX_THREADS];
    unsigned ready_first = 0, ready_count = 0;
    unsigned arrived = 0, votes = 0, vote_result = 0;
    unsigned active_waiting = 0; // threads that stand at an __activemask()
    const char *barrier_file = nullptr;
    int barrier_line = 0;
    uint64_t serial = 0;
    unsigned epoch = 1, warp_epoch[MAX_THREADS / 32] = {};
    char *arena = nullptr;
    size_t arena_used = 0;
    std::vector<SharedVariable> shared; // of the block
    cudaError_t fault = cudaSuccess;
    int signal = 0;
    const void *fault_address = nullptr;
    bool stack_overflow = false;
    char signal_stack[32 << 10]; // a fault by stack overflow needs another stack
};
extern __thread Worker *worker;
extern const Launch *current_launch; // one grid runs at a time

// fiber.cpp
Fiber *new_fiber();
void free_fiber(Fiber *f);
void delete_fibers(); // of this OS thread
void switch_to(Fiber *to);
[[noreturn]] void leave_for(Fiber *to); // for good
void dispatch();                        // leaves the running fiber for whatever can run

// block.cpp
uint3 index_of(unsigned thread);
bool has_ended(unsigned thread);
void yield(); // lets other threads of the block run

// fault.cpp
void report_waiting(const char *what);
void report_signal();
} // namespace cuda_cpu
