// Matrix operations: shapes, accumulators, results that are read at once.
#include "kernel.h"

// lint gfx942:
// lint gfx950: MFM001
KERNEL(64) void old_shape(const half4* __restrict__ a, const half4* __restrict__ b, float4v* __restrict__ c) {
  float4v sum = __builtin_amdgcn_mfma_f32_16x16x16f16(a[lane()], b[lane()], c[lane()], 0, 0, 0); // on gfx950 lint here: MFM001
  c[lane()] = sum;
}

// lint gfx942: MFM003
// lint gfx950: MFM001 MFM003
KERNEL(64) void result_at_once(const half4* __restrict__ a, float4v* __restrict__ c, unsigned count) {
  half4 x = a[lane()];
  float4v total = 0;
  ROLLED for (unsigned i = 0; i < count; ++i) {
    const float4v product = __builtin_amdgcn_mfma_f32_16x16x16f16(x, x, float4v(0), 0, 0, 0);
    total += product * product; // lint here: MFM003
    x = __builtin_convertvector(total, half4);
  }
  c[lane()] = total;
}

// lint gfx942: MFM004
// lint gfx950: MFM001 MFM004
KERNEL(64) void one_accumulator(const half4* __restrict__ a, float4v* __restrict__ c, unsigned count) {
  const half4 x = a[lane()], y = a[lane() + 64];
  float4v sum = 0;
  ROLLED for (unsigned i = 0; i < count; ++i) {
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(x, y, sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(y, x, sum, 0, 0, 0);
  }
  c[lane()] = sum;
}

// lint: MFM002
KERNEL(64) void f32_of_f16(const _Float16* __restrict__ a, float4v* __restrict__ c) {
  const float x = a[lane()], y = a[lane() + 64];
  c[lane()] = __builtin_amdgcn_mfma_f32_16x16x4f32(x, y, c[lane()], 0, 0, 0);
}
