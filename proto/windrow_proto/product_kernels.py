"""The OpenCL source of the matrix product that challenges and benchmarks run on GPUs of every brand. Pure.

generate   one block of eight entries per work-item: lines of A or of B (Philox4x64-10, as windrow_proto.philox)
multiply   tiles of 64 x 64 entries by groups of 16 x 16, each work-item 4 x 4 of them; exact, mod 2**32. Both factors
           lie along the summed index, so both are read in order. Lines are a multiple of 64, what is summed of 16.

A text, and nothing that runs it: the agent compiles it for the card that is challenged, a test rental of the Master's
for the card that it was given.
"""

from typing import Final

TILE: Final = 64
"""Entries of a group's tile along each side; rows come in multiples of it."""
GROUP: Final = 16
"""Work-items of a group along each side."""

LOADER: Final = "libOpenCL.so.1"
"""The library by which a program finds the OpenCL of all drivers."""
LOADER_SOURCE: Final = "Debian and Ubuntu: apt-get install ocl-icd-libopencl1"
NVIDIA_SOURCE: Final = "it comes with NVIDIA's driver; Debian: apt-get install nvidia-opencl-icd"
"""The origin of NVIDIA's part of OpenCL, which Debian packs apart from the driver."""

PRODUCT: Final = r"""
#define TILE 64
#define DEEP 16
#define PAD 4

__kernel void generate(ulong key0, ulong key1, ulong matrix, __global const uint *lines, __global ulong4 *out)
{
    ulong4 c = (ulong4)(get_global_id(0), lines[get_global_id(1)], matrix, 0);
    ulong2 k = (ulong2)(key0, key1);
    for (int i = 0; i < 10; i++) {
        const ulong m0 = 0xD2E7470EE14C6C93UL, m1 = 0xCA5A826395121157UL;
        c = (ulong4)(mul_hi(m1, c.z) ^ c.y ^ k.x, m1 * c.z, mul_hi(m0, c.x) ^ c.w ^ k.y, m0 * c.x);
        k += (ulong2)(0x9E3779B97F4A7C15UL, 0xBB67AE8584CAA73BUL);
    }
    out[get_global_id(1) * get_global_size(0) + get_global_id(0)] = c;
}

__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void multiply(uint size, __global const uint *a, __global const uint *b, __global uint *out)
{
    __local uint la[DEEP][TILE + PAD], lb[DEEP][TILE + PAD];
    const uint x = get_local_id(0), y = get_local_id(1), item = y * 16 + x;
    const uint line = item / 4, along = item % 4 * 4;
    __global const uint *pa = a + (size_t)(get_group_id(1) * TILE + line) * size + along;
    __global const uint *pb = b + (size_t)(get_group_id(0) * TILE + line) * size + along;
    uint4 sum[4] = {(uint4)(0), (uint4)(0), (uint4)(0), (uint4)(0)};
    for (uint at = 0; at < size; at += DEEP) {
        const uint4 va = vload4(0, pa + at), vb = vload4(0, pb + at);
        la[along][line] = va.x; la[along + 1][line] = va.y; la[along + 2][line] = va.z; la[along + 3][line] = va.w;
        lb[along][line] = vb.x; lb[along + 1][line] = vb.y; lb[along + 2][line] = vb.z; lb[along + 3][line] = vb.w;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (uint k = 0; k < DEEP; k++) {
            const uint4 ra = vload4(y, la[k]), rb = vload4(x, lb[k]);
            sum[0] += ra.x * rb;
            sum[1] += ra.y * rb;
            sum[2] += ra.z * rb;
            sum[3] += ra.w * rb;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    __global uint *po = out + (size_t)(get_group_id(1) * TILE + y * 4) * size + get_group_id(0) * TILE + x * 4;
    for (uint i = 0; i < 4; i++)
        vstore4(sum[i], 0, po + (size_t)i * size);
}
"""
