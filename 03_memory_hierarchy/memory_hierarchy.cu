// memory_hierarchy: the table of every CUDA course, filled in by measuring the card it runs on.
//
// Latency (chains.h): a chain of dependent loads, each of which fetches the address of the next;
// one thread, so that nothing hides the wait. Bandwidth (streams.h): the whole GPU reads at once.
//
// Predict before you run it: a multiply-add takes 4 cycles. How many does a thread wait for a word
// from shared memory, from the L2 cache, from the device's memory, from the host's memory?
//
// usage: memory_hierarchy [--sweep] [--window bytes] [--steps N] [--n floats]
// sanitizer: --n 64k --steps 64
#include "../common/lesson.h"
#include "chains.h"
#include "streams.h"

enum { PASSES = DEVICE_IS_CPU ? 1 : 4, BANK_BYTES = 32 * 4 }; // 32 banks, 4 bytes a clock each
enum { L1_CHAIN = 16 << 10, WARM_UP = 1024 };

static int steps, reps;          // loads of a chain that are timed; repetitions
static double clock_ghz;         // of an SM, measured
static size_t window = 2u << 20; // bytes within which a chain in device memory jumps about

struct figures {
    double cycles, gbs, limit; // latency; bandwidth and its limit (0: unknown)
};

// Cycles that the clock counts in a kernel of known length, by the time that the kernel takes.
static double measure_clock(void)
{
    struct timing t;
    int length = (int)default_size(1 << 20, 1 << 10);
    chase_start(0);
    MEASURE_GPU (t, 3) {
        chase_register<<<1, 1>>>(0, length, 1, 1, d_state);
        CUDA_CHECK_LAUNCH();
    }
    return (double)chase_result().cycles / (t.min_ms * 1e6);
}

static struct figures measure_register(void)
{
    struct figures f = {0, 0, device_facts.fp32_limit_gflops * 2 * sizeof(float)};
    struct timing t;
    int passes = (int)default_size(16384, 256);
    unsigned sum = 0;
    MEASURE_CHASE(f.cycles, steps)
    {
        chase_start(0);
        chase_register<<<1, 1>>>(0, steps, 1, 1, d_state); // 0 * 1 + 1 and so on: counts the steps
    }
    check_chain("register", (unsigned long long)steps);
    MEASURE_GPU (t, reps) {
        stream_register<<<stream.grid, STREAM_BLOCK>>>(passes, 1, 1, stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    for (unsigned i = 0; i < STREAM_BLOCK; i++) // four values: i, i + 1 ... and 1 more in each pass
        sum += 4 * i + 6 + 4 * (unsigned)passes;
    double bytes = 4.0 * passes * (double)stream.threads * 4 * sizeof(float); // 3 read, 1 written
    f.gbs = stream_rate("register", t, bytes, stream.threads, sum * stream.grid);
    return f;
}

// The kernels that read the same 16 KiB again and again.
static double table_rate(const char *what, struct timing t)
{
    double bytes = (double)stream.threads * PASSES * TABLE_QUADS * sizeof(uint4);
    unsigned table_sum = sum_words(stream.h_data, TABLE_QUADS * 4);
    return stream_rate(what, t, bytes, stream.threads,
                       (unsigned)stream.threads * PASSES * table_sum);
}

static struct figures measure_shared(const unsigned *d_chain, const size_t *next)
{
    struct figures f = {0, 0, BANK_BYTES * clock_ghz * device_facts.sm_count};
    struct timing t;
    chase_start(0);
    MEASURE_CHASE(f.cycles, steps)
    chase_shared<<<1, 1>>>(WARM_UP, steps, d_chain, d_state);
    check_chain("shared", walk_ring(next, 0, (size_t)reps * (WARM_UP + steps)) * sizeof(unsigned));
    MEASURE_GPU (t, reps) {
        stream_shared<<<stream.grid, STREAM_BLOCK>>>(PASSES, (const uint4 *)stream.d_data,
                                                     stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs = table_rate("shared", t);
    return f;
}

static struct figures measure_l1(void)
{
    struct walk w = {"L1", L1_CHAIN, window, steps, 1};
    struct figures f = {chase_device(w), 0, 0};
    struct timing t;
    MEASURE_GPU (t, reps) {
        stream_l1<<<stream.grid, STREAM_BLOCK>>>(PASSES, (const uint4 *)stream.d_data,
                                                 stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs = table_rate("L1", t);
    return f;
}

static struct figures measure_local(const unsigned *d_chain, const size_t *next)
{
    struct figures f = {0, 0, 0};
    struct timing t;
    unsigned grid = (unsigned)device_facts.sm_count * LOCAL_BLOCKS_SM;
    size_t threads = (size_t)grid * STREAM_BLOCK;
    int passes = (int)default_size(256, 4);
    chase_start(0);
    MEASURE_CHASE(f.cycles, steps)
    chase_local<<<1, 1>>>(WARM_UP, steps, d_chain, d_state);
    check_chain("local", walk_ring(next, 0, (size_t)reps * (WARM_UP + steps)) * sizeof(unsigned));
    MEASURE_GPU (t, reps) {
        stream_local<<<grid, STREAM_BLOCK>>>(passes, stream.d_data, stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs =
        stream_rate("local", t, (double)threads * passes * LOCAL_WORDS * sizeof(unsigned), threads,
                    (unsigned)threads * passes * sum_words(stream.h_data, LOCAL_WORDS));
    return f;
}

// A ring of steps of 32 words: whichever word a lane starts at, the lanes stay apart (or together).
static struct figures measure_constant(int spread)
{
    struct figures f = {0, 0, 0};
    struct timing t;
    unsigned ring[CHAIN_WORDS];
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        ring[i] = (i + 32) % CHAIN_WORDS * (unsigned)sizeof(unsigned);
    CUDA_CHECK(cudaMemcpyToSymbol(constant_chain, ring, sizeof(ring)));
    chase_start(0);
    MEASURE_CHASE(f.cycles, steps)
    chase_constant<<<1, 32>>>(WARM_UP, steps, spread, d_state);
    check_chain("constant",
                (unsigned long long)reps * (WARM_UP + steps) * 32 % CHAIN_WORDS * sizeof(unsigned));
    MEASURE_GPU (t, reps) {
        stream_constant<<<stream.grid, STREAM_BLOCK>>>(PASSES, spread, stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    double bytes = (double)stream.threads * PASSES * CHAIN_WORDS * sizeof(unsigned);
    f.gbs = stream_rate("constant", t, bytes, stream.threads,
                        (unsigned)stream.threads * PASSES * sum_words(ring, CHAIN_WORDS));
    return f;
}

// A texture object over plain device memory, read by index.
static cudaTextureObject_t linear_texture(void *d_data, size_t bytes, cudaChannelFormatDesc format)
{
    cudaTextureObject_t texture;
    cudaResourceDesc resource;
    cudaTextureDesc description;
    memset(&resource, 0, sizeof(resource));
    memset(&description, 0, sizeof(description));
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = d_data;
    resource.res.linear.sizeInBytes = bytes;
    resource.res.linear.desc = format;
    description.readMode = cudaReadModeElementType;
    CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    return texture;
}

static struct figures measure_texture(int *d_index, const size_t *next)
{
    struct figures f = {0, 0, 0};
    struct timing t;
    cudaTextureObject_t chain =
        linear_texture(d_index, CHAIN_WORDS * sizeof(int), cudaCreateChannelDesc<int>());
    cudaTextureObject_t table =
        linear_texture(stream.d_data, TABLE_QUADS * sizeof(uint4), cudaCreateChannelDesc<uint4>());
    chase_start(0);
    MEASURE_CHASE(f.cycles, steps)
    chase_texture<<<1, 1>>>(WARM_UP, steps, chain, d_state);
    check_chain("texture", walk_ring(next, 0, (size_t)reps * (WARM_UP + steps)));
    MEASURE_GPU (t, reps) {
        stream_texture<<<stream.grid, STREAM_BLOCK>>>(PASSES, table, stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs = table_rate("texture", t);
    CUDA_CHECK(cudaDestroyTextureObject(chain));
    CUDA_CHECK(cudaDestroyTextureObject(table));
    return f;
}

static struct figures measure_l2(size_t l2_bytes)
{
    size_t words = l2_bytes / 4 / sizeof(unsigned) / 4 * 4; // a quarter of the cache
    words = words < stream.words ? words : stream.words;
    int passes = (int)default_size(128, 2);
    struct walk w = {"L2", l2_bytes / 4, window, steps, 0};
    struct figures f = {chase_device(w), 0, 0};
    struct timing t;
    MEASURE_GPU (t, reps) {
        stream_l2<<<stream.grid, STREAM_BLOCK>>>(passes, words / 4, (const uint4 *)stream.d_data,
                                                 stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs = stream_rate("L2", t, (double)passes * words * sizeof(unsigned), stream.threads,
                        passes * sum_words(stream.h_data, words));
    return f;
}

// The same chain, four times as long as the L2 cache; and all the words, once.
static struct figures measure_global(size_t l2_bytes)
{
    struct walk w = {"global", 4 * l2_bytes, window, steps, 0};
    struct figures f = {chase_device(w), 0, device_facts.memory_limit_gbs};
    struct timing t;
    MEASURE_GPU (t, reps) {
        stream_global<<<stream.global_grid, GLOBAL_BLOCK>>>(
            stream.words / 4, (const uint4 *)stream.d_data, stream.d_sums);
        CUDA_CHECK_LAUNCH();
    }
    f.gbs = stream_rate("global", t, (double)stream.words * sizeof(unsigned), stream.global_warps,
                        sum_words(stream.h_data, stream.words));
    return f;
}

// Page-locked memory of the host: a kernel's loads cross the bus one by one, a copy at full width.
static struct figures measure_pinned(size_t bytes)
{
    struct figures f = {0, 0, bus_limit_gbs()};
    struct timing t;
    char *h_pinned;
    void *d_pinned; // the device's address of the host's memory
    struct walk w = {"pinned", bytes, window, steps < 1024 ? steps : 1024, 0};
    CUDA_CHECK(cudaHostAlloc((void **)&h_pinned, bytes, cudaHostAllocMapped));
    CUDA_CHECK(cudaHostGetDevicePointer(&d_pinned, h_pinned, 0));
    f.cycles = chase_memory(w, d_pinned, h_pinned);
    memcpy(h_pinned, stream.h_data, bytes);
    POISON_DEVICE(stream.d_data, bytes);
    MEASURE_GPU (t, reps)
        CUDA_CHECK(cudaMemcpyAsync(stream.d_data, h_pinned, bytes, cudaMemcpyHostToDevice));
    memset(h_pinned, 0, bytes);
    CUDA_CHECK(cudaMemcpy(h_pinned, stream.d_data, bytes, cudaMemcpyDeviceToHost));
    check_that(memcmp(h_pinned, stream.h_data, bytes) == 0, "pinned: the copy differs");
    CUDA_CHECK(cudaFreeHost(h_pinned));
    f.gbs = (double)bytes / (t.median_ms * 1e-3) / 1e9;
    return f;
}

// ---- the table

static void print_row(const char *key, const char *space, const char *chip, const char *seen_by,
                      const char *lifetime, double bytes, const char *of, struct figures f)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    char size[32] = "-", name[64], share[16] = "";
    int unit = 0;
    for (; bytes >= 1024 && unit < 3; unit++)
        bytes /= 1024;
    if (bytes > 0)
        snprintf(size, sizeof(size), "%.4g %s%s", bytes, units[unit], of);
    printf("%-20s %-4s %-12s %-10s %-14s", space, chip, seen_by, lifetime, size);
    if (DEVICE_IS_CPU) {
        printf("\n");
        return;
    }
    if (f.limit > 0)
        snprintf(share, sizeof(share), "%.1f %%", 100 * f.gbs / f.limit);
    printf(" %8.1f %8.1f %9.0f %8s\n", f.cycles, f.cycles / clock_ghz, f.gbs, share);
    if (f.limit > 0 && f.gbs > f.limit)
        printf("    warning: above the limit. The data sits in a cache, or the count is wrong.\n");
    snprintf(name, sizeof(name), "%s_cycles", key);
    report_number(name, f.cycles);
    snprintf(name, sizeof(name), "%s_gbs", key);
    report_number(name, f.gbs);
}

// The staircase: the same load, the chain ever longer. Each step up is a cache that is too small.
static void show_staircase(size_t largest)
{
    if (DEVICE_IS_CPU)
        report_table("a chain of loads through L1", "KiB", NULL);
    else
        report_table("a chain of loads through L1", "KiB", "cycles", "ns", NULL);
    for (size_t quarter = 1024; quarter * 4 <= largest; quarter *= 2)
        for (size_t bytes = quarter * 4; bytes < quarter * 8; bytes += quarter * 2) {
            char name[48];
            snprintf(name, sizeof(name), "%.0f KiB", (double)bytes / 1024);
            struct walk w = {name, bytes, window, steps, 1};
            double cycles = chase_device(w);
            report_extra((double)bytes / 1024);
            report_extra(cycles);
            report_extra(cycles / clock_ghz);
            report_time(name, timing_once(cycles * steps / clock_ghz * 1e-6), CHECK_NONE);
        }
}

int main(int argc, char **argv)
{
    size_t n = default_size(128 << 20, 1 << 20);
    int sweep = 0;
    steps = (int)default_size(8192, 512);
    const struct option_spec options[] = {
        OPTION_FLAG("sweep", &sweep, "print the staircase of the caches as well"),
        OPTION_SIZE("window", &window, CHAIN_LINE, 1 << 30,
                    "bytes within which a chain jumps about"),
        OPTION_INT("steps", &steps, 32, 1 << 20, "loads of a chain that are timed"),
        OPTION_SIZE("n", &n, 1 << 16, 1 << 30, "words to read for the bandwidth of device memory"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/memory_hierarchy",
                 "each memory of this device: who sees it, how large, how far, how fast", options);
    reps = common_options.reps;
    const struct device_facts *d = &device_facts;
    size_t l2 = DEVICE_IS_CPU || !d->l2_bytes ? 1 << 20 : d->l2_bytes;
    n -= n % 4;                                          // read in quads
    require_device_memory(n + l2, sizeof(float), "--n"); // + l2 words: the chain of 4 x L2
    stream_setup(n);
    clock_ghz = DEVICE_IS_CPU ? 1 : measure_clock();
    if (!DEVICE_IS_CPU)
        printf("SM clock while measuring: %.3f GHz; a chain jumps about in windows of %.0f KiB\n",
               clock_ghz, (double)window / 1024);

    size_t next[CHAIN_WORDS];
    unsigned h_offsets[CHAIN_WORDS], *d_offsets;
    int h_index[CHAIN_WORDS], *d_index;
    make_ring(next, CHAIN_WORDS, CHAIN_WORDS);
    for (size_t i = 0; i < CHAIN_WORDS; i++) {
        h_offsets[i] = (unsigned)(next[i] * sizeof(unsigned));
        h_index[i] = (int)next[i];
    }
    CUDA_CHECK(cudaMalloc(&d_offsets, sizeof(h_offsets)));
    CUDA_CHECK(cudaMalloc(&d_index, sizeof(h_index)));
    CUDA_CHECK(cudaMemcpy(d_offsets, h_offsets, sizeof(h_offsets), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_index, h_index, sizeof(h_index), cudaMemcpyHostToDevice));

    printf("\n%-20s %-4s %-12s %-10s %-14s%s\n", "space", "chip", "seen by", "lifetime", "size",
           DEVICE_IS_CPU ? "" : "   cycles       ns      GB/s    limit");
    double registers = 4.0 * device_attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
    double shared = device_attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    double constant = device_attribute(cudaDevAttrTotalConstantMemory);
    double host = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    struct figures fma = measure_register();
    print_row("register", "register", "on", "thread", "thread", registers, " an SM", fma);
    print_row("shared", "shared", "on", "block", "block", shared, " an SM",
              measure_shared(d_offsets, next));
    print_row("l1", "L1 cache", "on", "SM", "cache", 0, "", measure_l1());
    print_row("local", "local, in L1", "off", "thread", "thread", 0, "",
              measure_local(d_offsets, next));
    print_row("constant_broadcast", "constant, broadcast", "off", "grid, read", "program", constant,
              "", measure_constant(0));
    print_row("constant_divergent", "constant, divergent", "off", "grid, read", "program", constant,
              "", measure_constant(1));
    print_row("texture", "texture, in L1", "off", "grid, read", "until free", 0, "",
              measure_texture(d_index, next));
    print_row("l2", "L2 cache", "on", "device", "cache", (double)d->l2_bytes, "", measure_l2(l2));
    struct figures global = measure_global(l2);
    print_row("global", "global", "off", "grid, host", "until free", (double)d->memory_bytes, "",
              global);
    print_row("pinned", "pinned host, bus", "off", "host, grid", "until free", host, "",
              measure_pinned(n * sizeof(unsigned) / 4));
    if (sweep)
        show_staircase(4 * l2);
    if (DEVICE_IS_CPU) {
        printf("\nEvery chain and every sum was checked. Cycles, ns and GB/s would be those of a "
               "CPU and "
               "its\ncaches; they have no meaning in this table and are not printed.\n");
    } else {
        report_number("clock_ghz", clock_ghz);
        report_number("global_percent_of_limit",
                      d->memory_limit_gbs > 0 ? 100 * global.gbs / d->memory_limit_gbs : NAN);
        printf("\nOne word from the device's memory takes as long as %.0f multiply-adds that wait "
               "for each "
               "other.\n",
               global.cycles / fma.cycles);
    }
    CUDA_CHECK(cudaFree(d_offsets));
    CUDA_CHECK(cudaFree(d_index));
    CUDA_CHECK(cudaFree(d_state));
    stream_free();
    return lesson_end();
}
