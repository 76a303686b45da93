// Rung 6: four floats an instruction. Loads and stores of 16 bytes, from global memory where the
// rows allow it and from shared memory always. For that a thread's rows and columns come in
// groups of four neighbours, and the tile of A is stored transposed:
//
//     a_tile (transposed) 8x128     b_tile 8x128                C tile 128x128
//     row i: . . xxxx . . xxxx      row i: . xxxx . . xxxx       . xxxx . . xxxx    thread (ty, tx):
//            one float4 is four            one float4 is four    . xxxx . . xxxx    rows and columns
//            rows of A                     columns of B          . . . . . . . .    ty*4 + 0..3 and 64
//                                                                . xxxx . . xxxx    further on, tx alike
#include "matmul.cuh"

namespace rung_6
{

enum { TILE_M = 128, TILE_N = 128, TILE_K = 8 };
enum { ROWS = 8, COLS = 8 };                                   // results a thread
enum { THREADS_Y = TILE_M / ROWS, THREADS_X = TILE_N / COLS }; // 16 x 16
enum { THREADS = THREADS_Y * THREADS_X };
// A thread stores four k of one row of A: neighbours store to rows 4 apart in a_tile. Four floats
// more a row put these into other banks, and keep every row on a 16-byte boundary.
enum { A_PITCH = TILE_M + 4 };
enum { SHARED_BYTES = (TILE_K * A_PITCH + TILE_K * TILE_N) * sizeof(float) };

// The four floats at p, of which only the first `left` exist; the others count as 0.
static __device__ float4 load4(const float *p, int left, bool aligned)
{
    if (aligned && left >= 4)
        return *(const float4 *)p;
    return make_float4(left > 0 ? p[0] : 0, left > 1 ? p[1] : 0, left > 2 ? p[2] : 0,
                       left > 3 ? p[3] : 0);
}

static __device__ void store4(float *p, int left, bool aligned, const float *values)
{
    if (aligned && left >= 4)
        *(float4 *)p = make_float4(values[0], values[1], values[2], values[3]);
    else
        for (int i = 0; i < 4; i++)
            if (i < left)
                p[i] = values[i];
}

__global__ void matmul(int m, int n, int k, const float *a, const float *b, float *c)
{
    __shared__ __align__(16) float a_tile[TILE_K][A_PITCH], b_tile[TILE_K][TILE_N];
    int t = threadIdx.x, ty = t / THREADS_X, tx = t % THREADS_X;
    int row0 = blockIdx.y * TILE_M, col0 = blockIdx.x * TILE_N; // of the tile
    bool a_aligned = k % 4 == 0, b_aligned = n % 4 == 0;        // is every row on 16 bytes?
    float sum[ROWS][COLS] = {};
    for (int k0 = 0; k0 < k; k0 += TILE_K) {
        for (int e = 0; e < TILE_M * TILE_K; e += 4 * THREADS) {
            int y = (e / 4 + t) / (TILE_K / 4), x = (e / 4 + t) % (TILE_K / 4) * 4;
            int left = row0 + y < m ? k - (k0 + x) : 0;
            float4 v = load4(a + (size_t)(row0 + y) * k + k0 + x, left, a_aligned);
            a_tile[x][y] = v.x;
            a_tile[x + 1][y] = v.y;
            a_tile[x + 2][y] = v.z;
            a_tile[x + 3][y] = v.w;
        }
        for (int e = 0; e < TILE_K * TILE_N; e += 4 * THREADS) {
            int y = (e / 4 + t) / (TILE_N / 4), x = (e / 4 + t) % (TILE_N / 4) * 4;
            int left = k0 + y < k ? n - (col0 + x) : 0;
            *(float4 *)&b_tile[y][x] = load4(b + (size_t)(k0 + y) * n + col0 + x, left, b_aligned);
        }
        __syncthreads(); // the tiles are complete before anyone reads them
        for (int i = 0; i < TILE_K; i++) {
            float a_part[ROWS], b_part[COLS]; // registers: every index below is a constant
            for (int r = 0; r < ROWS; r += 4)
                *(float4 *)&a_part[r] = *(float4 *)&a_tile[i][ty * 4 + r * THREADS_Y];
            for (int s = 0; s < COLS; s += 4)
                *(float4 *)&b_part[s] = *(float4 *)&b_tile[i][tx * 4 + s * THREADS_X];
            for (int r = 0; r < ROWS; r++)
                for (int s = 0; s < COLS; s++)
                    sum[r][s] += a_part[r] * b_part[s];
        }
        __syncthreads(); // everyone has read them before anyone overwrites them
    }
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < COLS; s += 4) {
            int row = row0 + ty * 4 + r % 4 + r / 4 * 4 * THREADS_Y;
            int col = col0 + tx * 4 + s * THREADS_X;
            if (row < m)
                store4(c + (size_t)row * n + col, n - col, b_aligned, &sum[r][s]);
        }
}

static void launch(int m, int n, int k, const float *a, const float *b, float *c)
{
    dim3 grid(divide_up(n, TILE_N), divide_up(m, TILE_M));
    matmul<<<grid, THREADS>>>(m, n, k, a, b, c);
}

} // namespace rung_6
