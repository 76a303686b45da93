// What a kernel's thread sees, and how a launch reaches it: the index variables, the loop that calls a kernel
// once for each thread of a block, __shared__ variables, and the object that `kernel<<<grid, block>>>` becomes.
// The other half, blocks and barriers, is in block.cpp and grid.cpp.
#pragma once
#pragma GCC system_header
#include <stddef.h>
#include <stdint.h>

#include <tuple>
#include <type_traits>

#include "vector_types.h"

typedef struct CUstream_st *cudaStream_t;

// One OS thread runs one block at a time, so the state of "this thread" and "this block" is thread-local.
extern __thread uint3 threadIdx, blockIdx;
extern __thread dim3 blockDim, gridDim;
constexpr int warpSize = 32;

namespace cuda_cpu
{

struct Block {
    uint64_t serial; // number of this block, unique for the OS thread; 0: not in a kernel
    unsigned count;  // threads in the block
    bool in_turn; // no thread has waited yet: they run in forward order, and only threadIdx counts
    char *dynamic_shared;
};
extern __thread Block block;

inline unsigned linear_index()
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

bool start_thread(); // makes the next thread of the block the current one; false when all have been started
void thread_ended(); // somebody may have waited for it

// Runs threads one after another as plain calls. A thread that reaches a barrier leaves this loop parked on its
// fiber, and another fiber enters the loop to start the next thread.
template <class Body> void run_threads(const void *data)
{
    const Body &body = *static_cast<const Body *>(data);
    if (!start_thread()) return;
    for (unsigned x = threadIdx.x;;) {
        body();
        if (__builtin_expect(!block.in_turn, 0)) {
            thread_ended();
            if (!start_thread()) return;
        } else if (++x < blockDim.x) {
            threadIdx.x = x;
        } else {
            x = threadIdx.x = 0;
            if (++threadIdx.y < blockDim.y) continue;
            threadIdx.y = 0;
            if (++threadIdx.z >= blockDim.z) return;
        }
    }
}

// __shared__ variables. nvcc-cpu turns `__shared__ float a[4], b;` into a struct with these members, from which
// their types and alignment come, and into references to what shared_variable<0>(&S::a, "a") and <1>(&S::b, "b")
// return. The first thread of a block that comes by allocates.
void *shared_allocate(const char *name, size_t size, size_t align);

template <int Index, class Struct, class T> T &shared_variable(T Struct::*, const char *name)
{
    static __thread uint64_t serial;
    static __thread void *address;
    static_assert(sizeof(T) <= 48 << 10, "static __shared__ memory is at most 48 KiB a block");
    if (serial != block.serial) {
        address = shared_allocate(name, sizeof(T), alignof(Struct));
        serial = block.serial;
    }
    return *static_cast<T *>(address);
}
// extern __shared__ float a[];
template <class Struct, class T> T &shared_dynamic(T Struct::*)
{
    return *reinterpret_cast<T *>(block.dynamic_shared);
}

// A launch as the runtime sees it: the kernel with its arguments is `body`, known only through three functions.
struct Launch {
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    const char *file;
    int line;
    const char *name = "";
    const void *kernel = nullptr; // address of the kernel, null when it cannot be told
    const void *body = nullptr;
    void (*run)(const void *) = nullptr;
    const void *(*clone)(const void *) = nullptr;
    void (*destroy)(const void *) = nullptr;
};
void launch(const Launch &launch);
void check_pointer(const Launch &launch, int position, const void *pointer);

inline Launch configure(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = nullptr,
                        const char *file = __builtin_FILE(), int line = __builtin_LINE())
{
    return {grid, block, shared, stream, file, line};
}

template <class T> void check_argument(const Launch &launch, int position, const T &argument)
{
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
        check_pointer(launch, position, (const void *)argument);
}

// nvcc-cpu turns `kernel<<<grid, block>>>(a, b)` into
//     launcher(configure(grid, block), "kernel", [=](auto find) { return find(kernel); },
//              [=](auto&... args) { kernel(args...); })(a, b)
// This takes the arguments as they are: of overloaded kernels, and templates whose arguments are to be deduced.
template <class Call> struct Launcher {
    Launch configured;
    Call call;
    template <class... Args> void operator()(Args... args) const
    {
        Launch l = configured;
        int position = 0;
        (check_argument(l, ++position, args), ...);
        auto body = [call = call, all = std::tuple<Args...>(args...)] { std::apply(call, all); };
        using Body = decltype(body);
        l.body = &body;
        l.run = run_threads<Body>;
        l.clone = [](const void *b) -> const void * { return new Body(*(const Body *)b); };
        l.destroy = [](const void *b) { delete (const Body *)b; };
        launch(l);
    }
};

// A GPU gets an argument's bytes: no copy constructor or destructor of its class runs in a kernel.
// Neither here: to the function, such an argument is an address, like a reference (Itanium C++ ABI),
// and what it refers to is the caller's.
template <class T>
constexpr bool by_address = std::is_reference_v<T> ||
                            (std::is_class_v<T> && !(std::is_trivially_copy_constructible_v<T> &&
                                                     (std::is_trivially_move_constructible_v<T> ||
                                                      !std::is_move_constructible_v<T>)));
template <class T> struct Bytes {
    alignas(T) char bytes[sizeof(T)];
    operator const void *() const { return bytes; }
};

template <class T>
using Stored = std::conditional_t<
    !by_address<T>, T,
    std::conditional_t<std::is_reference_v<T>, std::remove_reference_t<T> *, Bytes<T>>>;

template <class T> Stored<T> stored(std::remove_reference_t<T> &argument)
{
    if constexpr (std::is_reference_v<T>)
        return &argument;
    else
        return *(const Stored<T> *)&argument;
}
template <class... Params> struct CallWithBytes {
    void (*kernel)(std::conditional_t<by_address<Params>, const void *, Params>...);
    CallWithBytes(const void *address) : kernel((decltype(kernel))address) {}
    // Each thread has its own. Clang's sanitizer would compare the function's type.
    __attribute__((no_sanitize("undefined"))) void operator()(Stored<Params>... s) const
    {
        kernel(s...);
    }
};

// Where the kernel is one function, its parameter types convert the arguments, as in a call.
template <class Call, class... Params> struct TypedLauncher {
    Launcher<Call> launcher;
    void operator()(Params... args) const
    {
        const Launch &l = launcher.configured;
        if constexpr ((by_address<Params> || ...))
            Launcher<CallWithBytes<Params...>>{l, l.kernel}(stored<Params>(args)...);
        else
            launcher(args...);
    }
    template <class... Args> // fewer of them: the rest are default arguments
    std::enable_if_t<(sizeof...(Args) < sizeof...(Params))> operator()(Args... args) const
    {
        launcher(args...);
    }
};

template <class Call> struct FindTypes {
    Launcher<Call> launcher;
    template <class... Params> TypedLauncher<Call, Params...> operator()(void (*kernel)(Params...))
    {
        launcher.configured.kernel = (const void *)kernel;
        return {launcher};
    }
};

template <class Find, class Call> auto launcher(Launch l, const char *name, Find find, Call call)
{
    l.name = name;
    if constexpr (std::is_invocable_v<Find, FindTypes<Call>>)
        return find(FindTypes<Call>{{l, call}});
    else
        return Launcher<Call>{l, call};
}

// One object for each kernel that is no template: lets cudaLaunchKernel call it from an array of pointers.
void register_kernel(struct KernelEntry *entry);
struct KernelEntry {
    const void *address;
    const char *name;
    unsigned most_threads; // from __launch_bounds__
    void (*launch)(Launch, void **arguments);
    KernelEntry *next = nullptr;

    template <class... Params>
    KernelEntry(void (*kernel)(Params...), const char *kernel_name, unsigned bound = 1024)
        : address((const void *)kernel), name(kernel_name), most_threads(bound)
    {
        launch = [](Launch l, void **argument) {
            std::apply(Launcher<CallWithBytes<Params...>>{l, l.kernel},
                       std::tuple<Stored<Params>...>{*(Stored<Params> *)*argument++...});
        };
        register_kernel(this);
    }
};

// One object for each __device__, __constant__ and __managed__ variable, so that symbols can be told from
// host variables.
struct RegisterSymbol {
    const void *address;
    size_t size;
    bool managed;
    const char *name;
    RegisterSymbol *next;
    RegisterSymbol(const void *a, size_t s, bool m, const char *n);
};

} // namespace cuda_cpu
