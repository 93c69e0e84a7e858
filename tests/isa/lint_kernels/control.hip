// Control flow and atomics.
#include "kernel.h"

typedef __amdgpu_buffer_rsrc_t Buffer;

// lint: CF002
KERNEL(64) void divergent_descriptor(void* const* __restrict__ tables, int* __restrict__ y) {
  const Buffer table = __builtin_amdgcn_make_buffer_rsrc(tables[lane()], 0, 4096, 0x20000);
  y[lane()] = __builtin_amdgcn_raw_buffer_load_b32(table, lane() * 4, 0, 0); // lint here: CF002
}

// lint: CF004
__attribute__((noinline)) DEVICE float opaque(float x) {
  asm volatile("" : "+v"(x));
  return x * x;
}
KERNEL(64) void call_in_loop(float* y, unsigned count) {
  float v = y[lane()];
  ROLLED for (unsigned i = 0; i < count; ++i)
    v = opaque(v); // lint here: CF004
  y[lane()] = v;
}

// lint: ATM001
KERNEL(64) void unused_result(int* y) {
  int old;
  asm volatile("global_atomic_add %0, %1, %2, off sc0\n\ts_waitcnt vmcnt(0)" : "=v"(old) : "v"(y + lane()), "v"(1)); // lint here: ATM001
}

// lint:
KERNEL(64) void used_result(int* y, int* z) { z[__hip_atomic_fetch_add(y, 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)] = 1; }

// lint: ATM002
KERNEL(64) void system_scope(int* y) {
  __hip_atomic_fetch_add(y + lane(), 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM); // lint here: ATM002
}

// lint: ATM003
KERNEL(64) void float_max_by_cas(unsigned* y, const unsigned* x) {
  const unsigned mine = x[lane()];
  unsigned old = y[lane() & 7];
  while (old * 3 < mine && !__hip_atomic_compare_exchange_strong(y + (lane() & 7), &old, mine, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT)) {
  }
}

// lint: HAZ002
KERNEL(64) void missing_wait_states(const int* x, int* y) {
  int value;
  asm volatile("v_readfirstlane_b32 s8, %1\n\tv_readfirstlane_b32 s9, %2\n\tglobal_load_dword %0, %3, s[8:9]\n\ts_waitcnt vmcnt(0)" // lint here: HAZ002
               : "=&v"(value)
               : "v"(static_cast<int>(reinterpret_cast<unsigned long>(x))), "v"(static_cast<int>(reinterpret_cast<unsigned long>(x) >> 32)), "v"(lane() * 4)
               : "s8", "s9");
  y[lane()] = value;
}
