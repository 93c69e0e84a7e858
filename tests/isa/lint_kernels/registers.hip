// Registers: scratch, spills, a stack without a size, launch bounds, a few registers too many.
#include "kernel.h"

// lint: SPL001
KERNEL(256) void indexed_array(const float4v* __restrict__ x, const int* __restrict__ which, float* __restrict__ y) {
  float values[64];
#pragma unroll
  for (int i = 0; i < 16; ++i)
    for (int n = 0; n < 4; ++n)
      values[4 * i + n] = x[i * 256 + lane()][n];
  y[lane()] = values[which[lane()]];
}

// lint: SPL001 SPL002
__attribute__((amdgpu_waves_per_eu(8))) KERNEL(256) void too_many_values(const float4v* __restrict__ x, float4v* __restrict__ y) {
  float4v v[20];
#pragma unroll
  for (int i = 0; i < 20; ++i)
    v[i] = x[i * 256 + lane()];
  asm volatile("" : "+v"(v[0]), "+v"(v[1]), "+v"(v[2]), "+v"(v[3]), "+v"(v[4]), "+v"(v[5]), "+v"(v[6]), "+v"(v[7])); // all alive at once
  asm volatile("" : "+v"(v[8]), "+v"(v[9]), "+v"(v[10]), "+v"(v[11]), "+v"(v[12]), "+v"(v[13]), "+v"(v[14]), "+v"(v[15]));
#pragma unroll
  for (int i = 0; i < 20; ++i)
    y[i * 256 + lane()] = v[i] * v[19 - i];
}

// lint: SPL001 SPL005
__attribute__((noinline)) DEVICE int steps(int n) {
  asm volatile("" : "+v"(n));
  return n < 2 ? n : steps(n - 1) * 3 + steps(n - 2);
}
KERNEL(64) void recursive(int* y) { y[lane()] = steps(y[lane()]); }

// lint: OCC001
KERNEL(256) void one_register_too_many(float* y) {
  float value = y[lane()];
  asm volatile("" ::: "v65");
  y[lane()] = value + 1.0f;
}

// lint: LCH002
extern "C" __attribute__((global)) void no_bound(float* y) {
  float value = y[lane()];
  asm volatile("" ::: "v121");
  y[lane()] = value + 1.0f;
}
