// Cooperative groups: the block, and tiles of up to 32 threads. The grid only has numbers: its blocks
// cannot wait.
#pragma once
#pragma GCC system_header
#include "cuda_runtime.h"

namespace cooperative_groups
{

class thread_group // the block, or a tile of it
{
    unsigned size_ = 0; // of the block

  protected:
    unsigned first_lane() const { return (unsigned)cuda_cpu::lane() / size_ * size_; }
    unsigned mask() const { return (size_ == 32 ? ~0u : (1u << size_) - 1) << first_lane(); }

  public:
    thread_group() = default;
    explicit thread_group(unsigned size) : size_(size) {}
    unsigned size() const { return size_ ? size_ : cuda_cpu::block.count; }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const { return cuda_cpu::linear_index() % size(); }
    void sync(CUDA_CPU_HERE) const
    {
        size_ ? __syncwarp(mask(), file, line) : __syncthreads(file, line);
    }
};

struct thread_block : thread_group {
    static dim3 group_index() { return blockIdx; }
    static dim3 thread_index() { return threadIdx; }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
};
inline thread_block this_thread_block() { return {}; }

struct grid_group {
    static unsigned long long num_blocks() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
    static unsigned long long size() { return num_blocks() * cuda_cpu::block.count; }
    static unsigned long long thread_rank()
    {
        auto block = blockIdx.x + gridDim.x * (blockIdx.y + 1ull * gridDim.y * blockIdx.z);
        return block * cuda_cpu::block.count + cuda_cpu::linear_index();
    }
    template <class T = int> static void sync()
    {
        static_assert(sizeof(T) == 0, "sync() of this_grid() is not on the CPU backend");
    }
};
inline grid_group this_grid() { return {}; }

#define CUDA_CPU_SHUFFLE(name)                                                                     \
    template <class T> T name(T value, int lane, CUDA_CPU_HERE) const                              \
    {                                                                                              \
        return __##name##_sync(mask(), value, lane, Size, file, line);                             \
    }

template <unsigned Size, class Parent = void> struct thread_block_tile : thread_group {
    static_assert(Size <= 32 && (Size & (Size - 1)) == 0,
                  "on the CPU backend a tile has 1, 2, 4, 8, 16 or 32 threads");
    thread_block_tile() : thread_group(Size) {}
    operator thread_block_tile<Size>() const { return {}; }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned meta_group_rank() { return cuda_cpu::linear_index() / Size; }
    static unsigned meta_group_size() { return (cuda_cpu::block.count + Size - 1) / Size; }
    CUDA_CPU_SHUFFLE(shfl)
    CUDA_CPU_SHUFFLE(shfl_up)
    CUDA_CPU_SHUFFLE(shfl_down)
    CUDA_CPU_SHUFFLE(shfl_xor)
    int any(int p, CUDA_CPU_HERE) const { return __any_sync(mask(), p, file, line); }
    int all(int p, CUDA_CPU_HERE) const { return __all_sync(mask(), p, file, line); }
    unsigned ballot(int p, CUDA_CPU_HERE) const
    {
        return __ballot_sync(mask(), p, file, line) >> first_lane();
    }
};

template <unsigned Size, class Group> thread_block_tile<Size, Group> tiled_partition(const Group &)
{
    return {};
}
inline thread_group tiled_partition(const thread_group &, unsigned size)
{
    return thread_group(size);
}
inline void sync(const thread_group &group, CUDA_CPU_HERE) { group.sync(file, line); }

template <class T> struct plus {
    T operator()(T a, T b) const { return a + b; }
};
template <class T> struct less {
    T operator()(T a, T b) const { return b < a ? b : a; }
};
template <class T> struct greater {
    T operator()(T a, T b) const { return a < b ? b : a; }
};
template <unsigned Size, class Parent, class T, class Op>
T reduce(const thread_block_tile<Size, Parent> &tile, T value, Op op, CUDA_CPU_HERE)
{
    for (int bits = Size / 2; bits > 0; bits /= 2)
        value = op(value, tile.shfl_xor(value, bits, file, line));
    return value;
}

} // namespace cooperative_groups
