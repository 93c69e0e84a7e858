// Accesses to memory and LDS that are not plain ones, as functions: flags, fences, device scope, streamed and direct loads.
#pragma once
#include "common/platform.h"

namespace kiln::platform {

// Flags in LDS by which waves of a workgroup wait for one another. Accesses to LDS before release_lds are done when a flag
// that is raised after it is seen; accesses after acquire_lds are made after the read that saw the flag.
KILN_DEVICE u32 lds_address(const u32* of) {
  return static_cast<u32>(reinterpret_cast<u64>((const __attribute__((address_space(3))) u32*)of));
}
KILN_DEVICE void release_lds() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local"); }
KILN_DEVICE void acquire_lds() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local"); }
// `beside_direct_loads`: in a wave with direct loads to LDS in flight. The compiler takes those for writes of any LDS variable
// and waits for all of them before an access that it sees.
template <bool beside_direct_loads> KILN_DEVICE u32 read_flag(const u32* flag) {
  u32 value;
  if constexpr (beside_direct_loads) asm volatile("ds_read_b32 %0, %1\n\ts_waitcnt lgkmcnt(0)" : "=v"(value) : "v"(lds_address(flag)) : "memory");
  else value = __hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  return uniform(value);
}
template <bool beside_direct_loads> KILN_DEVICE void raise_flag(u32* flag, u32 value) {
  if (thread_id() % wave_size) return;
  if constexpr (beside_direct_loads) asm volatile("ds_write_b32 %0, %1" : : "v"(lds_address(flag)), "v"(value) : "memory");
  else __hip_atomic_store(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
// A count in LDS that one lane changes for its wave: what it was before, and whether it was `from` and is `to`.
KILN_DEVICE u32 add_in_workgroup(u32* count, u32 by) {
  u32 before = 0;
  if (lane_id() == 0) before = __hip_atomic_fetch_add(count, by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  return uniform(before);
}
// Every lane adds to a count of its own in LDS.
KILN_DEVICE u32 add_to_each_in_workgroup(u32* count, u32 by) { return __hip_atomic_fetch_add(count, by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP); }
KILN_DEVICE bool exchange_in_workgroup(u32* count, u32& from, u32 to) {
  if (lane_id() == 0) __hip_atomic_compare_exchange_strong(count, &from, to, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  const u32 wanted = to + 1;
  from = uniform(from);
  return from == wanted;
}
KILN_DEVICE void sleep() { __builtin_amdgcn_s_sleep(1); } // 64 to 127 clocks
// Stores of this wave before it are seen, by whoever acquires afterwards, in all of the device; and the other side of that.
KILN_DEVICE void release_to_device() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }
KILN_DEVICE void acquire_from_device() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }
// The same for the workgroup.
KILN_DEVICE void release_to_workgroup() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup"); }
KILN_DEVICE void acquire_from_workgroup() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup"); }
// Adds for the whole device and returns the count before.
KILN_DEVICE u32 count_up(u32* counter, u32 by = 1) {
  return __hip_atomic_fetch_add(counter, by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// A number that workgroups of the device exchange: written and read as a whole, past the caches that others do not see.
// The compiler does not always see that these are global addresses.
using GlobalU64 = __attribute__((address_space(1))) u64;
KILN_DEVICE u64 load_for_device(const u64* from) {
  return __hip_atomic_load((const GlobalU64*)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
KILN_DEVICE u32 load_for_device(const u32* from) {
  return __hip_atomic_load((const __attribute__((address_space(1))) u32*)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
KILN_DEVICE void store_for_device(u64* to, u64 value) {
  __hip_atomic_store((GlobalU64*)to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Adds to a number in global memory for the whole device.
KILN_DEVICE void add_for_device(f32* to, f32 value) {
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) f32*)to, value);
}

// Loads 16 bytes at base + offset; streamed: bytes that nobody needs again.
using u32x4 = u32 __attribute__((ext_vector_type(4)));
KILN_DEVICE u32x4 load_word(const char* base, u32 offset) { return *reinterpret_cast<const u32x4*>(base + offset); }
KILN_DEVICE u32x4 load_streamed(const char* base, u32 offset) {
  return __builtin_nontemporal_load(reinterpret_cast<const u32x4*>(base + offset));
}
KILN_DEVICE Vec<u32, 2> load_streamed_half(const char* base, u32 offset) {
  return __builtin_nontemporal_load(reinterpret_cast<const Vec<u32, 2>*>(base + offset));
}
// A number at a place that is the same in all lanes, and that no kernel writes meanwhile: a scalar load.
KILN_DEVICE i32 load_uniform(const i32* from) { return *reinterpret_cast<const __attribute__((address_space(4))) i32*>(reinterpret_cast<u64>(from)); }
#if defined(__gfx950__)
// Loads 16 bytes at base + offset of each lane to LDS, lane after lane. `streamed`: nobody needs them again (cache policy nt).
// The base is hidden from the compiler, which otherwise adds constant parts of it to the lanes' offsets, as 64-bit numbers.
template <bool streamed> KILN_DEVICE void load_to_lds(const char* base, u32 offset, u32x4 (&to)[wave_size]) {
  using Global = __attribute__((address_space(1))) void; // not const: clang 22 takes no other
  using Local = __attribute__((address_space(3))) void;
  asm("" : "+s"(base));
  __builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 16, 0, streamed ? 2 : 0);
}
#else
template <bool streamed> void load_to_lds(const char* base, u32 offset, u32x4 (&to)[wave_size]) = delete;
#endif
// Waits until at most `left` loads of this wave are in flight. Direct loads to LDS need it: no register shows their arrival.
template <int left> KILN_DEVICE void await_loads() {
  schedule_barrier();
  __builtin_amdgcn_s_waitcnt((left & 15) | (left >> 4) << 14 | 0x0f70); // vmcnt; the other counters at their largest
  asm volatile("" ::: "memory");
  schedule_barrier();
}
// As count_up, for a count that is needed later. If LLVM sees that all lanes add to one place, it combines them, and waits for the
// result at once.
KILN_DEVICE u32 count_up_ahead(u32* counter, u32 by = 1) {
  const u64 address = pin_computed(reinterpret_cast<u64>(counter));
  return __hip_atomic_fetch_add(reinterpret_cast<__attribute__((address_space(1))) u32*>(address), by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

} // namespace kiln::platform
