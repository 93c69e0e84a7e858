// Micro-benchmarks for the constants of a chip (kiln calibrate). Each kernel takes data, two results and a number of steps; the first result
// is the clocks that the steps took, the second what they computed, by which the host knows that they were made.
#pragma once
#include "common/memory_instructions.h"
#include "common/platform.h"

namespace kiln {

KILN_DEVICE u64 clocks() { return __builtin_readcyclecounter(); }

KILN_DEVICE void report(u64* out, u64 begin, u64 end, u32 result) {
  if (platform::thread_id() != 0 || platform::block_x() != 0) return;
  out[0] = end - begin;
  out[1] = result;
}

// `data` is a ring of byte offsets: each word says where the next one is. The next load waits for the one before.
KILN_KERNEL(64) void calibrate_global_chase(const u32* data, u64* out, u32 steps) {
  u32 at = 0;
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i)
    asm volatile("global_load_dword %0, %0, %1\n\ts_waitcnt vmcnt(0)" : "+v"(at) : "s"(data) : "memory");
  report(out, begin, clocks(), at);
}

KILN_KERNEL(64) void calibrate_scalar_chase(const u32* data, u64* out, u32 steps) {
  u32 at = 0;
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i)
    asm volatile("s_load_dword %0, %1, %0\n\ts_waitcnt lgkmcnt(0)" : "+s"(at) : "s"(data) : "memory");
  report(out, begin, clocks(), at);
}

KILN_KERNEL(64) void calibrate_lds_chase(const u32* data, u64* out, u32 steps) {
  __shared__ u32 ring[64];
  const u32 base = platform::lds_address(ring);
  ring[platform::thread_id()] = data[platform::thread_id()] + base;
  platform::barrier();
  u32 at = base;
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) asm volatile("ds_read_b32 %0, %0\n\ts_waitcnt lgkmcnt(0)" : "+v"(at) : : "memory");
  report(out, begin, clocks(), at - base);
}

// 16 instructions per step, each waits for the one before.
KILN_KERNEL(64) void calibrate_dependent(const u32*, u64* out, u32 steps) {
  u32 sum = 0;
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 16; ++k) asm volatile("v_add_u32 %0, %0, 1" : "+v"(sum));
  report(out, begin, clocks(), sum);
}

// 16 branches a step, each to the instruction behind it.
KILN_KERNEL(64) void calibrate_branch(const u32*, u64* out, u32 steps) {
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i)
#pragma unroll
    for (int k = 0; k < 16; ++k) asm volatile("s_branch 0");
  report(out, begin, clocks(), steps);
}

KILN_KERNEL(256) void calibrate_barrier(const u32*, u64* out, u32 steps) {
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) __builtin_amdgcn_s_barrier();
  report(out, begin, clocks(), steps);
}

KILN_KERNEL(64) void calibrate_store(u32* data, u64* out, u32 steps) {
  const u32 at = 4 * platform::thread_id();
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) asm volatile("global_store_dword %0, %1, %2\n\ts_waitcnt vmcnt(0)" : : "v"(at), "v"(i), "s"(data) : "memory");
  report(out, begin, clocks(), steps);
}

// A store, and what makes it visible to the device.
KILN_KERNEL(64) void calibrate_release(u32* data, u64* out, u32 steps) {
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) {
    data[platform::thread_id()] = i;
    platform::release_to_device();
  }
  report(out, begin, clocks(), steps);
}

KILN_KERNEL(64) void calibrate_acquire(const u32*, u64* out, u32 steps) {
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) platform::acquire_from_device();
  report(out, begin, clocks(), steps);
}

KILN_KERNEL(64) void calibrate_atomic(u32* data, u64* out, u32 steps) {
  u32 last = 0;
  const u64 begin = clocks();
  for (u32 i = 0; i < steps; ++i) {
    if (platform::thread_id() == 0) last = platform::count_up(data);
    asm volatile("s_waitcnt vmcnt(0)" : "+v"(last) : : "memory");
  }
  report(out, begin, clocks(), last);
}

// `steps` rounds over a workgroup's own part of data, `loads` of 16 bytes per lane under way at once.
template <int loads> KILN_DEVICE void read_stream(const u32* data, u64* out, u32 steps) {
  const auto* const from = reinterpret_cast<const Vec<u32, 4>*>(data) + static_cast<u64>(platform::block_x()) * steps * loads * 256 + platform::thread_id();
  Vec<u32, 4> sum{};
  for (u32 i = 0; i < steps; ++i) {
    Vec<u32, 4> words[loads];
#pragma unroll
    for (int k = 0; k < loads; ++k) words[k] = from[(static_cast<u64>(i) * loads + k) * 256];
#pragma unroll
    for (int k = 0; k < loads; ++k) sum ^= words[k];
  }
  if ((sum[0] ^ sum[1] ^ sum[2] ^ sum[3]) == 1) out[2] = 1; // never: the words are zeros, which the compiler cannot know
  report(out, 0, 0, steps);
}
KILN_KERNEL(256) void calibrate_read_1(const u32* data, u64* out, u32 steps) { read_stream<1>(data, out, steps); }
KILN_KERNEL(256) void calibrate_read_2(const u32* data, u64* out, u32 steps) { read_stream<2>(data, out, steps); }
KILN_KERNEL(256) void calibrate_read_4(const u32* data, u64* out, u32 steps) { read_stream<4>(data, out, steps); }
KILN_KERNEL(256) void calibrate_read_8(const u32* data, u64* out, u32 steps) { read_stream<8>(data, out, steps); }

KILN_KERNEL(256) void calibrate_write(u32* data, u64* out, u32 steps) {
  auto* const to = reinterpret_cast<Vec<u32, 4>*>(data) + static_cast<u64>(platform::block_x()) * steps * 256 + platform::thread_id();
  for (u32 i = 0; i < steps; ++i) to[static_cast<u64>(i) * 256] = Vec<u32, 4>{};
  report(out, 0, 0, steps);
}

KILN_KERNEL(64) void calibrate_empty(const u32*, u64*, u32) {}

// As much LDS as lets one workgroup run on a CU, so that others wait for its place.
KILN_KERNEL(64) void calibrate_alone(const u32*, u64* out, u32 steps) {
  __shared__ u32 room[16384 - 64];
  asm volatile("ds_write_b32 %0, %1" : : "v"(platform::lds_address(room)), "v"(steps) : "memory");
  report(out, 0, 0, steps);
}

} // namespace kiln
