"""The OpenCL kernels of the compute challenge: the matrix product (windrow_proto.product_kernels) and the hashes of its
result.

leaves     SHA-256 of the tag "leaf" and 64 entries, as windrow_proto.merkle
nodes      SHA-256 of the tag "node" and two hashes
"""

from typing import Final

from windrow_proto.product_kernels import GROUP as GROUP
from windrow_proto.product_kernels import PRODUCT
from windrow_proto.product_kernels import TILE as TILE

SOURCE: Final = (
    PRODUCT
    + r"""
__constant uint K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

/* Words of one message: a tag, `count` words of content (byte-swapped when they are entries), padding, length. */
uint word_of(uint tag, __global const uint *content, uint count, int swapped, uint index, uint last)
{
    if (index == 0)
        return tag;
    if (index <= count) {
        const uint w = content[index - 1];
        return swapped ? as_uint(as_uchar4(w).wzyx) : w;
    }
    return index == count + 1 ? 0x80000000u : index == last ? (count + 1) * 32 : 0;
}

void sha256(uint tag, __global const uint *content, uint count, int swapped, __global uint *out)
{
    uint h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    const uint blocks = (count + 4 + 15) / 16; /* tag, content, one bit, length of two words */
    for (uint block = 0; block < blocks; block++) {
        uint w[16], s[8];
        for (int i = 0; i < 16; i++)
            w[i] = word_of(tag, content, count, swapped, block * 16 + i, blocks * 16 - 1);
        for (int i = 0; i < 8; i++)
            s[i] = h[i];
        for (int i = 0; i < 64; i++) {
            if (i >= 16) {
                const uint p = w[(i + 1) & 15], q = w[(i + 14) & 15];
                w[i & 15] += w[(i + 9) & 15] + (rotate(p, 25u) ^ rotate(p, 14u) ^ (p >> 3))
                           + (rotate(q, 15u) ^ rotate(q, 13u) ^ (q >> 10));
            }
            const uint t1 = s[7] + (rotate(s[4], 26u) ^ rotate(s[4], 21u) ^ rotate(s[4], 7u))
                          + bitselect(s[6], s[5], s[4]) + K[i] + w[i & 15];
            const uint t2 = (rotate(s[0], 30u) ^ rotate(s[0], 19u) ^ rotate(s[0], 10u))
                          + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
            s[7] = s[6]; s[6] = s[5]; s[5] = s[4]; s[4] = s[3] + t1;
            s[3] = s[2]; s[2] = s[1]; s[1] = s[0]; s[0] = t1 + t2;
        }
        for (int i = 0; i < 8; i++)
            h[i] += s[i];
    }
    for (int i = 0; i < 8; i++)
        out[i] = h[i];
}

__kernel void leaves(__global const uint *entries, __global uint *out)
{
    sha256(0x6c656166u, entries + get_global_id(0) * 64, 64, 1, out + get_global_id(0) * 8);
}

__kernel void nodes(__global const uint *below, __global uint *out)
{
    sha256(0x6e6f6465u, below + get_global_id(0) * 16, 16, 0, out + get_global_id(0) * 8);
}
"""
)
