// coalescing: a warp's 32 loads become one request, and the request fetches whole 32-byte sectors.
// The same copy of the same bytes, with the lanes of a warp ever further apart; then the same thing
// in the form in which it is met in practice: an array of structures.
//
// Predict before you run it: with stride 8 each lane's float lies in a sector of its own. How many
// sectors does a warp touch then, how many with stride 64, and what is left of the bandwidth?
//
// usage: coalescing [--n floats] [--particles N] [--block threads]
// sanitizer: --n 64k --particles 4k
#include "../common/lesson.h"

enum { SECTOR_BYTES = 32, WARP_SIZE = 32 };

// Lane after lane `stride` floats apart. blockIdx.y counts through the `stride` floats between two
// neighbours, so that every float is copied once, whatever the stride: the same useful work.
__global__ void copy_strided(size_t n, size_t stride, size_t offset, const float *x, float *y)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    size_t k = i * stride + blockIdx.y;
    if (k < n)
        y[offset + k] = x[offset + k];
}

struct particle {
    float x, y, z, vx, vy, vz, mass, charge; // 32 bytes: one sector each
};

__global__ void move_structures(size_t n, float dt, struct particle *p)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        p[i].x += p[i].vx * dt; // needs 8 of the 32 bytes, and writes 4: the sector moves twice
}

__global__ void move_arrays(size_t n, float dt, float *x, const float *vx)
{
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        x[i] += vx[i] * dt;
}

// The different sectors that the first full warp touches: what the hardware has to fetch.
static int sectors_of_a_warp(size_t stride, size_t offset)
{
    int sectors = 0;
    size_t last = (size_t)-1;
    for (size_t lane = 0; lane < WARP_SIZE; lane++) {
        size_t sector = (offset + lane * stride) * sizeof(float) / SECTOR_BYTES;
        sectors += sector != last; // addresses rise with the lane: comparing neighbours is enough
        last = sector;
    }
    return sectors;
}

static void begin_table(const char *title)
{
    if (DEVICE_IS_CPU) // moved: in whole sectors, which a CPU has not
        report_table(title, "sectors", NULL);
    else
        report_table(title, "sectors", "moved GB/s", NULL);
}

// useful: bytes that the program wants, `needed` full sectors a warp; sectors: those that move.
static void add_row(const char *name, struct timing t, double useful, int needed, int sectors,
                    int right)
{
    report_extra(sectors);
    report_extra(round(useful / (t.median_ms * 1e6) * sectors / needed));
    report_bandwidth(name, t, useful, right);
}

static struct {
    size_t n, room; // floats copied; floats in each buffer (the largest offset more)
    int block;
    const float *h_x, *d_x;
    float *h_y, *d_y;
} copy;

// One row: checks that exactly the n floats from `offset` on arrive, then times the copy.
static double show_copy(size_t stride, size_t offset)
{
    size_t lanes = (copy.n + stride - 1) / stride; // threads of one blockIdx.y
    dim3 grid((unsigned)((lanes + copy.block - 1) / copy.block), (unsigned)stride);
    size_t bytes = copy.n * sizeof(float);
    POISON_DEVICE(copy.d_y, copy.room * sizeof(float));
    struct timing t;
    MEASURE_GPU (t, common_options.reps) {
        copy_strided<<<grid, copy.block>>>(copy.n, stride, offset, copy.d_x, copy.d_y);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpy(copy.h_y, copy.d_y, copy.room * sizeof(float), cudaMemcpyDeviceToHost));
    int right = memcmp(copy.h_y + offset, copy.h_x + offset, bytes) == 0;
    for (size_t i = 0; i < copy.room - copy.n; i++) { // no float outside may be written
        size_t outside = i < offset ? i : i + copy.n;
        right &= copy.h_y[outside] != copy.h_y[outside]; // still poison: NaN
    }
    right = check_that(right, "copy with stride %zu, offset %zu: wrong values", stride, offset);
    char name[64];
    snprintf(name, sizeof(name), "stride %zu, offset %zu", stride, offset);
    add_row(name, t, 2.0 * (double)bytes, 4, sectors_of_a_warp(stride, offset), right);
    return t.median_ms;
}

static int check_moved(const char *what, size_t n, const float *h, size_t pitch, int launches)
{
    struct verifier v = verify_begin(what, 1e-6, 1e-6);
    for (size_t i = 0; i < n; i++) // start: x = i % 1000, vx = i % 7 - 3; dt = 1/4: exact in float
        verify_value(&v, i, h[i * pitch],
                     (double)(i % 1000) + launches * 0.25 * ((int)(i % 7) - 3));
    return verify_end(&v);
}

static double show_structures(size_t n, int block)
{
    unsigned grid = (unsigned)((n + block - 1) / block);
    int launches = common_options.reps + 1; // one to warm up
    struct particle *d_p, *h_p = (struct particle *)host_malloc(n * sizeof(struct particle));
    float *d_x, *d_vx, *h_x = (float *)host_malloc(n * sizeof(float));
    float *h_vx = (float *)host_malloc(n * sizeof(float));
    CUDA_CHECK(cudaMalloc(&d_p, n * sizeof(struct particle)));
    CUDA_CHECK(cudaMalloc(&d_x, n * sizeof(float)));
    CUDA_CHECK(cudaMalloc(&d_vx, n * sizeof(float)));
    for (size_t i = 0; i < n; i++) {
        struct particle p = {(float)(i % 1000), 0, 0, (float)(i % 7) - 3, 0, 0, 1, 1};
        h_p[i] = p;
        h_x[i] = p.x;
        h_vx[i] = p.vx;
    }
    CUDA_CHECK(cudaMemcpy(d_p, h_p, n * sizeof(struct particle), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_x, h_x, n * sizeof(float), cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy(d_vx, h_vx, n * sizeof(float), cudaMemcpyHostToDevice));
    struct timing structures, arrays;
    MEASURE_GPU (structures, common_options.reps) {
        move_structures<<<grid, block>>>(n, 0.25f, d_p);
        CUDA_CHECK_LAUNCH();
    }
    MEASURE_GPU (arrays, common_options.reps) {
        move_arrays<<<grid, block>>>(n, 0.25f, d_x, d_vx);
        CUDA_CHECK_LAUNCH();
    }
    CUDA_CHECK(cudaMemcpy(h_p, d_p, n * sizeof(struct particle), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(h_x, d_x, n * sizeof(float), cudaMemcpyDeviceToHost));
    double useful = 3.0 * (double)(n * sizeof(float)); // reads x and vx, writes x
    size_t pitch = sizeof(struct particle) / sizeof(float);
    begin_table("x += vx * dt, useful bytes");
    int apart = sectors_of_a_warp(pitch, 0), needed = 3 * sectors_of_a_warp(1, 0);
    add_row("array of structures", structures, useful, needed, 2 * apart, // x and vx share a sector
            check_moved("array of structures", n, &h_p[0].x, pitch, launches));
    add_row("structure of arrays", arrays, useful, needed, needed,
            check_moved("structure of arrays", n, h_x, 1, launches));
    CUDA_CHECK(cudaFree(d_p));
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(d_vx));
    free(h_p);
    free(h_x);
    free(h_vx);
    return structures.median_ms / arrays.median_ms;
}

int main(int argc, char **argv)
{
    size_t n = default_size(1 << 26, 1 << 18), particles = default_size(1 << 24, 1 << 16);
    const size_t strides[] = {1, 2, 4, 8, 16, 32, 64}, offsets[] = {0, 1, 2, 4, 8, 16, 32};
    enum { CASES = 7, MAX_OFFSET = 32 };
    copy.block = 256;
    const struct option_spec options[] = {
        OPTION_SIZE("n", &n, 1, 1 << 30, "floats to copy"),
        OPTION_SIZE("particles", &particles, 1, 1 << 28, "particles to move"),
        OPTION_INT("block", &copy.block, 1, 1024, "threads a block"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/coalescing",
                 "how far apart the lanes of a warp may reach", options);

    copy.n = n;
    copy.room = n + MAX_OFFSET;
    size_t room_bytes = copy.room * sizeof(float);
    require_device_memory(particles, sizeof(struct particle) + 2 * sizeof(float), "--particles");
    require_device_memory(copy.room, 2 * sizeof(float), "--n");
    float *h_x = (float *)host_malloc(room_bytes), *d_x;
    copy.h_y = (float *)host_malloc(room_bytes);
    CUDA_CHECK(cudaMalloc(&d_x, room_bytes));
    CUDA_CHECK(cudaMalloc(&copy.d_y, room_bytes));
    fill_random(h_x, copy.room, 1);
    CUDA_CHECK(cudaMemcpy(d_x, h_x, room_bytes, cudaMemcpyHostToDevice));
    copy.h_x = h_x;
    copy.d_x = d_x;

    double ms[CASES];
    begin_table("stride, useful bytes");
    for (int i = 0; i < CASES; i++)
        ms[i] = show_copy(strides[i], 0);
    begin_table("offset, useful bytes");
    for (int i = 0; i < CASES; i++)
        show_copy(1, offsets[i]);
    CUDA_CHECK(cudaFree(d_x));
    CUDA_CHECK(cudaFree(copy.d_y));
    double ratio = show_structures(particles, copy.block);

    int near = sectors_of_a_warp(1, 0), far = sectors_of_a_warp(32, 0), s32 = 5; // strides[5] is 32
    printf("\nStride 32 touches %d sectors where stride 1 touches %d: ", far, near);
    if (DEVICE_IS_CPU) {
        printf("%d times the traffic on a GPU. The times\nabove are those of a CPU and its caches: "
               "they "
               "show nothing of it.\n",
               far / near);
    } else {
        printf(
            "at best %.1f %% of the bandwidth is left;\nmeasured: %.1f %%. The array of structures "
            "takes %.1f times as long as the structure of arrays.\n",
            100.0 * near / far, 100 * ms[0] / ms[s32], ratio);
        report_number("stride_32_percent_of_stride_1", 100 * ms[0] / ms[s32]);
        report_number("structures_over_arrays", ratio);
    }
    free(h_x);
    free(copy.h_y);
    return lesson_end();
}
