// Access of device memory: narrow, flat, scattered, volatile, unmerged; and as it should be.
#include "kernel.h"

// lint: MEM001 WAIT001
KERNEL(256) void narrow_loop(const float* __restrict__ x, float* __restrict__ y, unsigned count) {
  ROLLED for (unsigned i = lane(); i < count; i += 256)
    y[i] = x[i] * 2.0f; // lint here: MEM001
}

// lint:
KERNEL(256) void wide_once(const float4v* __restrict__ x, float4v* __restrict__ y) {
  const unsigned i = group() * 256 + lane();
  y[i] = x[i] * 2.0f;
}

// lint:
KERNEL(256) void wide_ring(const float4v* __restrict__ x, float4v* __restrict__ y, unsigned count) {
  float4v slot[4];
  for (unsigned s = 0; s < 4; ++s)
    slot[s] = x[lane() + s * 256];
  ROLLED for (unsigned i = 0; i < count; i += 1024) {
#pragma unroll
    for (unsigned s = 0; s < 4; ++s) {
      y[lane() + i + s * 256] = slot[s] * 2.0f;
      __builtin_amdgcn_sched_barrier(0);
      slot[s] = x[lane() + i + 1024 + s * 256];
      __builtin_amdgcn_sched_barrier(0);
    }
  }
}

struct Node {
  float* values;
};
// lint: MEM002
KERNEL(256) void flat_pointer(const Node* __restrict__ nodes) {
  nodes[group()].values[lane()] = 1.0f; // lint here: MEM002
}

// lint: MEM003
KERNEL(256) void column_walk(const float* __restrict__ x, float* __restrict__ y) {
  const unsigned i = group() * 256 + lane();
  y[i] = x[i * 1024u]; // lint here: MEM003
}

// lint:
KERNEL(256) void array_of_structures(const float* __restrict__ x, float* __restrict__ y) {
  const unsigned i = group() * 256 + lane();
  y[i] = x[i * 3] + x[i * 3 + 1] * x[i * 3 + 2];
}

// lint: MEM002 MEM006
KERNEL(64) void volatile_flag(volatile int* flag, int* y) {
  y[lane()] = *flag; // lint here: MEM006
}

// lint: MEM010
KERNEL(256) void unmerged(const float* x, float* y) {
  const unsigned i = (group() * 256 + lane()) * 4;
  y[i] = x[i] + 1.0f;
  y[i + 1] = x[i + 1] + 2.0f; // lint here: MEM010
  y[i + 2] = x[i + 2] + 3.0f;
  y[i + 3] = x[i + 3] + 4.0f;
}
