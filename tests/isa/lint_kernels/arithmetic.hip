// Arithmetic that costs more than its source shows.
#include "kernel.h"

// lint: MTH003
KERNEL(256) void accidental_double(const float* __restrict__ x, float* __restrict__ y) {
  const unsigned i = group() * 256 + lane();
  y[i] = x[i] * 0.1 + 1.5; // lint here: MTH003
}

// lint: MTH002
KERNEL(256) void modulo_in_loop(unsigned* __restrict__ y, unsigned count, unsigned width) {
  unsigned sum = lane();
  ROLLED for (unsigned i = 0; i < count; ++i)
    sum += lane() / (width + i); // lint here: MTH002
  y[lane()] = sum;
}

// lint:
KERNEL(256) void division_before_loop(float4v* __restrict__ y, unsigned count, unsigned width) {
  float4v v = y[lane() / width];
  ROLLED for (unsigned i = 0; i < count; ++i)
    v = v * v + 1.0f;
  y[lane()] = v;
}

// lint: MTH001
KERNEL(256) void exact_division(const float* __restrict__ x, float* __restrict__ y) { y[lane()] = x[lane()] / x[lane() + 256]; }

// lint: MTH004
KERNEL(256) void accurate_exponential(const float* __restrict__ x, float* __restrict__ y) { y[lane()] = __builtin_expf(x[lane()]); }

// lint gfx942: CVT001
// lint gfx950:
KERNEL(256) void to_bf16(const float4v* __restrict__ x, __bf16* __restrict__ y) {
  const float4v v = x[lane()];
  typedef __bf16 bf4 __attribute__((ext_vector_type(4)));
  *reinterpret_cast<bf4*>(y + 4 * lane()) = __builtin_convertvector(v, bf4);
}

// lint: CVT002
KERNEL(256) void single_fp8(const float* __restrict__ x, int* __restrict__ y) {
  y[lane()] = __builtin_amdgcn_cvt_pk_fp8_f32(x[lane()], x[lane()], 0, false); // lint here: CVT002
}
