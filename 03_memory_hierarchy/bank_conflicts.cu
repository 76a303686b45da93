// bank_conflicts: shared memory has 32 banks, four bytes wide, side by side. Lanes that ask one
// bank for different words wait in line; lanes that ask for the same word are served together.
//
// Each warp reads columns of a tile in shared memory: lane r reads the word r * pitch + column. The
// pitch of the tile alone decides which banks the 32 lanes meet.
//
// Predict before you run it: a column of a 32x32 tile has pitch 32. How many lanes meet in a bank?
// Now add one unused word to each row: pitch 33. How many meet then? And with pitch 0?
//
// usage: bank_conflicts [--rounds N] [--block threads]
// sanitizer: --rounds 2
#include "../common/lesson.h"

enum {
    BANKS = 32,
    WARP_SIZE = 32,
    MAX_PITCH = 33,
    COLUMNS = 32, // columns a warp reads in one round: unrolled, so that many loads are under way
    TILE_WORDS = (WARP_SIZE - 1) * MAX_PITCH + COLUMNS
};

// Every thread sums `rounds` times the same COLUMNS words.
__global__ void read_columns(int pitch, int rounds, unsigned *sums)
{
    // volatile: read it each time. Without it the compiler reads once and multiplies by `rounds`.
    __shared__ volatile unsigned tile[TILE_WORDS];
    for (int i = threadIdx.x; i < TILE_WORDS; i += blockDim.x)
        tile[i] = i * i;
    __syncthreads(); // the words that other threads wrote are read below

    int lane = threadIdx.x % WARP_SIZE;
    const volatile unsigned *row = tile + lane * pitch;
    unsigned sum = 0;
    for (int r = 0; r < rounds; r++) {
#pragma unroll
        for (int column = 0; column < COLUMNS; column++)
            sum += row[column];
    }
    sums[(size_t)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// How many steps the hardware needs for one column: in the fullest bank, the number of different
// words that the lanes ask for.
static int conflict_degree(int pitch)
{
    int worst = 0;
    for (int bank = 0; bank < BANKS; bank++) {
        int words = 0;
        for (int lane = 0; lane < WARP_SIZE; lane++) {
            int word = lane * pitch, seen = 0;
            for (int other = 0; other < lane; other++)
                seen |= other * pitch == word;
            words += word % BANKS == bank && !seen;
        }
        worst = words > worst ? words : worst;
    }
    return worst;
}

static int check_sums(const char *name, const unsigned *h_sums, size_t count, int block, int pitch,
                      int rounds)
{
    struct verifier v = verify_begin(name, 0, 0);
    unsigned expected[WARP_SIZE];
    for (int lane = 0; lane < WARP_SIZE; lane++) {
        expected[lane] = 0;
        for (unsigned column = 0; column < COLUMNS; column++) {
            unsigned word = (unsigned)(lane * pitch) + column;
            expected[lane] += (unsigned)rounds * word * word; // modulo 2^32 on both sides: exact
        }
    }
    for (size_t i = 0; i < count; i++)
        verify_value(&v, i, h_sums[i], expected[i % (size_t)block % WARP_SIZE]);
    return verify_end(&v);
}

struct pitch_case {
    int pitch;
    const char *name;
};

int main(int argc, char **argv)
{
    const struct pitch_case cases[] = {
        {1, "pitch 1: a row, no conflict"},
        {0, "pitch 0: one word, broadcast"},
        {2, "pitch 2"},
        {4, "pitch 4"},
        {8, "pitch 8"},
        {16, "pitch 16"},
        {32, "pitch 32: column of 32x32"},
        {33, "pitch 33: column, padded"},
    };
    enum { CASES = 8, FREE = 0, FULL = 6, PADDED = 7 };
    int rounds = (int)default_size(512, 8), block = 1024;
    const struct option_spec options[] = {
        OPTION_INT("rounds", &rounds, 1, 1 << 20, "times that each column is read"),
        OPTION_INT("block", &block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/bank_conflicts",
                 "lanes that meet in a bank of shared memory wait for each other", options);

    // As many blocks as an SM holds: enough warps to keep the banks busy.
    int per_sm = device_attribute(cudaDevAttrMaxThreadsPerMultiProcessor) / block;
    int slots = device_attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
    per_sm = per_sm < 1 ? 1 : per_sm > slots ? slots : per_sm;
    unsigned grid = (unsigned)(device_facts.sm_count * per_sm);
    size_t count = (size_t)grid * block;
    unsigned *d_sums, *h_sums = (unsigned *)host_malloc(count * sizeof(unsigned));
    require_device_memory(count, sizeof(unsigned), "--block");
    CUDA_CHECK(cudaMalloc(&d_sums, count * sizeof(unsigned)));

    // The limit: every bank hands out its four bytes in every clock of every SM.
    double limit_gbs = DEVICE_IS_CPU ? 0
                                     : BANKS * sizeof(unsigned) * 1e3 * device_facts.sm_count *
                                           device_attribute(cudaDevAttrClockRate) / 1e9;
    double bytes = (double)count * rounds * COLUMNS * sizeof(unsigned);
    double ms[CASES];
    if (DEVICE_IS_CPU)
        report_table("read from shared memory", "way", NULL);
    else
        report_table("read from shared memory", "way", "x free", NULL);
    for (int i = 0; i < CASES; i++) {
        struct timing t;
        POISON_DEVICE(d_sums, count * sizeof(unsigned));
        MEASURE_GPU (t, common_options.reps) {
            read_columns<<<grid, block>>>(cases[i].pitch, rounds, d_sums);
            CUDA_CHECK_LAUNCH();
        }
        CUDA_CHECK(cudaMemcpy(h_sums, d_sums, count * sizeof(unsigned), cudaMemcpyDeviceToHost));
        ms[i] = t.median_ms;
        report_extra(conflict_degree(cases[i].pitch));
        report_extra(ms[i] / ms[FREE]);
        report_rate(cases[i].name, t, bytes, "bytes", "GB/s", 1e9, limit_gbs,
                    check_sums(cases[i].name, h_sums, count, block, cases[i].pitch, rounds));
    }
    if (DEVICE_IS_CPU) {
        printf("\nA CPU has no banks: the degree of conflict (way) is computed, and the times say\n"
               "nothing about it.\n");
    } else {
        printf(
            "\nA column of the 32x32 tile takes %.1f times as long as a row; one word of padding "
            "a row\nbrings it down to %.2f times.\n",
            ms[FULL] / ms[FREE], ms[PADDED] / ms[FREE]);
        report_number("conflict_factor_32_way", ms[FULL] / ms[FREE]);
        report_number("padded_over_free", ms[PADDED] / ms[FREE]);
    }
    CUDA_CHECK(cudaFree(d_sums));
    free(h_sums);
    return lesson_end();
}
