// Cooperative groups: the block, and tiles of up to 32 threads. Groups that span blocks are not on the CPU backend.
#pragma once
#pragma GCC system_header
#include "cuda_runtime.h"

namespace cooperative_groups
{

class thread_block
{
  public:
    static void sync(CUDA_CPU_HERE) { __syncthreads(file, line); }
    static unsigned thread_rank() { return cuda_cpu::linear_index(); }
    static unsigned size() { return cuda_cpu::block.count; }
    static unsigned num_threads() { return size(); }
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

// A group whose size is known at run time: the block or a tile of it.
class thread_group
{
    unsigned size_; // 0: the block
    friend thread_group tiled_partition(const thread_group &, unsigned);

  public:
    thread_group(thread_block) : size_(0) {}
    explicit thread_group(unsigned size) : size_(size) {}
    unsigned size() const { return size_ ? size_ : cuda_cpu::block.count; }
    unsigned thread_rank() const { return cuda_cpu::linear_index() % size(); }
    void sync(CUDA_CPU_HERE) const
    {
        if (!size_) return __syncthreads(file, line);
        unsigned first = (unsigned)cuda_cpu::lane() / size_ * size_;
        __syncwarp((size_ == 32 ? ~0u : (1u << size_) - 1) << first, file, line);
    }
};
inline thread_group tiled_partition(const thread_group &, unsigned size)
{
    return thread_group(size);
}

template <unsigned N, class Parent = void> class thread_block_tile
{
    static_assert(N <= 32 && (N & (N - 1)) == 0,
                  "on the CPU backend a tile has 1, 2, 4, 8, 16 or 32 threads");
    static unsigned mask()
    {
        return (N == 32 ? ~0u : (1u << N) - 1) << ((unsigned)cuda_cpu::lane() / N * N);
    }

  public:
    operator thread_group() const { return thread_group(N); }
    operator thread_block_tile<N>() const { return {}; }
    static void sync(CUDA_CPU_HERE) { __syncwarp(mask(), file, line); }
    static unsigned thread_rank() { return (unsigned)cuda_cpu::lane() % N; }
    static constexpr unsigned size() { return N; }
    static constexpr unsigned num_threads() { return N; }
    static unsigned meta_group_rank() { return cuda_cpu::linear_index() / N; }
    static unsigned meta_group_size() { return (cuda_cpu::block.count + N - 1) / N; }
    template <class T> T shfl(T v, int source, CUDA_CPU_HERE) const
    {
        return __shfl_sync(mask(), v, source, N, file, line);
    }
    template <class T> T shfl_up(T v, unsigned n, CUDA_CPU_HERE) const
    {
        return __shfl_up_sync(mask(), v, n, N, file, line);
    }
    template <class T> T shfl_down(T v, unsigned n, CUDA_CPU_HERE) const
    {
        return __shfl_down_sync(mask(), v, n, N, file, line);
    }
    template <class T> T shfl_xor(T v, int bits, CUDA_CPU_HERE) const
    {
        return __shfl_xor_sync(mask(), v, bits, N, file, line);
    }
    unsigned ballot(int p, CUDA_CPU_HERE) const
    {
        return __ballot_sync(mask(), p, file, line) >> ((unsigned)cuda_cpu::lane() / N * N);
    }
    int any(int p, CUDA_CPU_HERE) const { return __any_sync(mask(), p, file, line); }
    int all(int p, CUDA_CPU_HERE) const { return __all_sync(mask(), p, file, line); }
};
template <unsigned N, class Group> thread_block_tile<N, Group> tiled_partition(const Group &)
{
    return {};
}

template <class Group> void sync(const Group &group, CUDA_CPU_HERE) { group.sync(file, line); }

template <class T> struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <unsigned N, class P, class T, class Op>
T reduce(const thread_block_tile<N, P> &tile, T v, Op op, CUDA_CPU_HERE)
{
    for (int bits = N / 2; bits > 0; bits /= 2) v = op(v, tile.shfl_xor(v, bits, file, line));
    return v;
}

} // namespace cooperative_groups
