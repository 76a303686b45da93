// hello_grid: every thread writes down who it is (block, thread, warp, lane, SM) and draws a number
// that says when its turn came.
//
// Predict before you run it: 6 blocks of 40 threads. How many warps is that, how many of their
// lanes have no thread, and will the blocks get their first turn in the order 0 1 2 3 4 5?
//
// usage: hello_grid [--grid x,y,z] [--block x,y,z] [--rows N] [--threads]
// sanitizer: --grid 3,2 --block 7,9
#include "../common/lesson.h"

struct record {
    unsigned long long turn; // 0 for the thread that drew first
    uint3 block, thread;
    unsigned warp, lane, sm;
};

__global__ void hello(struct record *records, unsigned long long *next_turn)
{
    // The threads of a block are counted with x fastest, then y, then z, and this count is cut
    // into warps of 32: a 16 x 4 block is two warps of two rows each.
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    size_t block = blockIdx.x + (size_t)gridDim.x * (blockIdx.y + (size_t)gridDim.y * blockIdx.z);
    struct record *mine = &records[block * (blockDim.x * blockDim.y * blockDim.z) + thread];

    mine->turn = atomicAdd(next_turn, 1ULL); // one after the other, whoever comes first
    mine->block = blockIdx;
    mine->thread = threadIdx;
    mine->warp = thread / warpSize;
    mine->lane = thread % warpSize;
    mine->sm = sm_id();
}

static size_t volume(dim3 d)
{
    return (size_t)d.x * d.y * d.z;
}

static const char *triple(char text[72], size_t x, size_t y, size_t z)
{
    snprintf(text, 72, "(%zu,%zu,%zu)", x, y, z);
    return text;
}

// A value for the JSON: "launch2_threads".
static int launches;

static void report_launch(const char *key, double value)
{
    char text[64];
    snprintf(text, sizeof(text), "launch%d_%s", launches, key);
    report_number(text, value);
}

static int by_turn(const void *a, const void *b)
{
    unsigned long long x = ((const struct record *)a)->turn, y = ((const struct record *)b)->turn;
    return (x > y) - (x < y);
}

// records[i] is that of thread i % threads in block i / threads; every turn was drawn once.
static void verify_records(const struct record *records, size_t count, dim3 grid, dim3 block)
{
    size_t wrong = 0, first = 0, threads = volume(block);
    unsigned warp_size = (unsigned)device_attribute(cudaDevAttrWarpSize);
    char *drawn = (char *)host_malloc(count);
    memset(drawn, 0, count);
    for (size_t i = 0; i < count; i++) {
        const struct record *r = &records[i];
        size_t t = i % threads, b = i / threads;
        int right = r->thread.x == t % block.x && r->thread.y == t / block.x % block.y &&
                    r->thread.z == t / block.x / block.y && r->block.x == b % grid.x &&
                    r->block.y == b / grid.x % grid.y && r->block.z == b / grid.x / grid.y &&
                    r->warp == t / warp_size && r->lane == t % warp_size && r->turn < count &&
                    !drawn[r->turn];
        if (r->turn < count)
            drawn[r->turn] = 1;
        if (!right && wrong++ == 0)
            first = i;
    }
    free(drawn);
    check_that(wrong == 0, "%zu of %zu records are wrong, the first is that of thread %zu", wrong,
               count, first);
}

// The records in the order of their turns: lane 0 of each warp, or every thread.
static void print_records(const struct record *records, size_t count, dim3 block, int every_thread,
                          size_t rows_wanted)
{
    char b[72], t[72], g[72];
    size_t rows = 0;
    printf("  %6s %12s %12s %12s %5s %5s%s\n", "turn", "blockIdx", "threadIdx", "in the grid",
           "warp", "lane", DEVICE_IS_CPU ? "" : "   SM");
    for (size_t i = 0; i < count; i++) {
        const struct record *r = &records[i];
        if ((r->lane != 0 && !every_thread) || rows++ >= rows_wanted)
            continue;
        triple(b, r->block.x, r->block.y, r->block.z);
        triple(t, r->thread.x, r->thread.y, r->thread.z);
        // What a kernel works with: blockIdx * blockDim + threadIdx, in each dimension.
        triple(g, (size_t)r->block.x * block.x + r->thread.x,
               (size_t)r->block.y * block.y + r->thread.y,
               (size_t)r->block.z * block.z + r->thread.z);
        printf("  %6llu %12s %12s %12s %5u %5u", r->turn, b, t, g, r->warp, r->lane);
        printf(DEVICE_IS_CPU ? "\n" : " %4u\n", r->sm);
    }
    if (rows > rows_wanted)
        printf("  ... and %zu more rows (--rows %zu shows all)\n", rows - rows_wanted, rows);
}

// In which order did the blocks get their first turn, and on how many SMs did they run?
static void print_order(const struct record *records, size_t count, dim3 grid)
{
    enum { BLOCKS_SHOWN = 20 };
    size_t blocks = volume(grid), started = 0, out_of_order = 0, sms = 0;
    char sm_seen[4096] = {0}, *block_seen = (char *)host_malloc(blocks);
    memset(block_seen, 0, blocks);
    printf("  the blocks in the order of their first turn:");
    for (size_t i = 0; i < count; i++) {
        const struct record *r = &records[i];
        size_t b = r->block.x + (size_t)grid.x * (r->block.y + (size_t)grid.y * r->block.z);
        if (r->sm < sizeof(sm_seen) && !sm_seen[r->sm]++)
            sms++;
        if (b >= blocks || block_seen[b]++) // beyond: a wrong record, already reported
            continue;
        out_of_order += b != started;
        if (started++ < BLOCKS_SHOWN)
            printf(" %zu", b);
    }
    printf(blocks > BLOCKS_SHOWN ? " ...\n  " : "\n  ");
    if (!DEVICE_IS_CPU)
        printf("on %zu of %d SMs, ", sms, device_facts.sm_count);
    printf("%s; the next run may differ: CUDA promises no order\n",
           out_of_order ? "not in the order of their numbers" : "in the order of their numbers");
    report_launch("blocks_out_of_order", (double)out_of_order);
    report_launch("sms_used", DEVICE_IS_CPU ? NAN : (double)sms);
    free(block_seen);
}

static void launch_and_show(dim3 grid, dim3 block, int every_thread, size_t rows)
{
    char g[72], b[72];
    size_t count = volume(grid) * volume(block), bytes = count * sizeof(struct record);
    size_t warp_size = (size_t)device_attribute(cudaDevAttrWarpSize);
    size_t warps = (volume(block) + warp_size - 1) / warp_size;
    require_device_memory(volume(grid), volume(block) * sizeof(struct record), "--grid");
    struct record *d_records, *records = (struct record *)host_malloc(bytes);
    unsigned long long *d_next_turn;
    CUDA_CHECK(cudaMalloc(&d_records, bytes));
    CUDA_CHECK(cudaMalloc(&d_next_turn, sizeof(*d_next_turn)));
    POISON_DEVICE(d_records, bytes);
    CUDA_CHECK(cudaMemset(d_next_turn, 0, sizeof(*d_next_turn)));

    hello<<<grid, block>>>(d_records, d_next_turn);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC(); // the launch only queued the kernel; here it has ended
    CUDA_CHECK(cudaMemcpy(records, d_records, bytes, cudaMemcpyDeviceToHost));

    launches++;
    printf("\nhello<<<%s, %s>>>: %zu blocks of %zu threads\n", triple(g, grid.x, grid.y, grid.z),
           triple(b, block.x, block.y, block.z), volume(grid), volume(block));
    printf("  a block is %zu warp%s of %zu: %zu lanes have no thread\n", warps,
           warps == 1 ? "" : "s", warp_size, warps * warp_size - volume(block));
    verify_records(records, count, grid, block);
    qsort(records, count, sizeof(struct record), by_turn);
    print_records(records, count, block, every_thread, rows);
    print_order(records, count, grid);
    report_launch("threads", (double)count);
    report_launch("warps", (double)(warps * volume(grid)));
    CUDA_CHECK(cudaFree(d_records));
    CUDA_CHECK(cudaFree(d_next_turn));
    free(records);
}

// A launch beyond a limit is refused as a whole, and only who asks gets to know.
static void show_refused_launch(dim3 grid, dim3 block, const char *limit)
{
    char g[72], b[72];
    printf("\nthe impossible launch: hello<<<%s, %s>>>\n", triple(g, grid.x, grid.y, grid.z),
           triple(b, block.x, block.y, block.z));
    hello<<<grid, block>>>(NULL, NULL); // null pointers do no harm: no thread will run
    cudaError_t launch = cudaGetLastError();
    cudaError_t wait = cudaDeviceSynchronize();
    printf("  expected: cudaGetLastError() gives error %d %s (%s)\n", (int)launch,
           cudaGetErrorName(launch), cudaGetErrorString(launch));
    printf("  the reason: %s\n", limit);
    printf("  cudaDeviceSynchronize() gives %d %s: who checks only there takes it for a success\n",
           (int)wait, cudaGetErrorName(wait));
    // 1 today; toolkits before 13 may say 9, and so do most books
    check_that(launch == cudaErrorInvalidValue || launch == cudaErrorInvalidConfiguration,
               "a launch beyond a limit gave error %d %s", (int)launch, cudaGetErrorName(launch));
    check_that(wait == cudaSuccess, "the refused launch left error %d behind", (int)wait);
    report_number("refused_with_error", (int)launch);
}

int main(int argc, char **argv)
{
    dim3 grid(6), block(40); // what is not named is 1
    int every_thread = 0;
    size_t rows = 6;
    const struct option_spec options[] = {
        OPTION_DIM3("grid", &grid, "blocks; without --grid and --block: a tour in 1D, 2D, 3D"),
        OPTION_DIM3("block", &block, "threads of a block"),
        OPTION_SIZE("rows", &rows, 0, MAX_ELEMENTS, "rows printed of each launch"),
        OPTION_FLAG("threads", &every_thread, "a row for each thread, not only for each warp"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/hello_grid", "who am I, and when is it my turn?",
                 options);

    char limit[128];
    if (launch_breaks_limit(grid, block, limit, sizeof(limit))) {
        show_refused_launch(grid, block, limit);
        lesson_exit(EXIT_FAILED, "hello_grid: nothing ran: %s", limit);
    }
    launch_and_show(grid, block, every_thread, rows);
    if (grid.x == 6 && volume(grid) == 6 && block.x == 40 && volume(block) == 40) { // the tour
        launch_and_show(dim3(2, 2), dim3(16, 4), every_thread, rows);
        launch_and_show(dim3(2, 1, 2), dim3(4, 4, 4), every_thread, rows);
        block.x = (unsigned)device_attribute(cudaDevAttrMaxThreadsPerBlock) + 1;
        if (launch_breaks_limit(1, block, limit, sizeof(limit)))
            show_refused_launch(1, block, limit);
    }
    return lesson_end();
}
