// grid_mapping: an image cut into tiles, one block a tile, one thread a pixel. The picture shows
// which block owns which pixel; where the image ends inside a tile, part of the block has no work.
//
// Predict before you run it: an image of 56 x 20 pixels, blocks of 16 x 16 threads. How many
// blocks does it take, and how many of their threads find no pixel?
//
// usage: grid_mapping [--width N] [--height N] [--block x,y] [--ppm FILE]
#include "../common/lesson.h"

struct pixel {
    unsigned char red, green, blue;
};

// A colour for each block, darker towards the thread (0,0) of the tile.
static __host__ __device__ struct pixel colour(unsigned block_x, unsigned block_y, unsigned x,
                                               unsigned y, dim3 tile)
{
    unsigned light = 127 + 64 * (x + 1) / tile.x + 64 * (y + 1) / tile.y; // up to 255
    struct pixel p;
    p.red = (unsigned char)(block_x % 2 ? light : light / 3);
    p.green = (unsigned char)(block_y % 2 ? light : light / 3);
    p.blue = (unsigned char)((block_x / 2 + block_y / 2) % 2 ? light : light / 3);
    return p;
}

__global__ void paint(unsigned width, unsigned height, struct pixel *image, unsigned *owner,
                      unsigned long long *idle)
{
    unsigned x = blockIdx.x * blockDim.x + threadIdx.x; // the column: x runs along a row in memory
    unsigned y = blockIdx.y * blockDim.y + threadIdx.y; // the row
    if (x >= width || y >= height) { // beyond the edge of the image: this thread has no pixel
        atomicAdd(idle, 1ULL);
        return;
    }
    size_t i = (size_t)y * width + x; // the image is stored row after row
    image[i] = colour(blockIdx.x, blockIdx.y, threadIdx.x, threadIdx.y, blockDim);
    owner[i] = blockIdx.y * gridDim.x + blockIdx.x;
}

static void verify_image(size_t width, size_t height, dim3 grid, dim3 tile,
                         const struct pixel *image, const unsigned *owner)
{
    struct verifier owners = verify_begin("owner of each pixel", 0, 0);
    size_t wrong = 0;
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++) {
            size_t i = y * width + x, bx = x / tile.x, by = y / tile.y;
            struct pixel want = colour((unsigned)bx, (unsigned)by, (unsigned)(x % tile.x),
                                       (unsigned)(y % tile.y), tile);
            verify_value(&owners, i, owner[i], (double)(by * grid.x + bx));
            wrong += memcmp(&image[i], &want, sizeof(want)) != 0;
        }
    verify_end(&owners);
    check_that(wrong == 0, "%zu pixels have the wrong colour", wrong);
}

// The whole grid of threads: a letter where a thread has a pixel (A is block 0), a dot where not.
static void print_picture(size_t width, size_t height, dim3 grid, dim3 tile, const unsigned *owner)
{
    enum { COLUMNS = 64, LINES = 16 };
    size_t threads_x = (size_t)grid.x * tile.x, threads_y = (size_t)grid.y * tile.y;
    size_t step_x = (threads_x + COLUMNS - 1) / COLUMNS, step_y = (threads_y + LINES - 1) / LINES;
    printf("one character is %zu x %zu threads; a letter is a block (%s), a dot has no pixel\n",
           step_x, step_y, grid.x * grid.y > 26 ? "after Z comes A again" : "A is block 0");
    for (size_t y = 0; y < threads_y; y += step_y) {
        printf("  ");
        for (size_t x = 0; x < threads_x; x += step_x)
            putchar(x < width && y < height ? 'A' + (int)(owner[y * width + x] % 26) : '.');
        printf("\n");
    }
}

static void write_ppm(const char *path, size_t width, size_t height, const struct pixel *image)
{
    static struct output_file file; // static: the exit handler may still need it
    if (!output_open(&file, path))
        lesson_exit(EXIT_FAILED, "--ppm %s: %s", path, strerror(errno));
    fprintf(file.stream, "P6\n%zu %zu\n255\n", width, height);
    fwrite(image, sizeof(struct pixel), width * height, file.stream);
    if (!output_commit(&file))
        lesson_exit(EXIT_FAILED, "--ppm %s: could not be written", path);
    printf("written: %s (%zu x %zu pixels)\n", path, width, height);
}

int main(int argc, char **argv)
{
    int width = 56, height = 20;
    dim3 tile(16, 16);
    const char *ppm = NULL;
    const struct option_spec options[] = {
        OPTION_INT("width", &width, 1, 1 << 20, "pixels in a row"),
        OPTION_INT("height", &height, 1, 1 << 20, "rows"),
        OPTION_DIM3("block", &tile, "threads of a block = pixels of a tile"),
        OPTION_TEXT("ppm", &ppm, "write the picture to this file (PPM, any image viewer)"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "01_hello_grid/grid_mapping", "which block owns which pixel", options);
    char limit[128];
    if (tile.z != 1 || launch_breaks_limit(1, tile, limit, sizeof(limit)))
        lesson_exit(EXIT_BAD_USAGE, "--block: %s", tile.z != 1 ? "an image has no z" : limit);

    // Rounded up: a tile that the image fills only in part needs a block all the same.
    dim3 grid((width + tile.x - 1) / tile.x, (height + tile.y - 1) / tile.y);
    if (launch_breaks_limit(grid, tile, limit, sizeof(limit)))
        lesson_exit(EXIT_BAD_USAGE, "blocks of %u x %u are too small for this image: %s", tile.x,
                    tile.y, limit);

    size_t pixels = (size_t)width * height;
    struct pixel *d_image, *image = (struct pixel *)host_malloc(pixels * sizeof(*image));
    unsigned *d_owner, *owner = (unsigned *)host_malloc(pixels * sizeof(*owner));
    unsigned long long *d_idle, idle;
    require_device_memory(pixels, sizeof(*d_image) + sizeof(*d_owner), "--width x --height");
    CUDA_CHECK(cudaMalloc(&d_image, pixels * sizeof(*d_image)));
    CUDA_CHECK(cudaMalloc(&d_owner, pixels * sizeof(*d_owner)));
    CUDA_CHECK(cudaMalloc(&d_idle, sizeof(*d_idle)));
    POISON_DEVICE(d_image, pixels * sizeof(*d_image));
    POISON_DEVICE(d_owner, pixels * sizeof(*d_owner));
    CUDA_CHECK(cudaMemset(d_idle, 0, sizeof(*d_idle)));

    paint<<<grid, tile>>>(width, height, d_image, d_owner, d_idle);
    CUDA_CHECK_LAUNCH();
    CUDA_CHECK_SYNC();
    CUDA_CHECK(cudaMemcpy(image, d_image, pixels * sizeof(*image), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(owner, d_owner, pixels * sizeof(*owner), cudaMemcpyDeviceToHost));
    CUDA_CHECK(cudaMemcpy(&idle, d_idle, sizeof(idle), cudaMemcpyDeviceToHost));

    verify_image(width, height, grid, tile, image, owner);
    size_t threads = (size_t)grid.x * grid.y * tile.x * tile.y;
    check_that(idle == threads - pixels, "%llu threads found no pixel, %zu should", idle,
               threads - pixels);
    printf("\n%d x %d pixels: %u x %u blocks of %u x %u threads\n", width, height, grid.x, grid.y,
           tile.x, tile.y);
    print_picture(width, height, grid, tile, owner);
    printf("%llu of %zu threads (%.1f %%) have no pixel\n", idle, threads,
           100.0 * (double)idle / (double)threads);
    report_number("blocks", (double)grid.x * grid.y);
    report_number("threads", (double)threads);
    report_number("idle_threads", (double)idle);
    if (ppm)
        write_ppm(ppm, width, height, image);

    CUDA_CHECK(cudaFree(d_image));
    CUDA_CHECK(cudaFree(d_owner));
    CUDA_CHECK(cudaFree(d_idle));
    free(image);
    free(owner);
    return lesson_end();
}
