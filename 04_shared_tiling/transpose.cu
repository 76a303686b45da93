// transpose: out[x][y] = in[y][x]. Nothing is computed, so the speed of a plain copy is the limit. The
// shared tile turns the matrix round inside the SM, so that global memory is read and written in
// whole lines.
//
// Predict before you run it: "tiled" and "padded" differ by one unused float a row of the tile. How
// much does that change?
//
// usage: transpose [--rows N] [--cols N]   (--help)
// sanitizer: --rows 132 --cols 68
#include "../common/cublas.h"
#include "../common/lesson.h"

enum { TILE = 32, THREADS_Y = 8 };    // naive, tiled, padded: 32 x 8 threads, 4 elements each
enum { WIDE = 64, QUADS = WIDE / 4 }; // wide: 64 x 64 elements, 256 threads, 16 each
enum { TALL = 64, BROAD = 128, SHIFT_THREADS = 512, SHIFT_WARPS = SHIFT_THREADS / 32 }; // shifted
enum { SECTOR = 32 / sizeof(float) };
enum { WIDE_THREADS = QUADS * QUADS };          // wide: one 4 x 4 square of elements a thread
enum { MAX_SIDE = 1 << 24, CHECKED = 1 << 24 }; // CHECKED: elements of the result compared at most

// The limit: reads every element once and writes it once, 16 bytes a thread.
__global__ void copy(size_t rows, size_t cols, const float *in, float *out)
{
    size_t n = rows * cols, i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n / 4)
        ((float4 *)out)[i] = ((const float4 *)in)[i];
    if (i < n % 4) // what is left over when n is not divisible by 4
        out[n - 1 - i] = in[n - 1 - i];
}

// Tiles are numbered row by row in a one-dimensional grid: gridDim.y would end at 65535. Their number
// fits into 32 bits, in which a division is cheaper than in 64.
struct corner {
    size_t y, x;
};

static __device__ struct corner tile_corner(size_t cols, unsigned side)
{
    unsigned tiles_x = (unsigned)((cols + side - 1) / side);
    struct corner c = {(size_t)(blockIdx.x / tiles_x) * side,
                       (size_t)(blockIdx.x % tiles_x) * side};
    return c;
}

// Reads along a row, writes down a column: 32 neighbours write to 32 different lines.
__global__ void naive(size_t rows, size_t cols, const float *in, float *out)
{
    struct corner c = tile_corner(cols, TILE);
    size_t x = c.x + threadIdx.x;
    for (size_t y = c.y + threadIdx.y; y < c.y + TILE; y += THREADS_Y)
        if (y < rows && x < cols)
            out[x * rows + y] = in[y * cols + x];
}

// Both sides along rows; the tile is turned by reading it down a column. In a tile of 32 floats a row
// a column lies in one single bank: 32 lanes wait for each other.
__global__ void tiled(size_t rows, size_t cols, const float *in, float *out)
{
    __shared__ float tile[TILE][TILE];
    struct corner c = tile_corner(cols, TILE);
    int tx = threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += THREADS_Y)
        if (c.y + i < rows && c.x + tx < cols)
            tile[i][tx] = in[(c.y + i) * cols + c.x + tx];
    __syncthreads(); // the column below was written by other threads
    for (int i = threadIdx.y; i < TILE; i += THREADS_Y)
        if (c.x + i < cols && c.y + tx < rows)
            out[(c.x + i) * rows + c.y + tx] = tile[tx][i];
}

// One float more a row moves each row one bank on: a column now lies in 32 banks.
__global__ void padded(size_t rows, size_t cols, const float *in, float *out)
{
    __shared__ float tile[TILE][TILE + 1];
    struct corner c = tile_corner(cols, TILE);
    int tx = threadIdx.x;
    for (int i = threadIdx.y; i < TILE; i += THREADS_Y)
        if (c.y + i < rows && c.x + tx < cols)
            tile[i][tx] = in[(c.y + i) * cols + c.x + tx];
    __syncthreads(); // the column below was written by other threads
    for (int i = threadIdx.y; i < TILE; i += THREADS_Y)
        if (c.x + i < cols && c.y + tx < rows)
            out[(c.x + i) * rows + c.y + tx] = tile[tx][i];
}

// The same numbered column by column: blocks that run together write to neighbouring pieces of the
// same rows of the output.
static __device__ struct corner column_corner(size_t rows, unsigned height, unsigned width)
{
    unsigned tiles_y = (unsigned)((rows + height - 1) / height);
    struct corner c = {(size_t)(blockIdx.x % tiles_y) * height,
                       (size_t)(blockIdx.x / tiles_y) * width};
    return c;
}

// Memory moves in sectors of 32 bytes. When `rows` is not divisible by 8, the rows of the output begin
// in the middle of one, and so does each piece that a tile writes: two tiles write parts of the same
// sector. Here a tile holds 8 rows more than it writes, and each row of the output takes that part of
// it that begins with a sector. INSIDE: the tile has no edge in it, and nothing is asked about edges.
template <bool INSIDE>
static __device__ void shift_tile(size_t rows, size_t cols, const float *in, float *out,
                                  long long y0, size_t x0, float tile[][BROAD + 1])
{
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    long long end = (long long)rows;
    const float *from = in + (y0 + warp) * (long long)cols + x0 + lane; // steps instead of products
#pragma unroll
    for (int i = 0; i < TALL + SECTOR; i += SHIFT_WARPS, from += SHIFT_WARPS * cols)
#pragma unroll
        for (int j = 0; j < BROAD; j += 32) {
            int y = i + warp, x = j + lane;
            if (y < TALL + SECTOR && (INSIDE || (y0 + y >= 0 && y0 + y < end && x0 + x < cols)))
                tile[y][x] = from[j];
        }
    __syncthreads(); // the columns below were written by other threads
    // With y = skip, x * rows + y0 + y begins a sector, for all x of this warp alike: they are
    // SHIFT_WARPS apart, which SECTOR divides.
    int skip = SECTOR - (int)((x0 + warp) * rows % SECTOR);
    float *to = out + (x0 + warp) * rows + y0 + skip + lane;
#pragma unroll
    for (int i = 0; i < BROAD; i += SHIFT_WARPS, to += SHIFT_WARPS * rows)
#pragma unroll
        for (int j = 0; j < TALL; j += 32) {
            int y = skip + j + lane, x = i + warp;
            if (INSIDE || (x0 + x < cols && y0 + y >= 0 && y0 + y < end))
                to[j] = tile[y][x];
        }
}

// For any rows and cols.
__global__ void __launch_bounds__(SHIFT_THREADS)
    shifted(size_t rows, size_t cols, const float *in, float *out)
{
    __shared__ float tile[TALL + SECTOR][BROAD + 1];
    struct corner c = column_corner(rows + SECTOR - 1, TALL, BROAD);
    long long y0 = (long long)c.y - SECTOR; // the first tile begins outside
    if (y0 >= 0 && y0 + TALL + SECTOR <= (long long)rows && c.x + BROAD <= cols)
        shift_tile<true>(rows, cols, in, out, y0, c.x, tile);
    else
        shift_tile<false>(rows, cols, in, out, y0, c.x, tile);
}

// 16 bytes an access on both sides, for rows and cols divisible by 4. A thread loads a square of 4 x 4,
// turns it in its registers, and hands it on through the tile:
//
//     in: 4 rows of 4   a b c d          tile row 4x    : a e i m   <- one float4
//     from four rows    e f g h   --->   tile row 4x + 1: b f j n
//                       i j k l                    ...
//                       m n o p
//
// The squares of 8 threads side by side go to tile rows 4 apart, which start in the same bank.
// Therefore the float4s of a row are permuted, differently for every 4 rows (a swizzle, by XOR).
__global__ void wide(size_t rows, size_t cols, const float *in, float *out)
{
    __shared__ float4 tile[WIDE][QUADS]; // row: x in the input; float4: four y
    struct corner c = column_corner(rows, WIDE, WIDE);
    int ty = threadIdx.x / QUADS, tx = threadIdx.x % QUADS;
    if (c.y + ty * 4 < rows && c.x + tx * 4 < cols) {
        const float *from = in + (c.y + ty * 4) * cols + c.x + tx * 4;
        float4 r0 = *(const float4 *)from, r1 = *(const float4 *)(from + cols);
        float4 r2 = *(const float4 *)(from + 2 * cols), r3 = *(const float4 *)(from + 3 * cols);
        tile[tx * 4 + 0][ty ^ tx] = make_float4(r0.x, r1.x, r2.x, r3.x);
        tile[tx * 4 + 1][ty ^ tx] = make_float4(r0.y, r1.y, r2.y, r3.y);
        tile[tx * 4 + 2][ty ^ tx] = make_float4(r0.z, r1.z, r2.z, r3.z);
        tile[tx * 4 + 3][ty ^ tx] = make_float4(r0.w, r1.w, r2.w, r3.w);
    }
    __syncthreads(); // the rows below were written by other threads
#pragma unroll
    for (int i = 0; i < WIDE; i += WIDE_THREADS / QUADS) {
        int x = ty + i;
        if (c.x + x < cols && c.y + tx * 4 < rows)
            *(float4 *)(out + (c.x + x) * rows + c.y + tx * 4) = tile[x][tx ^ (x / 4)];
    }
}

enum { STEPS = 6 };
struct step {
    const char *name;
    void (*run)(size_t rows, size_t cols, const float *in, float *out);
    unsigned grid;
    dim3 block;
};

// Element i of the input: pseudo-random, and computed again wherever it is needed.
static float value_at(size_t i)
{
    return (float)((i * 0x9E3779B97F4A7C15ULL) >> 40); // 24 bits: exact as float
}

// Compares whole rows of `got`, evenly spread when there are too many. The result must be exact.
static int verify_rows(const char *name, size_t rows, size_t cols, const float *d_got, int turned)
{
    size_t got_rows = turned ? cols : rows, got_cols = turned ? rows : cols;
    size_t wanted = CHECKED / got_cols > 2 ? CHECKED / got_cols : 2;
    size_t count = got_rows < wanted ? got_rows : wanted;
    float *row = (float *)host_malloc(got_cols * sizeof(float));
    struct verifier v = verify_begin(name, 0, 0);
    for (size_t i = 0; i < count; i++) {
        size_t y = count == got_rows ? i : i * (got_rows - 1) / (count - 1);
        CUDA_CHECK(cudaMemcpy(row, d_got + y * got_cols, got_cols * sizeof(float),
                              cudaMemcpyDeviceToHost));
        for (size_t x = 0; x < got_cols; x++)
            verify_value(&v, y * got_cols + x, row[x],
                         value_at(turned ? x * cols + y : y * cols + x));
    }
    free(row);
    return verify_end(&v);
}

static unsigned tiles_of(size_t rows, size_t cols, size_t height, size_t width)
{
    return (unsigned)(((rows + height - 1) / height) * ((cols + width - 1) / width));
}

int main(int argc, char **argv)
{
    size_t rows = default_size(8192, 512), cols = default_size(8192, 512);
    const struct option_spec options[] = {
        OPTION_SIZE("rows", &rows, 0, MAX_SIDE, "rows of the input"),
        OPTION_SIZE("cols", &cols, 0, MAX_SIDE, "columns of the input"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "04_shared_tiling/transpose",
                 "a matrix turned round, at the speed of a copy", options);
    size_t n = rows * cols, bytes = n * sizeof(float);
    if (n == 0) {
        printf("the matrix has no elements: nothing to do\n");
        return lesson_end();
    }
    require_device_memory(n, 2 * sizeof(float), "--rows or --cols, rows x cols =");
    float *h_in = (float *)host_malloc(bytes), *d_in, *d_out;
    for (size_t i = 0; i < n; i++)
        h_in[i] = value_at(i);
    CUDA_CHECK(cudaMalloc(&d_in, bytes));
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMemcpy(d_in, h_in, bytes, cudaMemcpyHostToDevice));
    free(h_in);

    const dim3 small_block(TILE, THREADS_Y), wide_block(WIDE_THREADS);
    const unsigned small_tiles = tiles_of(rows, cols, TILE, TILE);
    const unsigned wide_tiles = tiles_of(rows, cols, WIDE, WIDE);
    const unsigned shift_tiles = tiles_of(rows + SECTOR - 1, cols, TALL, BROAD);
    const int fours = rows % 4 == 0 && cols % 4 == 0;
    const struct step steps[STEPS] = {
        {"copy (the limit)", copy, (unsigned)((n / 4 + WIDE_THREADS) / WIDE_THREADS), wide_block},
        {"naive", naive, small_tiles, small_block},
        {"tiled 32x32", tiled, small_tiles, small_block},
        {"padded 32x33", padded, small_tiles, small_block},
        {"shifted to whole sectors", shifted, shift_tiles, dim3(SHIFT_THREADS)},
        {"wide 64x64, 16 bytes both ways", wide, wide_tiles, wide_block},
    };
    struct timing times[STEPS];
    printf("%zu rows x %zu columns, %.1f MB read and as much written\n", rows, cols, bytes / 1e6);
    report_table("kernel", DEVICE_IS_CPU ? NULL : "% copy", NULL);
    for (int i = 0; i < STEPS; i++) {
        if (steps[i].run == wide && !fours) {
            printf("  %-32s needs rows and cols divisible by 4\n", steps[i].name);
            continue;
        }
        POISON_DEVICE(d_out, bytes);
        steps[i].run<<<steps[i].grid, steps[i].block>>>(rows, cols, d_in, d_out);
        CUDA_CHECK_LAUNCH();
        int right = verify_rows(steps[i].name, rows, cols, d_out, i > 0);
        POISON_DEVICE(d_out, bytes);
        MEASURE_GPU (times[i], common_options.reps) {
            steps[i].run<<<steps[i].grid, steps[i].block>>>(rows, cols, d_in, d_out);
            CUDA_CHECK_LAUNCH();
        }
        right &= verify_rows(steps[i].name, rows, cols, d_out, i > 0);
        report_extra(100 * times[0].median_ms / times[i].median_ms);
        report_bandwidth(steps[i].name, times[i], 2.0 * bytes, right);
    }
    struct cublas_library blas;
    cublas_load(&blas);
    if (blas.handle) {
        struct timing t;
        const float one = 1, zero = 0;
        int r = (int)rows, c = (int)cols; // column-major: our rows are its columns
        POISON_DEVICE(d_out, bytes);
        MEASURE_GPU (t, common_options.reps)
            CUBLAS_CHECK(
                blas.sgeam(blas.handle, 1, 0, r, c, &one, d_in, c, &zero, d_out, r, d_out, r));
        report_extra(100 * times[0].median_ms / t.median_ms);
        report_bandwidth("cublasSgeam", t, 2.0 * bytes,
                         verify_rows("cublasSgeam", rows, cols, d_out, 1));
        cublas_unload(&blas);
    } else {
        printf("  %-32s %s\n", "cublasSgeam", blas.why_not);
    }
    if (!DEVICE_IS_CPU)
        printf("one unused float a row made the tile %.2f times faster\n",
               times[2].median_ms / times[3].median_ms);

    CUDA_CHECK(cudaFree(d_in));
    CUDA_CHECK(cudaFree(d_out));
    return lesson_end();
}
