// Kernels into which planted_test.cpp plants defects, instruction by instruction. isa_lint has nothing to say about them as they are:
// every barrier, wait and state that the compiler left is needed.
#include "tests/isa/lint_kernels/kernel.h"

// Every lane reads what the last wave's mirror image wrote.
KERNEL(256) void reverse(const float4v* __restrict__ x, float4v* __restrict__ y) {
  SHARED float4v tile[256];
  tile[lane()] = x[group() * 256 + lane()];
  sync();
  y[group() * 256 + lane()] = tile[255 - lane()];
}

// A guarded loop with both of its barriers: what is read is overwritten in the next repetition. Loads run ahead.
KERNEL(256) void neighbours(const float4v* __restrict__ x, float4v* __restrict__ y, int count) {
  SHARED float4v tile[256];
  float4v sum = 0, next = x[lane()];
  ROLLED for (int i = 0; i < count; ++i) {
    tile[lane()] = next;
    next = x[(i + 1) * 256 + lane()];
    sync();
    sum += tile[(lane() + 64) & 255] * tile[lane() ^ 128];
    sync();
  }
  y[lane()] = sum;
}

KERNEL(256) void transpose(const float4v* __restrict__ x, float4v* __restrict__ y) {
  SHARED float tile[32][33];
  const float4v v = x[group() * 256 + lane()];
  const unsigned row = lane() / 32, column = lane() % 32;
#pragma unroll
  for (unsigned n = 0; n < 4; ++n)
    tile[row + 8 * n][column] = v[n];
  sync();
  float4v out;
#pragma unroll
  for (unsigned n = 0; n < 4; ++n)
    out[n] = tile[column][row + 8 * n];
  y[group() * 256 + lane()] = out;
}

// Sums over waves, the last ones within a wave.
KERNEL(256) void reduce(const float4v* __restrict__ x, float* __restrict__ y) {
  SHARED float partial[256];
  const float4v v = x[group() * 256 + lane()];
  partial[lane()] = v[0] + v[1] + v[2] + v[3];
  sync();
  if (lane() < 128)
    partial[lane()] += partial[lane() + 128];
  sync();
  if (lane() < 64)
    y[group() * 64 + lane()] = partial[lane()] + partial[lane() + 64];
}

// Each wave leaves its maximum, by DPP, for all.
KERNEL(256) void row_max(const float4v* __restrict__ x, float4v* __restrict__ y) {
  SHARED float part[4];
  const float4v v = x[group() * 256 + lane()];
  float most = __builtin_fmaxf(__builtin_fmaxf(v[0], v[1]), __builtin_fmaxf(v[2], v[3]));
#define STEP(control)                                                                                                                      \
  most = __builtin_fmaxf(most, __builtin_bit_cast(float, __builtin_amdgcn_update_dpp(__builtin_bit_cast(int, most),                       \
                                                                                     __builtin_bit_cast(int, most), control, 15, 15, false)))
  STEP(0x111);
  STEP(0x112);
  STEP(0x114);
  STEP(0x118);
  STEP(0x142);
  STEP(0x143);
  if (lane() % 64 == 63)
    part[lane() / 64] = most;
  sync();
  const float all = __builtin_fmaxf(__builtin_fmaxf(part[0], part[1]), __builtin_fmaxf(part[2], part[3]));
  float4v out;
#pragma unroll
  for (int n = 0; n < 4; ++n)
    out[n] = __builtin_amdgcn_exp2f(v[n] - all);
  y[group() * 256 + lane()] = out;
}

// Matrix instructions over tiles in LDS.
KERNEL(256) void product(const half8* __restrict__ a, const half8* __restrict__ b, float4v* __restrict__ c, int count) {
  SHARED half8 left[256], right[256];
  float4v sum = 0;
  half8 next_a = a[lane()], next_b = b[lane()];
  ROLLED for (int i = 0; i < count; ++i) {
    left[lane()] = next_a;
    right[lane()] = next_b;
    next_a = a[(i + 1) * 256 + lane()];
    next_b = b[(i + 1) * 256 + lane()];
    sync();
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const half8 l = left[((lane() ^ n) + 64) & 255], r = right[(lane() ^ n) ^ 128];
      sum = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_shufflevector(l, l, 0, 1, 2, 3), __builtin_shufflevector(r, r, 0, 1, 2, 3), sum, 0,
                                                  0, 0);
      sum = __builtin_amdgcn_mfma_f32_16x16x16f16(__builtin_shufflevector(l, l, 4, 5, 6, 7), __builtin_shufflevector(r, r, 4, 5, 6, 7), sum, 0,
                                                  0, 0);
    }
    sync();
  }
  c[group() * 256 + lane()] = sum * 2.0f;
}

// A burst of loads that is waited for one by one.
KERNEL(256) void stream(const float4v* __restrict__ x, float4v* __restrict__ y, int count) {
  float4v sum = 0, next[4];
#pragma unroll
  for (int n = 0; n < 4; ++n)
    next[n] = x[n * 256 + lane()];
  ROLLED for (int i = 1; i < count; ++i) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      sum = sum * sum + next[n];
      sum = sum * sum + 1.0f;
      next[n] = x[(i * 4 + n) * 256 + lane()];
      __builtin_amdgcn_sched_barrier(0);
    }
  }
#pragma unroll
  for (int n = 0; n < 4; ++n)
    sum += next[n];
  y[lane()] = sum;
}
