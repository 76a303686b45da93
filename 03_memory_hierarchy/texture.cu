// texture: the texture unit reads a picture at any point between its pixels, mixes the four nearest
// ones and knows what to do beyond the edge. A picture is rotated and zoomed by the texture unit
// and by the same filter written by hand; the four ways to treat the edge are laid out in one PPM
// file.
//
// The unit keeps the two weights of the mix as fixed-point numbers with 8 bits after the point. So
// it may differ from the exact filter by 1/256 of the full range in each direction, and no more.
//
// Predict before you run it: the hand-written filter reads four pixels and computes some 40
// instructions where the texture unit needs one. By what factor is the texture faster?
//
// usage: texture [--image file.ppm] [--out file.ppm] [--angle degrees] [--zoom factor] [--size N]
// sanitizer: --size 64 --out /dev/null
#include "../common/lesson.h"
#include "image.h"

enum edge { CLAMP, WRAP, MIRROR, BORDER, EDGES };
static const char *const edge_names[] = {"clamp", "wrap", "mirror", "border"};
static const enum cudaTextureAddressMode edge_modes[] = {
    cudaAddressModeClamp, cudaAddressModeWrap, cudaAddressModeMirror, cudaAddressModeBorder};

// Where an output pixel lies in the picture: turned and scaled about the centres of both.
struct view {
    int width, height;         // of the picture
    int out_width, out_height; // of the output
    float cosine, sine;        // times picture pixels per output pixel
};

// In normalised coordinates the picture reaches from 0 to 1, whatever its size.
__host__ __device__ inline float2 point_of(struct view v, int px, int py)
{
    float dx = px + 0.5f - 0.5f * v.out_width, dy = py + 0.5f - 0.5f * v.out_height;
    return make_float2(0.5f + (v.cosine * dx - v.sine * dy) / v.width,
                       0.5f + (v.sine * dx + v.cosine * dy) / v.height);
}

__global__ void by_texture(struct view v, cudaTextureObject_t picture, float4 *out)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= v.out_width || py >= v.out_height)
        return;
    float2 p = point_of(v, px, py);
    out[(size_t)py * v.out_width + px] = tex2D<float4>(picture, p.x, p.y);
}

// The index of the pixel that stands for pixel i of n; -1 for none (black).
__host__ __device__ inline int edge_index(int i, int n, int edge)
{
    int period = edge == MIRROR ? 2 * n : n;
    if (edge == CLAMP)
        return i < 0 ? 0 : i < n ? i : n - 1;
    if (edge == BORDER)
        return i < 0 || i >= n ? -1 : i;
    i = (i % period + period) % period; // % keeps the sign
    return i < n ? i : period - 1 - i;
}

__device__ float4 pixel_at(const uchar4 *picture, struct view v, int x, int y, int edge)
{
    x = edge_index(x, v.width, edge);
    y = edge_index(y, v.height, edge);
    if (x < 0 || y < 0)
        return make_float4(0, 0, 0, 0);
    uchar4 c = picture[(size_t)y * v.width + x];
    return make_float4(c.x / 255.0f, c.y / 255.0f, c.z / 255.0f, c.w / 255.0f);
}

__device__ float4 mix(float4 a, float4 b, float t)
{
    return make_float4(a.x + t * (b.x - a.x), a.y + t * (b.y - a.y), a.z + t * (b.z - a.z),
                       a.w + t * (b.w - a.w));
}

__global__ void by_hand(struct view v, const uchar4 *picture, int edge, float4 *out)
{
    int px = blockIdx.x * blockDim.x + threadIdx.x, py = blockIdx.y * blockDim.y + threadIdx.y;
    if (px >= v.out_width || py >= v.out_height)
        return;
    float2 p = point_of(v, px, py);
    float x = p.x * v.width - 0.5f, y = p.y * v.height - 0.5f; // the centre of pixel 0 is at 0.5
    int i = (int)floorf(x), j = (int)floorf(y);
    float4 upper =
        mix(pixel_at(picture, v, i, j, edge), pixel_at(picture, v, i + 1, j, edge), x - i);
    float4 lower =
        mix(pixel_at(picture, v, i, j + 1, edge), pixel_at(picture, v, i + 1, j + 1, edge), x - i);
    out[(size_t)py * v.out_width + px] = mix(upper, lower, y - j);
}

// ---- the host's side

// The exact filter, in double.
static void reference(const struct image *picture, struct view v, int px, int py, int edge,
                      double rgb[3])
{
    float2 p = point_of(v, px, py);
    double x = (double)p.x * v.width - 0.5, y = (double)p.y * v.height - 0.5;
    rgb[0] = rgb[1] = rgb[2] = 0;
    for (int k = 0; k < 4; k++) {
        double i = floor(x) + k % 2, j = floor(y) + k / 2;
        int column = edge_index((int)i, v.width, edge), row = edge_index((int)j, v.height, edge);
        if (column < 0 || row < 0)
            continue;
        const uchar4 *pixel = &picture->pixels[(size_t)row * v.width + column];
        double weight = (1 - fabs(x - i)) * (1 - fabs(y - j)) / 255;
        rgb[0] += weight * pixel->x;
        rgb[1] += weight * pixel->y;
        rgb[2] += weight * pixel->z;
    }
}

static struct verifier compare(const char *what, const struct image *picture, struct view v,
                               int edge, const float4 *out, double tolerance)
{
    struct verifier check = verify_begin(what, 0, tolerance);
    for (int py = 0; py < v.out_height; py++)
        for (int px = 0; px < v.out_width; px++) {
            size_t i = (size_t)py * v.out_width + px;
            double rgb[3];
            reference(picture, v, px, py, edge, rgb);
            verify_value(&check, i, out[i].x, rgb[0]);
            verify_value(&check, i, out[i].y, rgb[1]);
            verify_value(&check, i, out[i].z, rgb[2]);
        }
    return check;
}

static cudaTextureObject_t make_texture(cudaArray_t array, enum cudaTextureAddressMode mode)
{
    cudaTextureObject_t texture;
    cudaResourceDesc resource;
    cudaTextureDesc description;
    memset(&resource, 0, sizeof(resource));
    memset(&description, 0, sizeof(description)); // also makes the border black
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    description.addressMode[0] = description.addressMode[1] = mode;
    description.filterMode = cudaFilterModeLinear;
    description.readMode = cudaReadModeNormalizedFloat; // bytes 0..255 arrive as 0..1
    description.normalizedCoords = 1;                   // wrap and mirror exist only so
    CUDA_CHECK(cudaCreateTextureObject(&texture, &resource, &description, NULL));
    return texture;
}

// Puts a finished view into its quarter of the sheet.
static void place(struct image *sheet, int quarter, int side, const float4 *view)
{
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            const float4 *c = &view[(size_t)y * side + x];
            size_t row = (size_t)(quarter / 2 * side + y),
                   column = (size_t)(quarter % 2 * side + x);
            sheet->pixels[row * sheet->width + column] =
                make_uchar4((unsigned char)(c->x * 255 + 0.5f), (unsigned char)(c->y * 255 + 0.5f),
                            (unsigned char)(c->z * 255 + 0.5f), 255);
        }
}

int main(int argc, char **argv)
{
    const char *path = NULL, *out_path = "texture.ppm";
    double angle = 30, zoom = 0.4;
    int side = (int)default_size(1024, 128);
    const struct option_spec options[] = {
        OPTION_TEXT("image", &path, "the picture: a PGM or PPM file (P5, P6); none: one is made"),
        OPTION_TEXT("out", &out_path, "the four views side by side, as a PPM file"),
        OPTION_REAL("angle", &angle, -360, 360, "degrees to turn the picture"),
        OPTION_REAL("zoom", &zoom, 0.01, 100, "below 1 the picture is smaller than the view"),
        OPTION_INT("size", &side, 1, 8192, "width and height of a view in pixels"),
        OPTION_END,
    };
    lesson_begin(argc, argv, "03_memory_hierarchy/texture",
                 "a picture turned and zoomed by the texture unit and by hand", options);
    struct image picture = path ? image_read(path) : image_make((int)default_size(512, 64));
    int w = picture.width, h = picture.height, largest = w > h ? w : h;
    size_t pixels = (size_t)side * side, bytes = pixels * sizeof(float4);
    size_t picture_bytes = (size_t)w * h * sizeof(uchar4);
    int widest = device_attribute(cudaDevAttrMaxTexture2DWidth);
    int highest = device_attribute(cudaDevAttrMaxTexture2DHeight);
    if (w > widest || h > highest)
        lesson_exit(EXIT_FAILED, "the picture is %d x %d, a texture of this device at most %d x %d",
                    w, h, widest, highest);
    require_device_memory(pixels + picture_bytes / sizeof(float4) * 2 + 1, sizeof(float4),
                          "--size");

    // The picture twice: plain for the filter by hand; as an array, whose order in memory keeps
    // neighbours in both directions close together, for the texture unit.
    uchar4 *d_picture;
    float4 *d_out, *h_out = (float4 *)host_malloc(bytes);
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<uchar4>();
    CUDA_CHECK(cudaMalloc(&d_out, bytes));
    CUDA_CHECK(cudaMalloc(&d_picture, picture_bytes));
    CUDA_CHECK(cudaMallocArray(&array, &format, (size_t)w, (size_t)h));
    size_t row_bytes = (size_t)w * sizeof(uchar4);
    CUDA_CHECK(cudaMemcpy(d_picture, picture.pixels, picture_bytes, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaMemcpy2DToArray(array, 0, 0, picture.pixels, row_bytes, row_bytes, (size_t)h,
                                   cudaMemcpyHostToDevice));

    double radians = angle * 3.14159265358979 / 180, scale = largest / zoom / side;
    struct view v = {
        w, h, side, side, (float)(cos(radians) * scale), (float)(sin(radians) * scale)};
    double rounding =
        4.0 * largest * (1 + 1 / zoom) / 8388608; // of the coordinates: float has 24 bits
    double by_hand_allowed = rounding + 1e-5, texture_allowed = rounding + 2.0 / 256;
    struct image sheet = image_new(2 * side, 2 * side);
    dim3 block(32, 8), grid((unsigned)(side + 31) / 32, (unsigned)(side + 7) / 8);
    double total_ms[2] = {0, 0}, worst = 0;
    printf("picture: %d x %d (%s); differences in 1/255, the steps of a byte\n", w, h,
           path ? path : "made here");
    report_table("views", "differs", "allowed", NULL);
    for (int edge = 0; edge < EDGES; edge++) {
        cudaTextureObject_t texture = make_texture(array, edge_modes[edge]);
        for (int hand = 0; hand < 2; hand++) {
            struct timing t;
            char name[64];
            POISON_DEVICE(d_out, bytes);
            MEASURE_GPU (t, common_options.reps) {
                if (hand)
                    by_hand<<<grid, block>>>(v, d_picture, edge, d_out);
                else
                    by_texture<<<grid, block>>>(v, texture, d_out);
                CUDA_CHECK_LAUNCH();
            }
            CUDA_CHECK(cudaMemcpy(h_out, d_out, bytes, cudaMemcpyDeviceToHost));
            double allowed = hand ? by_hand_allowed : texture_allowed;
            snprintf(name, sizeof(name), "%s, %s", edge_names[edge],
                     hand ? "by hand" : "texture unit");
            struct verifier check = compare(name, &picture, v, edge, h_out, allowed);
            report_extra(round(255 * check.worst * 1e3) / 1e3);
            report_extra(round(255 * allowed * 1e3) / 1e3);
            report_rate(name, t, (double)pixels, "pixels", "Gpixel/s", 1e9, 0, verify_end(&check));
            total_ms[hand] += t.median_ms;
            if (!hand) {
                worst = check.worst > worst ? check.worst : worst;
                place(&sheet, edge, side, h_out);
            }
        }
        CUDA_CHECK(cudaDestroyTextureObject(texture));
    }
    image_write(out_path, &sheet);
    printf("\nwritten: %s, %d x %d: clamp and wrap above, mirror and border below\n", out_path,
           sheet.width, sheet.height);
    report_number("texture_worst_difference_255", 255 * worst);
    if (DEVICE_IS_CPU) {
        printf("A CPU has no texture unit: its filter is software, and the times say nothing.\n");
    } else {
        printf(
            "The texture unit differs from the exact filter by %.2f of 255 steps at most; by hand "
            "takes %.2f times as long.\n",
            255 * worst, total_ms[1] / total_ms[0]);
        report_number("by_hand_over_texture", total_ms[1] / total_ms[0]);
    }
    CUDA_CHECK(cudaFreeArray(array));
    CUDA_CHECK(cudaFree(d_picture));
    CUDA_CHECK(cudaFree(d_out));
    free(h_out);
    free(picture.pixels);
    free(sheet.pixels);
    return lesson_end();
}
