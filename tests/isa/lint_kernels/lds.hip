// LDS: conflicts, padding, and as much of it as to limit the waves.
#include "kernel.h"

// lint gfx942: LDS002 OCC002
// lint gfx950: LDS002
KERNEL(256) void transpose(const float* __restrict__ x, float* __restrict__ y) {
  SHARED float tile[64][64];
  const unsigned column = lane() % 64, row = lane() / 64;
#pragma unroll
  for (unsigned r = 0; r < 64; r += 4)
    tile[row + r][column] = x[(row + r) * 64 + column];
  sync();
#pragma unroll
  for (unsigned r = 0; r < 64; r += 4)
    y[(row + r) * 64 + column] = tile[column][row + r]; // lint here: LDS002
}

// lint gfx942: OCC002
// lint gfx950:
KERNEL(256) void padded_transpose(const float* __restrict__ x, float* __restrict__ y) {
  SHARED float tile[64][65];
  const unsigned column = lane() % 64, row = lane() / 64;
#pragma unroll
  for (unsigned r = 0; r < 64; r += 4)
    tile[row + r][column] = x[(row + r) * 64 + column];
  sync();
#pragma unroll
  for (unsigned r = 0; r < 64; r += 4)
    y[(row + r) * 64 + column] = tile[column][row + r];
}

// lint:
KERNEL(256) void reduce(const float4v* __restrict__ x, float* __restrict__ y) {
  SHARED float partial[256];
  const float4v v = x[group() * 256 + lane()];
  partial[lane()] = v[0] + v[1] + v[2] + v[3];
  sync();
#pragma unroll
  for (unsigned step = 128; step > 0; step /= 2) {
    if (lane() < step)
      partial[lane()] += partial[lane() + step];
    sync();
  }
  if (lane() == 0)
    y[group()] = partial[0];
}

// lint: OCC002 WAIT001
KERNEL(256) void large_tile(const float4v* __restrict__ x, float4v* __restrict__ y) {
  SHARED float4v tile[3200];
  for (unsigned i = lane(); i < 3200; i += 256)
    tile[i] = x[group() * 3200 + i];
  sync();
  y[group() * 256 + lane()] = tile[lane() ^ 1] + tile[3199 - lane()];
}
