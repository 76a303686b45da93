// Atomics, integer and float intrinsics, conversions, half.
#include <chrono>
#include <climits>
#include <cmath>
#include <cuda_fp16.h>
#include "test.h"

struct Cells {
    int i[8];
    unsigned u[8];
    unsigned long long l[8];
    float f[2];
    double d;
    unsigned of_block[8][10];
};

__global__ void atomics(Cells *c)
{
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    atomicAdd(&c->i[0], t);
    atomicSub(&c->i[1], 2);
    atomicMin_system(&c->i[2], 500 - t);
    atomicMax(&c->i[3], t - 500);
    atomicAnd(&c->i[4], ~(1 << t % 31));
    atomicOr(&c->i[5], 1 << t % 31);
    atomicXor(&c->i[6], t);
    if (atomicCAS(&c->i[7], 0, t + 1) == 0)
        atomicAdd(&c->u[7], 1);
    atomicInc(&c->u[0], 9);
    atomicDec(&c->u[1], 9);
    atomicMax(&c->u[2], (unsigned)t);
    if (atomicExch(&c->u[3], 1) == 0)
        atomicAdd(&c->u[4], 1u);
    atomicAdd(&c->l[0], 1ull << 33);
    atomicMax(&c->l[1], (unsigned long long)t << 40);
    atomicAdd(&c->f[0], 0.5f);
    atomicExch(&c->f[1], 2.5f);
    atomicAdd_system(&c->d, 0.25);

    // Of a block's own: each has its cells.
    unsigned *u = c->of_block[blockIdx.x];
    atomicAdd_block(&u[0], 1), atomicSub_block(&u[1], 1), atomicXor_block(&u[2], threadIdx.x);
    atomicInc_block(&u[3], 99), atomicDec_block(&u[4], 99), atomicOr_block(&u[5], threadIdx.x);
    if (atomicExch_block(&u[6], 1) == 0 && atomicCAS_system(&u[7], 0, 1) == 0)
        atomicMax_block(&u[8], 6u), atomicAnd_block(&u[9], 5u);
}

// For two milliseconds, as measured by the rate that the device says its clock has.
__global__ void wait_by_the_clock(int khz)
{
    long long start = clock64();
    while (clock64() - start < 2ll * khz)
        ;
}

__global__ void integers(unsigned *o)
{
    o[0] = __popc(0xf0f0), o[1] = __clz(1), o[2] = __ffs(8), o[3] = __brev(1),
    o[4] = __mulhi(INT_MAX, 8);
    o[5] = __umulhi(UINT_MAX, 8), o[6] = __mul24(-3, 5), o[7] = __sad(-3, 5, 1),
    o[8] = __byte_perm(0x33221100, 0x77665544, 0x7531);
    o[9] = __funnelshift_l(0x80000000, 1, 1), o[10] = __popcll(~0ull), o[11] = __clzll(1),
    o[12] = __ffsll(1ll << 40);
    o[13] = min(3, -4), o[14] = max(3u, 4u), o[15] = __float_as_uint(1.5f),
    o[16] = __float2int_rn(2.5f), o[17] = __float2int_rz(-2.7f);
    o[18] = __float2int_ru(2.1f), o[19] = __float2int_rd(-2.1f), o[20] = __float2int_rn(1e20f),
    o[21] = __double2int_rn(-3.5);
    o[22] = __float2uint_rn(-1.0f), o[23] = __double2hiint(1.0),
    o[24] = (unsigned)__umul64hi(~0ull, 16), o[25] = __funnelshift_r(2, 1, 1);
    o[26] = __float2int_rn(NAN), o[27] = __clz(0), o[28] = __ffs(0), o[29] = umin(3, ~0u),
    o[30] = umax(3, ~0u);
}

__global__ void floats(float *o)
{
    o[0] = rsqrtf(4.0f), o[1] = __fdividef(6, 3), o[2] = __saturatef(1.5f), o[3] = sinpif(0.5f),
    o[4] = cospif(1.0f), o[5] = exp2f(3);
    o[6] = __expf(0), o[7] = __logf(1), o[8] = __powf(2, 3), o[9] = fmaf(2, 3, 4),
    o[10] = __frcp_rn(4), o[11] = fminf(NAN, 2);
    o[12] = max(1.5f, 2.0f), o[13] = norm3df(2, 3, 6), o[14] = (float)rsqrt(16.0),
    o[15] = __fmaf_rn(1, 2, 3), o[16] = copysignf(1, -0.0f);
    o[17] = rintf(2.5f), o[18] = truncf(-2.5f), o[19] = fabsf(-3), o[20] = hypotf(3, 4),
    o[21] = __int_as_float(0x40490fdb);
    o[22] = __half2float(__float2half(0.1f)), o[23] = __half2float(__float2half(65519.0f)),
    o[24] = __half2float(__float2half(1e-7f));
}

int main()
{
    Cells *c, h = {};
    h.i[2] = h.i[3] = 0, h.i[4] = -1;
    OK(cudaMalloc(&c, sizeof *c));
    OK(cudaMemcpy(c, &h, sizeof h, cudaMemcpyHostToDevice));
    atomics<<<8, 128>>>(c);
    OK(cudaMemcpy(&h, c, sizeof h, cudaMemcpyDeviceToHost));
    printf("%d %d %d %d %x %x %d %d\n", h.i[0], h.i[1], h.i[2], h.i[3], h.i[4], h.i[5], h.i[6],
           h.i[7] != 0);
    printf("%u %u %u %u %u %u\n", h.u[0], h.u[1], h.u[2], h.u[3], h.u[4], h.u[7]);
    printf("%llx %llx %g %g %g\n", h.l[0], h.l[1], h.f[0], h.f[1], h.d);
    for (unsigned x : h.of_block[7])
        printf("%x ", x);

    unsigned *u, hu[31];
    OK(cudaMalloc(&u, sizeof hu));
    integers<<<1, 1>>>(u);
    OK(cudaMemcpy(hu, u, sizeof hu, cudaMemcpyDeviceToHost));
    for (unsigned x : hu)
        printf("%x ", x);
    float *f, hf[25];
    OK(cudaMalloc(&f, sizeof hf));
    floats<<<1, 1>>>(f);
    OK(cudaMemcpy(hf, f, sizeof hf, cudaMemcpyDeviceToHost));
    for (float x : hf)
        printf("%.5g ", x);
    printf("\n");
    OK(cudaFree(c));
    OK(cudaFree(u));
    OK(cudaFree(f));

    int khz;
    OK(cudaDeviceGetAttribute(&khz, cudaDevAttrClockRate, 0));
    auto start = std::chrono::steady_clock::now();
    wait_by_the_clock<<<1, 1>>>(khz);
    OK(cudaDeviceSynchronize());
    EXPECT(khz > 0 && std::chrono::steady_clock::now() - start > std::chrono::microseconds(1900));
    return finish();
}
