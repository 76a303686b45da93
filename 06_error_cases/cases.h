// cases.h - the table of all cases, and nowhere else: what each one asks, what is expected, why it
// happens, and what helps. The programs read from it what to expect, error_cases what to print.
#ifndef ERROR_CASES_CASES_H
#define ERROR_CASES_CASES_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RUNNER_FD "ERROR_CASES_FD" // the variable that names the file descriptor of error_cases
#define TWIN_MARK "---- "          // begins the line after which a program's own output comes

enum case_flags {
    ON_CPU = 1,               // the CPU backend shows it, too
    STARTS_CUDA_ITSELF = 2,   // no CUDA call may come before the case's own
    ALONE = 4,                // measures time or memory: nothing else may run beside it
    NOT_ON_DISPLAY = 8,       // not on a card that draws a desktop
    NEEDS_NO_GPU = 16,        // shows what the build does
    TOOL_ALONE_FINDS_IT = 32, // without a tool there may be nothing to see
};

struct error_case {
    const char *name, *topic;
    const char *program;  // the program beside this one that holds the two functions
    const char *question; // one line
    const char *expected; // "700 cudaErrorIllegalAddress or 719 ...", or what is seen instead
    double ratio;         // for slow cases: the least that must be measured
    const char *tool;     // the tool of compute-sanitizer that finds it, or NULL
    int flags;
    const char *needs;     // what the CPU backend lacks to show it; NULL with ON_CPU
    const char *part;      // of the programming model
    const char *why, *fix; // NULL for build_and_link: link_errors/show prints them
    const char *profile;   // for slow cases: the metrics of ncu that name it, or an nsys command
};

#define IMAGE_ERROR "209 cudaErrorNoKernelImageForDevice or 98 cudaErrorInvalidDeviceFunction"
#define LAUNCH_ERROR "1 cudaErrorInvalidValue or 9 cudaErrorInvalidConfiguration"
#define NO_MACHINE_CODE "it is about GPU machine code, and the CPU backend has none"
#define NO_GPU_TIMES "times on the CPU backend say nothing about a GPU"

static const struct error_case error_cases[] = {
    // ---- no kernel image
    {"other_major", "no_kernel_image", "no_kernel_image",
     "SASS for another major version: where does it fail?", IMAGE_ERROR, 0, NULL, 0,
     NO_MACHINE_CODE, "execution model",
     "SASS is the machine code of one GPU generation. The file holds none for this one, and no PTX "
     "that the driver could compile.",
     "Compile for this GPU (make SMS=native), or for several (make SMS=\"80 90 120\"): the PTX of "
     "the highest is added, for GPUs to come.",
     NULL},
    {"higher_minor", "no_kernel_image", "no_kernel_image",
     "SASS of the same major version but a higher minor: is that close enough?", IMAGE_ERROR, 0,
     NULL, 0, NO_MACHINE_CODE, "execution model",
     "Machine code runs on the same or a higher minor version, never on a lower: sm_86 code may "
     "use "
     "what an 8.0 lacks.",
     "Compile for the lowest minor version that you own: sm_80 runs on 8.0, 8.6 and 8.9.", NULL},
    {"newer_ptx", "no_kernel_image", "no_kernel_image",
     "PTX runs everywhere, they say. Also PTX for a newer GPU?", IMAGE_ERROR, 0, NULL, 0,
     NO_MACHINE_CODE, "execution model",
     "PTX is compiled by the driver for any GPU from its own number upwards. compute_121 may use "
     "what this GPU does not have, so the driver does not even try.",
     "PTX for the lowest GPU that must run it: -gencode arch=compute_75,code=compute_75.", NULL},
    {"arch_specific", "no_kernel_image", "no_kernel_image", "What does the `a` in sm_90a promise?",
     IMAGE_ERROR, 0, NULL, 0, NO_MACHINE_CODE, "execution model",
     "An `a` target may use instructions that only this one GPU has (wgmma of 9.0a). Its SASS and "
     "its PTX run on exactly that compute capability, not on any later one.",
     "Build the generic target beside it: SMS=\"90 90a\", and guard the special instructions with "
     "__CUDA_ARCH_FEAT_SM90_ALL.",
     NULL},
    {"ptx_version", "no_kernel_image", "ptx_and_jit",
     "The toolkit is newer than the driver. Which error is that?",
     "222 cudaErrorUnsupportedPtxVersion", 0, NULL, 0, NO_MACHINE_CODE, "execution model",
     "Each toolkit writes its own PTX version, and a driver compiles those it knows. The case asks "
     "for a version that no driver knows; a new toolkit with an old driver is the same to it.",
     "Build SASS for this GPU, which needs no compiler in the driver, or update the driver. "
     "scripts/inspect FILE says which driver a file needs.",
     NULL},
    {"jit_disabled", "no_kernel_image", "ptx_and_jit",
     "PTX is there, and the driver must not compile it: what then?",
     "223 cudaErrorJitCompilationDisabled or 209 cudaErrorNoKernelImageForDevice", 0, NULL, 0,
     NO_MACHINE_CODE, "execution model",
     "CUDA_DISABLE_PTX_JIT=1 forbids it, and the cache of earlier compilations "
     "(~/.nv/ComputeCache) is empty or off. With a warm cache the same program runs: the fault "
     "comes and goes.",
     "unset CUDA_DISABLE_PTX_JIT, or build SASS for this GPU; the variable is good for finding out "
     "whether one did.",
     NULL},
    {"jit_forced", "no_kernel_image", "ptx_and_jit",
     "SASS for exactly this GPU, and still no kernel image?", IMAGE_ERROR, 0, NULL, 0,
     NO_MACHINE_CODE, "execution model",
     "CUDA_FORCE_PTX_JIT=1 makes the driver ignore all SASS and take PTX only; this file has none.",
     "unset CUDA_FORCE_PTX_JIT; or use it as a test that a file carries PTX for GPUs to come.",
     NULL},
    {"when_it_shows", "no_kernel_image", "no_kernel_image",
     "cudaMalloc and cudaMemset succeed. When is the code looked for?", IMAGE_ERROR, 0, NULL, 0,
     NO_MACHINE_CODE, "execution model",
     "A kernel's code is loaded at its first launch (lazy loading); memory calls need none. The "
     "synchronise after the failed launch succeeds, for nothing runs. CUDA_MODULE_LOADING=EAGER "
     "does not bring the error forward either.",
     "Check each launch with cudaGetLastError(), or ask for the code at the start: "
     "cudaFuncGetAttributes(&attributes, kernel).",
     NULL},
    {"image_matrix", "no_kernel_image", "image_matrix",
     "Which of all these files run on this GPU? The rules, then the truth.",
     "0 surprises: each file does what the rules say", 0, NULL, 0, NO_MACHINE_CODE,
     "execution model",
     "Two rules decide: SASS within its major version, upwards; PTX for everything newer. An `a` "
     "binds both to one GPU.",
     "A file for many GPUs holds SASS for each major version and PTX of the highest: images/fat.",
     NULL},
    {"image_rules", "no_kernel_image", "image_matrix",
     "Without any GPU at hand: which file would run where?",
     "pairs of file and GPU that do not run", 0, NULL, STARTS_CUDA_ITSELF | NEEDS_NO_GPU,
     "it needs nvcc: make BACKEND=cuda", "compilation",
     "What a file carries is known when it is built, so the question needs no GPU.",
     "scripts/inspect FILE --all-gpus reads it from any program, also from one of others.", NULL},
    {"framework", "no_kernel_image", "image_matrix",
     "PyTorch says `no kernel image`: what does its build hold for this card?",
     "a list of architectures, to be read with the same two rules", 0, NULL, 0, NO_MACHINE_CODE,
     "execution model",
     "A framework's kernels are in its library. torch.cuda.get_arch_list() names the SASS (sm_) "
     "and PTX (compute_) in it: the rules are those above.",
     "Install the build that names your GPU's major version: a newer card needs a newer one.",
     NULL},

    // ---- out of memory
    {"too_large", "out_of_memory", "out_of_memory",
     "One allocation that is too large: is all lost?", "2 cudaErrorMemoryAllocation", 0, NULL,
     ON_CPU | ALONE, NULL, "memory hierarchy",
     "Global memory is the card's own, and its size is fixed. The error is not sticky: a smaller "
     "request works right after.",
     "Read what is free (cudaMemGetInfo) and choose the batch by it; halve it until it fits.",
     NULL},
    {"leak", "out_of_memory", "out_of_memory",
     "Each step takes only 8 MiB. After how many is it over?", "2 cudaErrorMemoryAllocation", 0,
     NULL, ON_CPU, NULL, "memory hierarchy",
     "Device memory lives until cudaFree or the end of the process. A pointer that goes out of "
     "scope frees nothing.",
     "Allocate once before the loop and reuse; or free in the same function that allocated.", NULL},
    {"fragmentation", "out_of_memory", "out_of_memory",
     "Half of the memory is free: does 2 MiB fit?", "2 cudaErrorMemoryAllocation", 0, NULL, ON_CPU,
     NULL, "memory hierarchy",
     "An allocation needs contiguous addresses, and a block in use cannot be moved: pointers to it "
     "are out there. Free pieces of 1 MiB between blocks in use do not make 2 MiB.",
     "Put what lives long together and first; take one large buffer and divide it yourself; in "
     "PyTorch: PYTORCH_ALLOC_CONF=expandable_segments:True.",
     NULL},
    {"int_overflow", "out_of_memory", "out_of_memory",
     "23171 x 23171 floats are 2 GiB. Why does cudaMalloc say no?", "2 cudaErrorMemoryAllocation",
     0, NULL, ON_CPU, NULL, "memory hierarchy",
     "The size was computed in 32 bits, came out negative, and is 1.8e19 bytes as size_t. Where it "
     "wraps to 0 instead, cudaMalloc returns success and a null pointer.",
     "size_t for sizes, from the first factor on: (size_t)rows * columns * sizeof(float).", NULL},
    {"unread_error", "out_of_memory", "out_of_memory",
     "A correct launch reports out of memory. Who is to blame?", "2 cudaErrorMemoryAllocation", 0,
     NULL, ON_CPU, NULL, "execution model",
     "cudaGetLastError() returns the last error of any call until it is read. An allocation failed "
     "earlier and nobody looked; the launch's check found it.",
     "Check every call where it stands. After an error that you handle, read it away with "
     "cudaGetLastError().",
     NULL},
    {"data_larger_than_device", "out_of_memory", "memory_cures",
     "96 MiB of data, 64 MiB of device: how is it done?", "2 cudaErrorMemoryAllocation", 0, NULL,
     ON_CPU, NULL, "memory hierarchy",
     "The data set need not be on the device at once; only what a kernel works on has to be.",
     "Through the device in chunks; lesson 05 overlaps their copies with the kernel.", NULL},
    {"smaller_type", "out_of_memory", "memory_cures",
     "80 MiB of floats do not fit. And half of each?", "2 cudaErrorMemoryAllocation", 0, NULL,
     ON_CPU, NULL, "memory hierarchy",
     "Memory is counted in bytes. 16-bit types take half, and move in half the time.",
     "__half (11 significant bits, up to 65504) or __nv_bfloat16 (8 bits, the range of float); "
     "compute in float, store in 16 bits.",
     NULL},
    {"pool_keeps_memory", "out_of_memory", "who_holds_memory",
     "All is freed, and nvidia-smi still shows it in use: whose is it?",
     "memory that the pool holds although nobody uses it", 0, NULL, ALONE,
     "its pools give everything back at once", "memory hierarchy",
     "A pool (cudaMallocAsync, or PyTorch's allocator) keeps freed memory for its own next "
     "request. "
     "Other allocators and other processes cannot have it.",
     "cudaMemPoolTrimTo(pool, 0), a release threshold, torch.cuda.empty_cache(); or one pool for "
     "all.",
     NULL},
    {"two_processes", "out_of_memory", "who_holds_memory",
     "The free memory falls, and this program took none of it?",
     "less free memory with no allocation of this process", 0, NULL,
     STARTS_CUDA_ITSELF | ALONE | NOT_ON_DISPLAY, "each program there has a memory of its own",
     "memory hierarchy",
     "Processes share the card's memory, and none sees the other's allocations. Each also pays for "
     "a context of its own. A size that fitted yesterday fails today.",
     "Look who is there (nvidia-smi), ask for what is free now, and end what you forgot.", NULL},
    {"device_malloc", "out_of_memory", "device_heap",
     "malloc in a kernel, 64 MiB: the card has GiB. What comes back?",
     "NULL from malloc, and no CUDA error", 0, NULL, ON_CPU, NULL, "memory hierarchy",
     "malloc in kernels takes from a heap that the runtime sets aside at start, 8 MiB unless told "
     "otherwise. It knows no error codes: NULL is all.",
     "cudaDeviceSetLimit(cudaLimitMallocHeapSize, bytes) before the first kernel, and check the "
     "pointer; better, allocate on the host.",
     NULL},
    {"printf_overflow", "out_of_memory", "device_heap",
     "A kernel prints 64,000 lines. How many arrive?",
     "fewer lines than were printed, and no error", 0, NULL, 0, "its printf keeps every line",
     "memory hierarchy",
     "printf in kernels writes into a ring buffer in device memory, which the host empties at "
     "synchronisations. When it is full, the oldest lines are overwritten.",
     "Print less (one thread, one block), or cudaDeviceSetLimit(cudaLimitPrintfFifoSize, bytes) "
     "before the first kernel.",
     NULL},
    {"printf_without_sync", "out_of_memory", "device_heap",
     "The kernel prints, and nothing appears?", "no line at all, and no error", 0, NULL,
     STARTS_CUDA_ITSELF | ON_CPU, NULL, "execution model",
     "A launch returns before the kernel has run, and its output waits in a buffer on the device. "
     "A "
     "process that ends first takes the buffer with it.",
     "cudaDeviceSynchronize() before the end of main; no compiler flag is needed.", NULL},

    // ---- launch failure
    {"block_too_large", "launch_failure", "bad_launch",
     "A block of 1025 threads: who says no, and when?", LAUNCH_ERROR, 0, NULL, ON_CPU, NULL,
     "thread hierarchy",
     "A block lives on one SM and has at most 1024 threads. The launch is refused at once and "
     "nothing runs, so the synchronise after it succeeds.",
     "More blocks instead of larger ones; read the limit with "
     "cudaDeviceGetAttribute(cudaDevAttrMaxThreadsPerBlock).",
     NULL},
    {"empty_grid", "launch_failure", "bad_launch", "n = 0, and the launch fails. Why?",
     LAUNCH_ERROR, 0, NULL, ON_CPU, NULL, "thread hierarchy",
     "A grid has at least one block, and (0 + 255) / 256 is 0.", "Do not launch when n is 0.",
     NULL},
    {"shared_opt_in", "launch_failure", "too_much_for_sm",
     "The SM has more shared memory than the launch gets. How is it had?", LAUNCH_ERROR, 0, NULL,
     ON_CPU, NULL, "memory hierarchy",
     "A block gets 48 KiB of shared memory without asking. What this GPU has beyond, it gives only "
     "to kernels that opted in.",
     "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) before the "
     "launch.",
     NULL},
    {"too_many_registers", "launch_failure", "too_much_for_sm",
     "1024 threads are allowed, and still the launch fails?", "701 cudaErrorLaunchOutOfResources",
     0, NULL, 0, "it has no registers to run out of", "memory hierarchy",
     "All threads of a block keep their registers on one SM, which has 65536. More than 64 a "
     "thread "
     "leave no room for 1024 threads.",
     "Smaller blocks, or __launch_bounds__(1024), which makes the compiler use fewer (and perhaps "
     "spill). nvcc -Xptxas -v prints the number; a -G build needs more.",
     NULL},
    {"unchecked_launch", "launch_failure", "bad_launch",
     "Every checked call succeeds and no result arrives. What was not checked?",
     "success everywhere and results that nobody wrote", 0, NULL, ON_CPU, NULL, "execution model",
     "kernel<<<...>>>() returns nothing. A refused launch leaves its error for cudaGetLastError() "
     "alone; synchronise and copy report what they did themselves.",
     "cudaGetLastError() after each launch, and a poisoned output in tests.", NULL},
    {"wrong_copy", "launch_failure", "bad_launch",
     "A copy beyond the end, a copy in the wrong direction, a double free?",
     "1 cudaErrorInvalidValue", 0, NULL, ON_CPU, NULL, "memory hierarchy",
     "Host and device memory are apart, and the runtime knows its allocations: it checks where a "
     "pointer leads and how far.",
     "Name sizes once; cudaMemcpyDefault lets the runtime find the direction; set freed pointers "
     "to NULL.",
     NULL},
    {"null_pointer", "launch_failure", "launch_failure",
     "A kernel writes through a null pointer: which line learns of it?",
     "700 cudaErrorIllegalAddress", 0, "memcheck", ON_CPU, NULL, "execution model",
     "The launch only queues the kernel, and succeeds. It fails while it runs, and the next call "
     "that waits reports it - then every call: the error is sticky.",
     "CUDA_CHECK(cudaMalloc(...)); to find the line: compute-sanitizer, or CUDA_LAUNCH_BLOCKING=1, "
     "which moves the report to the launch.",
     NULL},
    {"host_pointer", "launch_failure", "launch_failure",
     "A kernel gets a pointer from malloc. And?", "700 cudaErrorIllegalAddress", 0, NULL, ON_CPU,
     NULL, "memory hierarchy",
     "Host memory is another address space, unless the system offers it to the GPU (HMM, Grace "
     "Hopper) or it was allocated so (cudaMallocHost, cudaMallocManaged).",
     "cudaMalloc and cudaMemcpy; d_ and h_ in the names keep them apart.", NULL},
    {"freed_pointer", "launch_failure", "launch_failure",
     "A kernel writes into freed memory. Always an error?",
     "700 cudaErrorIllegalAddress or 0 cudaSuccess", 0, "memcheck", ON_CPU, NULL,
     "memory hierarchy",
     "cudaFree of a large block takes it out of the address space: 700. A small one stays mapped, "
     "with others in the same page, and the write succeeds - into whatever is there by then.",
     "Free after the last use, set the pointer to NULL; memcheck finds both kinds.", NULL},
    {"misaligned", "launch_failure", "launch_failure",
     "A float4 at an address that 16 does not divide?", "716 cudaErrorMisalignedAddress", 0, NULL,
     0, "CPUs read such addresses", "memory hierarchy",
     "A 16-byte load moves an aligned piece of a memory sector. x86 does more for it, a GPU raises "
     "an error.",
     "cudaMalloc aligns to 256 bytes; keep offsets multiples of the access, or load floats.", NULL},
    {"device_assert", "launch_failure", "kernel_stops",
     "An index outside of a table, caught by assert: what does the host see?",
     "710 cudaErrorAssert", 0, NULL, ON_CPU, NULL, "execution model",
     "assert in a kernel prints block, thread and line at the next synchronise and ends the "
     "kernel. "
     "-DNDEBUG removes it. PyTorch's `device-side assert triggered` is this one: mostly a label or "
     "an index out of range.",
     "Check on the host what comes from outside; keep asserts in debug builds.", NULL},
    {"trap", "launch_failure", "kernel_stops", "unspecified launch failure: what can that be?",
     "719 cudaErrorLaunchFailure or 715 cudaErrorIllegalInstruction", 0, NULL, ON_CPU, NULL,
     "execution model",
     "The kernel was ended from inside, and nobody says by whom: here by __trap(). Corrupted "
     "pointers into shared memory and hardware faults show the same way.",
     "assert instead of __trap; compute-sanitizer for what the program did not ask for; then "
     "dmesg | grep Xid.",
     NULL},
    {"stack_overflow", "launch_failure", "kernel_stops", "How deep can a kernel recurse?",
     "700 cudaErrorIllegalAddress or 719 cudaErrorLaunchFailure or 714 cudaErrorHardwareStackError",
     0, NULL, 0, "its threads run on larger stacks", "memory hierarchy",
     "Each thread has a stack of 1 KiB in local memory. Recursion leaves it, and the address is "
     "nobody's.",
     "A loop. cudaDeviceSetLimit(cudaLimitStackSize) is no cure: it is reserved for every thread "
     "that the GPU can hold, 64 KiB x 132 SMs x 2048 are 16.5 GiB.",
     NULL},
    {"shared_overrun", "launch_failure", "kernel_stops", "An index far beyond a __shared__ array?",
     "700 cudaErrorIllegalAddress or 715 cudaErrorIllegalInstruction or 719 cudaErrorLaunchFailure",
     0, NULL, 0, "only its address sanitizer sees that", "memory hierarchy",
     "Shared memory is a window of the SM's own. Just past an array lies the next one, silently; "
     "past the window the hardware stops the kernel.",
     "Wrap or check the index; memcheck finds the silent ones within the window only at its end.",
     NULL},
    {"sticky", "launch_failure", "sticky_error", "Does cudaDeviceReset() cure a failed kernel?",
     "46 cudaErrorDevicesUnavailable or 700 cudaErrorIllegalAddress", 0, NULL,
     STARTS_CUDA_ITSELF | ON_CPU, NULL, "execution model",
     "A kernel's fault destroys the context, and every later call of the process returns its "
     "error. "
     "cudaDeviceReset() returns success, and the next call fails again.",
     "Only a new process helps: put risky work in a child, started before CUDA is.", NULL},
    {"fork_after_cuda", "launch_failure", "sticky_error",
     "fork() after one harmless CUDA call: what works in the child?",
     "3 cudaErrorInitializationError", 0, NULL, STARTS_CUDA_ITSELF | ON_CPU, NULL,
     "execution model",
     "The driver's state of the parent cannot be copied. Even cudaGetDeviceCount() starts it "
     "(PyTorch: `Cannot re-initialize CUDA in forked subprocess`).",
     "Fork first, or start children with exec; in Python "
     "multiprocessing.set_start_method('spawn').",
     NULL},

    // ---- wrong result
    {"bounds_check", "wrong_result", "wrong_result",
     "24 floats past the end: which call reports it?",
     "values of the neighbour overwritten, and no error", 0, "memcheck", ON_CPU, NULL,
     "thread hierarchy",
     "The grid is made of whole blocks, so it has more threads than elements. Memory is mapped in "
     "large pages, and what lies just past an allocation is writable.",
     "if (i < n) in the kernel, always. A run without an error proves nothing; memcheck does.",
     NULL},
    {"index_overflow", "wrong_result", "wrong_result",
     "Block 20,000,000 of 256 threads: which element?", "an index that wrapped at 2^32", 0, NULL,
     ON_CPU, NULL, "thread hierarchy",
     "blockIdx, blockDim and threadIdx are unsigned: their product is taken in 32 bits, and "
     "widened "
     "when it is too late.",
     "(size_t)blockIdx.x * blockDim.x + threadIdx.x.", NULL},
    {"missing_syncthreads", "wrong_result", "missing_barrier",
     "Each thread reads what another warp wrote. Is it there yet?",
     "stale values from shared memory, and no error", 0, "racecheck", ON_CPU, NULL,
     "thread hierarchy",
     "The warps of a block run at their own pace. Only a barrier says that all have written.",
     "__syncthreads() between writing and reading what others wrote, reached by every thread.",
     NULL},
    {"divergent_barrier", "wrong_result", "missing_barrier",
     "__syncthreads() in a branch: does it hang?", "0 cudaSuccess or 719 cudaErrorLaunchFailure", 0,
     "synccheck", ON_CPU | TOOL_ALONE_FINDS_IT, NULL, "thread hierarchy",
     "A barrier must be reached by all threads of the block or by none. Here the halves of the "
     "block "
     "wait at two different barriers, and today's hardware lets them pass, for it counts arrivals. "
     "With branches within a warp the same code hung on an H200.",
     "Take the barrier out of the branch; only the work stays in it.", NULL},
    {"uninitialized", "wrong_result", "wrong_result",
     "cudaMalloc, then atomicAdd: what is added to?",
     "counts that begin with what was there before", 0, "initcheck", ON_CPU, NULL,
     "memory hierarchy",
     "cudaMalloc clears nothing: the memory holds what its last user left. A new process often "
     "gets "
     "zeros, which hides the fault until somebody frees and allocates.",
     "cudaMemset after cudaMalloc, where a kernel adds or only partly writes.", NULL},
    {"float_compare", "wrong_result", "wrong_number",
     "The device's sum differs from the loop's. Is the kernel wrong?",
     "two sums that differ, both close to the exact one", 0, NULL, ON_CPU, NULL, "execution model",
     "Float addition rounds, so its result depends on the order, and thousands of threads have "
     "another order than a loop. The tree is often the better one. a*b+c in one rounding (FMA) "
     "differs, too.",
     "Compare with a reference in double, with a tolerance that grows with the number of additions "
     "and with the size of what is added.",
     NULL},
    {"nan_check", "wrong_result", "wrong_number",
     "One result is NaN, and the check finds 0 errors?",
     "0 errors counted, with a NaN among the results", 0, NULL, ON_CPU, NULL, "execution model",
     "Every comparison with NaN is false, so `error > tolerance` lets it pass. Memory full of 0xFF "
     "is NaN: a poisoned output that nobody wrote would pass as well.",
     "if (!(error <= tolerance)) - what is not proved right is wrong.", NULL},
    {"read_before_sync", "wrong_result", "wrong_number",
     "Pinned or managed memory needs no copy. May the host read at once?",
     "the old value, and no error", 0, NULL, 0, "its launches return when the kernel is done",
     "execution model",
     "A launch returns before the kernel runs. cudaMemcpy waits for it; a plain read of mapped or "
     "managed memory does not.",
     "cudaDeviceSynchronize(), or an event, before the host reads.", NULL},
    {"missing_syncwarp", "wrong_result", "missing_barrier",
     "The lanes of a warp run in lockstep, they say. Do they?",
     "stale values within one warp, and no error", 0, "racecheck", ON_CPU, NULL, "thread hierarchy",
     "Since sm_70 each thread has its own program counter; after a branch the parts of a warp run "
     "one after the other, in no promised order.",
     "__syncwarp() between writing and reading, or __shfl_sync, which exchanges registers.", NULL},

    // ---- slow
    {"uncoalesced", "slow_kernel", "slow_memory",
     "The same bytes, 32 floats apart: how many times slower?", "a multiple of the time", 2, NULL,
     ALONE | ON_CPU, NULL, "memory hierarchy",
     "Memory is moved in sectors of 32 bytes. Neighbouring lanes on neighbouring floats use all of "
     "each; lanes that are 128 bytes apart use 4 of 32.",
     "Let threadIdx.x run along the fastest index; transpose through shared memory (lesson 03).",
     "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"},
    {"small_grid", "slow_kernel", "slow_threads",
     "One block of 256 on the whole GPU: how many times slower?", "a multiple of the time", 4, NULL,
     ALONE | ON_CPU, NULL, "thread hierarchy",
     "A block runs on one SM: the others have nothing. And an SM hides the latency of memory only "
     "when other warps can run while one waits.",
     "Blocks of 128 to 512 threads, several for each SM; "
     "cudaOccupancyMaxPotentialBlockSize proposes.",
     "sm__warps_active.avg.pct_of_peak_sustained_active,launch__waves_per_multiprocessor"},
    {"low_intensity", "slow_kernel", "slow_memory",
     "Four kernels with a step each, or one with four steps?", "a multiple of the time", 1.5, NULL,
     ALONE | ON_CPU, NULL, "memory hierarchy",
     "Each kernel reads and writes all of the data for two operations: memory is the limit, and "
     "the "
     "arithmetic units wait. Registers do not survive a kernel; global memory is the only way on.",
     "Do more with each loaded value: fuse kernels, tile (lesson 04).",
     "dram__throughput.avg.pct_of_peak_sustained_elapsed,"
     "sm__throughput.avg.pct_of_peak_sustained_elapsed"},
    {"bank_conflict", "slow_kernel", "slow_memory",
     "A column of a 32 x 32 tile in shared memory: wrong, slow, or both?", "a multiple of the time",
     1.5, NULL, ALONE | ON_CPU, NULL, "memory hierarchy",
     "Shared memory has 32 banks, 4 bytes wide. With rows of 32 floats a column lies in one bank, "
     "and the 32 lanes take turns. The result is right all the same.",
     "One float of padding a row, tile[32][33], moves each row on by a bank.",
     "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"},
    {"divergence", "slow_kernel", "slow_threads",
     "Half of the threads in each branch: does it matter which?", "a multiple of the time", 1.3,
     NULL, ALONE | ON_CPU, NULL, "thread hierarchy",
     "A warp issues one instruction for its 32 lanes. When they disagree, it walks through both "
     "branches with some lanes switched off.",
     "Let whole warps decide alike: sort or group the work by branch.",
     "smsp__thread_inst_executed_per_inst_executed.ratio"},
    {"register_spills", "slow_kernel", "slow_code",
     "96 values in 64 registers: where are the rest?", "a multiple of the time", 1.3, NULL,
     ALONE | ON_CPU, NULL, "memory hierarchy",
     "What does not fit into the registers goes to local memory, which is global memory behind the "
     "caches, each time it is used.",
     "Fewer live values, smaller blocks, no tighter __launch_bounds__ or -maxrregcount than "
     "needed; "
     "-Xptxas -v,-warn-spills tells when compiling.",
     "smsp__inst_executed_op_local_ld.sum,smsp__inst_executed_op_local_st.sum"},
    {"double_literals", "slow_kernel", "slow_code",
     "x * 0.999 + 0.5 with a float x: in which type?", "a multiple of the time", 1.3, NULL,
     ALONE | ON_CPU, NULL, "execution model",
     "0.999 is a double, so the product and the sum are, and x is converted there and back. An "
     "A100 "
     "or H200 has one fp64 unit for 2 of fp32, a GeForce one for 32 or 64.",
     "0.999f and 0.5f. nvcc -Xptxas -warn-double-usage finds them.",
     "smsp__sass_thread_inst_executed_op_fp64_pred_on.sum"},
    {"debug_build", "slow_kernel", "slow_code", "-G is for the debugger. What does it cost?",
     "a multiple of the time", 2, NULL, ALONE, NO_GPU_TIMES, "compilation",
     "-G switches the optimiser off: each variable lives in memory, so that cuda-gdb can show it.",
     "Time without -G; -lineinfo gives the profiler its lines and costs nothing.",
     "ncu --metrics smsp__inst_executed.sum images/build_debug"},
    {"copies_in_loop", "slow_kernel", "slow_host", "20 steps with a copy there and back in each?",
     "a multiple of the time", 2, NULL, ALONE | ON_CPU, NULL, "memory hierarchy",
     "The bus to the host is tens of times slower than device memory, and each copy waits.",
     "The data stays on the device from the first step to the last.", "nsys profile --stats=true"},
    {"first_launch_timed", "slow_kernel", "slow_host", "The first launch against the later ones?",
     "a multiple of the time", 2, NULL, ALONE | ON_CPU, NULL, "execution model",
     "The first launch of a kernel loads its code; from PTX the driver compiles it first, which "
     "takes longer still and is cached in ~/.nv/ComputeCache (jit_disabled --fixed prints it).",
     "A warm-up before the clock starts; the median of several runs.",
     "nsys profile --stats=true ./slow_host first_launch_timed"},

// ---- build and link
#define LINK_CASE(name, question, expected)                                                        \
    {                                                                                              \
        name, "build_and_link", "link_errors", question, expected, 0, NULL, NEEDS_NO_GPU | ON_CPU, \
            NULL, "compilation", NULL, NULL, NULL                                                  \
    }
    LINK_CASE("cudart_missing", "g++ links the object of nvcc: what is missing?",
              "undefined reference to `cudaMalloc'"),
    LINK_CASE("library_order", "-lcudart is there, and still undefined references?",
              "undefined reference to `cudaMalloc'"),
    LINK_CASE("c_and_cuda", "main.c calls a function in a .cu file: why is it not found?",
              "undefined reference to `gpu_add'"),
    LINK_CASE("device_linking", "Two .cu files, a __device__ function across: who links it?",
              "Unresolved extern function"),
    LINK_CASE("device_link_step", "-rdc objects linked by g++: what is __cudaRegisterLinkedBinary?",
              "undefined reference to `__cudaRegisterLinkedBinary"),
    LINK_CASE("kernel_in_c_file", "A kernel in a .c file: what does the compiler see in <<<?",
              "expected expression before '<' token"),
    LINK_CASE("unsupported_arch", "Unsupported gpu architecture: too old or too new?",
              "Unsupported gpu architecture"),
    LINK_CASE("host_compiler_too_new", "unsupported GNU version: how is it solved?",
              "unsupported GNU version"),
    LINK_CASE("host_compiler_missing", "-ccbin names a compiler that is not there?",
              "Failed to preprocess host compiler properties"),
    LINK_CASE("nvcc_not_found", "nvcc: command not found, and it is installed?", "not found"),
    LINK_CASE("runtime_library_missing", "It links, and does not start?",
              "cannot open shared object file"),
#undef LINK_CASE
};
enum { ERROR_CASE_COUNT = sizeof(error_cases) / sizeof(error_cases[0]) };

// The case of that name; NULL when there is none.
static inline const struct error_case *case_find(const char *name)
{
    for (int i = 0; i < ERROR_CASE_COUNT; i++)
        if (strcmp(error_cases[i].name, name) == 0)
            return &error_cases[i];
    return NULL;
}

// Is `number` one of those in "700 cudaErrorIllegalAddress or 719 ..."?
static inline int case_accepts(const struct error_case *c, int number)
{
    for (const char *word = c->expected; word; word = strstr(word, " or ")) {
        if (strncmp(word, " or ", 4) == 0)
            word += 4;
        char *end;
        long accepted = strtol(word, &end, 10);
        if (end != word && accepted == number)
            return 1;
    }
    return 0;
}

#endif
