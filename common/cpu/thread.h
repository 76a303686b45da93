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

// __shared__ variables. nvcc-cpu turns `__shared__ float a[4];` into a reference to what shared_variable returns;
// Tag is a type of its own for each declaration. The first thread of a block that comes by allocates.
void *shared_allocate(const char *name, size_t size, size_t align);

template <class T, class Tag> T &shared_variable(const char *name, size_t align = 1)
{
    static __thread uint64_t serial;
    static __thread void *address;
    static_assert(sizeof(T) <= 48 << 10, "static __shared__ memory is at most 48 KiB a block");
    if (serial != block.serial) {
        address = shared_allocate(name, sizeof(T), align > alignof(T) ? align : alignof(T));
        serial = block.serial;
    }
    return *static_cast<T *>(address);
}

// extern __shared__ T name[];
template <class T> T &shared_dynamic() { return *reinterpret_cast<T *>(block.dynamic_shared); }

// The same declarations outside of a function, where a reference would be bound too early.
template <class T, class Tag> struct SharedAtFileScope {
    using Element = std::remove_extent_t<T>;
    static T &get()
    {
        if constexpr (std::is_array_v<T> && std::extent_v<T> == 0)
            return shared_dynamic<T>();
        else
            return shared_variable<T, Tag>("(at file scope)");
    }
    operator std::conditional_t<std::is_array_v<T>, Element *, T &>() const { return get(); }
    template <class U> explicit operator U *() const { return (U *)get(); }
    const SharedAtFileScope &operator=(const T &value) const
    {
        get() = value;
        return *this;
    }
};

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

template <class Call, class... P> struct Body {
    Call call;
    mutable std::tuple<P...> arguments;
    void operator()() const { std::apply(call, arguments); }
};

template <class T> void check_argument(const Launch &launch, int position, const T &argument)
{
    if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>)
        check_pointer(launch, position, (const void *)argument);
}

template <class Call, class... P> void launch_with(Launch l, const Call &call, P... arguments)
{
    using B = Body<Call, P...>;
    int position = 0;
    (check_argument(l, ++position, arguments), ...);
    B body{call, std::tuple<P...>(arguments...)};
    l.body = &body;
    l.run = run_threads<B>;
    l.clone = [](const void *b) -> const void * { return new B(*static_cast<const B *>(b)); };
    l.destroy = [](const void *b) { delete static_cast<const B *>(b); };
    launch(l);
}

// nvcc-cpu turns `kernel<<<grid, block>>>(a, b)` into
//     launcher(configure(grid, block), "kernel", [=](auto find) { return find(kernel); },
//              [=](auto&... args) { kernel(args...); })(a, b)
// When the kernel is one function, its parameter types convert the arguments, as in a call; when it is a
// template whose arguments are still to be deduced, the arguments are taken as they are.
template <class Call, class... P> struct TypedLauncher {
    Launch launch;
    Call call;
    void operator()(P... arguments) const { launch_with<Call, P...>(launch, call, arguments...); }
    template <class... A> std::enable_if_t<(sizeof...(A) < sizeof...(P))> operator()(A... a) const
    {
        launch_with<Call, A...>(launch, call, a...); // the rest are default arguments
    }
};

template <class Call> struct DeducedLauncher {
    Launch launch;
    Call call;
    template <class... A> void operator()(A... a) const
    {
        launch_with<Call, A...>(launch, call, a...);
    }
};

template <class... P> struct Signature {
    const void *address;
};
struct FindSignature {
    template <class... P> Signature<P...> operator()(void (*kernel)(P...)) const
    {
        return {(const void *)kernel};
    }
};

template <class Call, class... P>
TypedLauncher<Call, P...> typed_launcher(Launch l, Signature<P...> signature, Call call)
{
    l.kernel = signature.address;
    return {l, call};
}

template <class Find, class Call> auto launcher(Launch l, const char *name, Find find, Call call)
{
    l.name = name;
    if constexpr (std::is_invocable_v<Find, FindSignature>)
        return typed_launcher(l, find(FindSignature{}), call);
    else
        return DeducedLauncher<Call>{l, call};
}

// One object for each kernel that is no template: lets cudaLaunchKernel call it from an array of pointers.
struct KernelEntry {
    const void *address;
    const char *name;
    unsigned most_threads; // from __launch_bounds__
    void (*launch)(Launch, void **arguments);
    KernelEntry *next;
};
void register_kernel(KernelEntry *entry);

template <class... P, size_t... I>
void launch_from_array(Launch l, void **arguments, std::index_sequence<I...>)
{
    auto kernel = (void (*)(P...))l.kernel;
    launch_with<decltype(kernel), P...>(
        l, kernel, *static_cast<std::remove_reference_t<P> *>(arguments[I])...);
}

struct RegisterKernel : KernelEntry {
    template <class... P>
    RegisterKernel(void (*kernel)(P...), const char *kernel_name, unsigned bound = 1024)
    {
        address = (const void *)kernel;
        name = kernel_name;
        most_threads = bound;
        this->launch = [](Launch l, void **a) {
            launch_from_array<P...>(l, a, std::index_sequence_for<P...>());
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
