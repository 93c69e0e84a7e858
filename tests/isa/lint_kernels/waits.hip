// Waits: loops that keep nothing in flight, prefetching undone by copies, waits for more than is used.
#include "kernel.h"

// lint: WAIT001 WAIT002
KERNEL(256) void drained(const float4v* __restrict__ x, float4v* __restrict__ y, unsigned count) {
  float4v sum = 0;
  ROLLED for (unsigned i = 0; i < count; ++i)
    sum += x[i * 256 + lane()]; // lint here: WAIT001
  y[lane()] = sum;
}

// lint: WAIT001 WAIT005
KERNEL(256) void copied_prefetch(const float4v* __restrict__ x, float4v* __restrict__ y, unsigned count) {
  float4v sum = 0, current = x[lane()];
  ROLLED for (unsigned i = 1; i < count; ++i) {
    const float4v next = x[i * 256 + lane()]; // lint here: WAIT005
    __builtin_amdgcn_sched_barrier(0);
#pragma unroll
    for (int n = 0; n < 4; ++n)
      sum = sum * current + 1.0f;
    __builtin_amdgcn_sched_barrier(0);
    for (int n = 0; n < 4; ++n)
      asm volatile("v_mov_b32 %0, %1" : "=v"(current[n]) : "v"(next[n])); // what `current = next` often becomes
  }
  y[lane()] = sum;
}

// lint: WAIT001
KERNEL(256) void strict_wait(const float4v* __restrict__ x, float4v* __restrict__ y, unsigned count) {
  float4v a = x[lane()], b = x[256 + lane()];
  ROLLED for (unsigned i = 2; i < count; i += 2) {
    __builtin_amdgcn_sched_barrier(0);
    const float4v c = x[i * 256 + lane()], d = x[i * 256 + 256 + lane()];
    __builtin_amdgcn_sched_barrier(0);
    a *= b;
    a *= a + b;
    a *= a + b;
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
    __builtin_amdgcn_sched_barrier(0);
    a += c;
    __builtin_amdgcn_sched_barrier(0);
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_sched_barrier(0);
    b += d;
  }
  y[lane()] = a + b;
}

// lint: SYNC001 WAIT001
KERNEL(256) void drained_barrier(const float4v* __restrict__ x, float4v* __restrict__ y, unsigned count) {
  SHARED float4v tile[256];
  float4v sum = 0, next = x[lane()];
  ROLLED for (unsigned i = 1; i < count; ++i) {
    tile[lane()] = next;
    next = x[i * 256 + lane()];
    __builtin_amdgcn_s_waitcnt(0x0070); // vmcnt(0) lgkmcnt(0) // lint here: SYNC001
    __builtin_amdgcn_s_barrier();
    sum += tile[lane() ^ 1] * tile[lane() ^ 3];
    __builtin_amdgcn_s_waitcnt(0xc07f); // lgkmcnt(0)
    __builtin_amdgcn_s_barrier();
  }
  y[lane()] = sum;
}

// lint: SYNC003
KERNEL(64) void barrier_of_one_wave(float4v* y) {
  y[lane()] = 1.0f;
  asm volatile("s_barrier"); // lint here: SYNC003
}
