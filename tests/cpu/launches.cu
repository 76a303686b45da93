// Launches in every shape in which programs write them.
#include "test.h"
#include "launches.cuh"

#define LAUNCH(kernel, blocks, threads, ...) kernel<<<blocks, threads>>>(__VA_ARGS__)
#define BLOCKS (1 << 1)

__global__ void set(int *x, int value)
{
    x[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void overloaded(int *x, int a)
{
    x[threadIdx.x] = a;
}
__global__ void overloaded(int *x, float a)
{
    x[threadIdx.x] = (int)(a * 10);
}
template <typename T> __global__ void deduced(T *x, T value)
{
    x[threadIdx.x] = value;
}
__global__ void with_default(int *x, int value = 77)
{
    x[threadIdx.x] = value;
}
__global__ void __launch_bounds__(64, 2) bounded(int *x)
{
    x[threadIdx.x] = 5;
}
static __global__ void by_value(int *x, int3 v, bool negate)
{
    x[threadIdx.x] = (v.x + v.y * v.z) * (negate ? -1 : 1);
}

// A GPU gets the bytes of `counted`: the copies and the ends that C++ counts are the host's.
struct Counted {
    int v;
    static int copies, ends;
    Counted(int x) : v(x) {}
    Counted(const Counted &other) : v(other.v) { copies++; }
    ~Counted() { ends++; }
};
int Counted::copies, Counted::ends;
__global__ void by_bytes(int *x, Counted counted, int &base)
{
    counted.v += threadIdx.x; // its own
    x[threadIdx.x] = counted.v + base;
}

namespace outer
{
namespace inner
{
template <typename T, int N, bool ADD = (N > 2)> __global__ void scaled(T *x)
{
    x[threadIdx.x] = ADD ? N * 100 : N;
}
} // namespace inner
__global__ void plain(int *x)
{
    x[threadIdx.x] = 9;
}
} // namespace outer

extern "C" __global__ void c_linkage(int *x)
{
    x[threadIdx.x] = 12;
}

struct Runner {
    int *x;
    int threads;
    void run() { set<<<1, threads>>>(x, 13); }
    template <typename T> void run_as(T value) { deduced<T><<<1, threads>>>(x, value); }
};

static int *d;

static int first()
{
    int value = -1;
    OK(cudaMemcpy(&value, d, sizeof value, cudaMemcpyDeviceToHost));
    return value;
}

int main()
{
    OK(cudaMalloc(&d, 1024 * sizeof(int)));
    OK(cudaMemset(d, 0, 1024 * sizeof(int)));

    set<<<1, 32>>>(d, 1);
    EXPECT(first() == 1);
    set<<<dim3(2, 1), dim3(16, 1, 1), 0>>>(d, 2);
    EXPECT(first() == 2);
    outer::inner::scaled<int, 3><<<1, 32>>>(d);
    EXPECT(first() == 300);
    outer::inner::scaled<int, (2 > 1) ? 2 : 7><<<1, 32>>>(d);
    EXPECT(first() == 2);
    ::outer::plain<<<1, 32>>>(d);
    EXPECT(first() == 9);
    {
        using namespace outer;
        plain<<<1, 32, 0, 0>>>(d);
    }
    LAUNCH(set, BLOCKS, (1 > 0 ? 32 : 1), d, 4);
    EXPECT(first() == 4);
    overloaded<<<1, 32>>>(d, 5);
    EXPECT(first() == 5);
    overloaded<<<1, 32>>>(d, 0.5f);
    EXPECT(first() == 5);
    deduced<<<1, 32>>>(d, 6);
    EXPECT(first() == 6);
    with_default<<<1, 32>>>(d, 7);
    EXPECT(first() == 7);
    bounded<<<1, 32>>>(d);
    EXPECT(first() == 5);
    by_value<<<1, 32>>>(d, make_int3(1, 2, 3), true);
    EXPECT(first() == -7);
    c_linkage<<<1, 32>>>(d);
    EXPECT(first() == 12);
    Runner runner = {d, 32};
    runner.run();
    EXPECT(first() == 13);
    runner.run_as(14);
    EXPECT(first() == 14);

    void (*pointer)(int *, int) = set;
    pointer<<<1, 32>>>(d, 15);
    EXPECT(first() == 15);
    void (*table[2])(int *) = {add_one, outer::plain};
    for (int i = 0; i < 2; i++)
        table[i]<<<1, 32>>>(d);
    EXPECT(first() == 9);
    launch_add_one(d, 32);
    EXPECT(first() == 10);

    int n = 20, calls = 0;
    // clang-format off
    set<<<(n + 7) / 8, n < 30 ? 8 : 16>>>(d + 0, ++calls); // arguments are evaluated once, not once a thread
    // clang-format on
    EXPECT(calls == 1 && first() == 1);
    if (n > 3)
        set<<<1, 32>>>(d, 16);
    else
        set<<<1, 32>>>(d, 17);
    EXPECT(first() == 16);

    int value = 18, *x = d;
    void *arguments[] = {&x, &value};
    OK(cudaLaunchKernel((const void *)set, dim3(1), dim3(32), arguments, 0, 0));
    EXPECT(first() == 18);

    int *base;
    OK(cudaMallocManaged(&base, sizeof *base));
    *base = 100;
    {
        Counted counted(7);
        by_bytes<<<1, 32>>>(d, counted, *base);
    }
    int copies = Counted::copies;
    EXPECT(first() == 107 && copies < 32 && Counted::ends == copies + 1);
    Counted again(8);
    void *bytes[] = {&x, &again, &base};
    OK(cudaLaunchKernel((const void *)by_bytes, dim3(1), dim3(32), bytes, 0, 0));
    OK(cudaMemcpy(&value, d + 31, sizeof value, cudaMemcpyDeviceToHost));
    EXPECT(value == 139 && Counted::copies == copies);
    value = 18;
    OK(cudaFree(base));
    set<<<1, 32>>>(d, 18);

    // Not launches.
    const char *text = "set<<<1, 32>>>(d, 99)",
               *raw = R"(set<<<1, 32>>>(d, "99"))"; // set<<<1, 32>>>(d, 99);
    /* set<<<1, 32>>>(d, 99); */
    printf("%s %s %c\n", text, raw, '<');
    EXPECT((1 << 3 << 1) == 16 && first() == 18);

    set<<<1, 0>>>(d, 1);
    FAILS(cudaErrorInvalidValue, cudaPeekAtLastError());
    OK(cudaFree(d));
    return finish();
}
