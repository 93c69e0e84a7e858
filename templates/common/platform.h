// The one place that spells compiler builtins: attributes, ids, wave operations and single instructions.
#pragma once

// hipRTC's own header, when it is in place, defines these already.
#ifndef __global__
#define __global__ __attribute__((global))
#endif
#ifndef __device__
#define __device__ __attribute__((device))
#endif
#ifndef __shared__
#define __shared__ __attribute__((shared))
#endif
#define KILN_DEVICE static inline __attribute__((device, always_inline, unused))
#define KILN_MEMBER inline __attribute__((device, always_inline))
#define KILN_LAMBDA __attribute__((always_inline))
// A kernel of exactly `threads` work-items a workgroup.
#define KILN_KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads)))
// Of its kernel: at most 256 registers, as for two waves a SIMD. LLVM then leaves the results of matrix instructions in VGPRs;
// in AGPRs, other instructions need a copy of each.
#define KILN_VGPRS_ONLY __attribute__((amdgpu_waves_per_eu(2)))

namespace kiln {

using f32 = float;
using f16 = _Float16;
using bf16 = __bf16;
using i32 = int;
using i64 = long long;
using i8 = signed char;
using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

// Four 8-bit floats in memory; what they mean is in convert.h.
struct e4m3fn { u8 bits; };
struct e4m3fnuz { u8 bits; };
struct e5m2 { u8 bits; };
struct e5m2fnuz { u8 bits; };
// Two 4-bit numbers, the first in the low half; what they mean is in skinny_gemm/scales.h.
struct u4x2 { u8 bits; };

inline constexpr int wave_size = 64;
inline constexpr int xcds = 8; // of MI300X and MI350X in their usual partition: workgroups go to them in turn

#if defined(__gfx950__)
inline constexpr bool has_ocp_fp8 = true;
inline constexpr bool has_dot2_bf16 = true;
inline constexpr bool has_permlane_swap = true;
inline constexpr bool has_wide_fp8_mfma = true; // 16x16x128 and 32x32x64 f8f6f4
inline constexpr bool has_cvt_pk_bf16 = true;
inline constexpr bool has_direct_to_lds = true; // of 128 bits a lane
#else
inline constexpr bool has_ocp_fp8 = false;
inline constexpr bool has_dot2_bf16 = false;
inline constexpr bool has_permlane_swap = false;
inline constexpr bool has_wide_fp8_mfma = false;
inline constexpr bool has_cvt_pk_bf16 = false;
inline constexpr bool has_direct_to_lds = false; // of 32 bits only
#endif

namespace platform {

KILN_DEVICE u32 thread_id() { return __builtin_amdgcn_workitem_id_x(); }
KILN_DEVICE u32 block_x() { return __builtin_amdgcn_workgroup_id_x(); }
KILN_DEVICE u32 block_y() { return __builtin_amdgcn_workgroup_id_y(); }

// The value of the first active lane, known to the compiler to be the same in all.
KILN_DEVICE u32 uniform(u32 value) { return static_cast<u32>(__builtin_amdgcn_readfirstlane(static_cast<int>(value))); }
KILN_DEVICE f32 uniform(f32 value) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_readfirstlane(__builtin_bit_cast(int, value)));
}
KILN_DEVICE f32 read_lane(f32 value, int lane) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_readlane(__builtin_bit_cast(int, value), lane));
}

// Waits for the LDS operations of this wave, then for all waves of the workgroup.
KILN_DEVICE void barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup", "local");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup", "local");
}
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
  if (thread_id() % 64) return;
  if constexpr (beside_direct_loads) asm volatile("ds_write_b32 %0, %1" : : "v"(lds_address(flag)), "v"(value) : "memory");
  else __hip_atomic_store(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
KILN_DEVICE void nap() { __builtin_amdgcn_s_sleep(1); } // 64 to 127 clocks
// Stores of this wave before it are seen, by whoever acquires afterwards, in all of the device; and the other side of that.
KILN_DEVICE void release_to_device() { __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent"); }
KILN_DEVICE void acquire_from_device() { __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent"); }
// Adds 1 for the whole device and returns the count before.
KILN_DEVICE u32 count_up(u32* counter) { return __hip_atomic_fetch_add(counter, 1u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT); }

// Nothing moves across it at compile time.
KILN_DEVICE void schedule_barrier() { __builtin_amdgcn_sched_barrier(0); }
// Between the last matrix instruction and what reads its result or reuses its registers. That takes up to 11 wait states on
// gfx942 and 12 on gfx950 behind 8 passes (16 x 16), 19 and 20 behind 16 (32 x 32). LLVM 21 leaves less where paths of different
// lengths lead from the one to the other: it looks at one of them.
template <bool large_tiles> KILN_DEVICE void settle_sums() {
  schedule_barrier();
#if defined(__gfx950__)
  asm volatile("s_nop 11");
#else
  asm volatile("s_nop 10");
#endif
  if constexpr (large_tiles) asm volatile("s_nop 7");
  schedule_barrier();
}
// Adds to a number in global memory for the whole device.
KILN_DEVICE void add_for_device(f32* to, f32 value) {
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) f32*)to, value);
}

// Keeps what is computed from an offset behind this place. An offset that is widened to 64 bits before a loop is added to
// its base as a vector of 64 bits there; widened beside the access, it is part of the access.
KILN_DEVICE void stay_here(u32& offset) { asm volatile("" : "+v"(offset)); }
// 16 bytes at base + offset; streamed: that nobody needs again.
using u32x4 = u32 __attribute__((ext_vector_type(4)));
KILN_DEVICE u32x4 load_word(const char* base, u32 offset) { return *reinterpret_cast<const u32x4*>(base + offset); }
KILN_DEVICE u32x4 load_streamed(const char* base, u32 offset) {
  return __builtin_nontemporal_load(reinterpret_cast<const u32x4*>(base + offset));
}
#if defined(__gfx950__)
// 16 bytes at base + offset of each lane to LDS, lane after lane. `streamed`: nobody needs them again (cache policy nt).
// The base is hidden from the compiler, which otherwise adds constant parts of it to the lanes' offsets, as 64-bit numbers.
template <bool streamed> KILN_DEVICE void load_to_lds(const char* base, u32 offset, u32x4 (&to)[64]) {
  using Global = const __attribute__((address_space(1))) void;
  using Local = __attribute__((address_space(3))) void;
  asm("" : "+s"(base));
  __builtin_amdgcn_global_load_lds((Global*)(base + offset), (Local*)to, 16, 0, streamed ? 2 : 0);
}
#else
template <bool streamed> void load_to_lds(const char* base, u32 offset, u32x4 (&to)[64]) = delete;
#endif
// Until at most `left` loads of this wave are in flight: what direct loads to LDS need, whose landing no register shows.
template <int left> KILN_DEVICE void await_loads() {
  schedule_barrier();
  __builtin_amdgcn_s_waitcnt((left & 15) | (left >> 4) << 14 | 0x0f70); // vmcnt; the other counters at their largest
  asm volatile("" ::: "memory");
  schedule_barrier();
}
// A register whose content does not matter. (__builtin_nondeterministic_value costs a v_mov of 0 each time.)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
KILN_DEVICE u32 any_value() {
  u32 value;
  return value;
}
#pragma clang diagnostic pop
// A number that the compiler cannot see through, the same in all lanes.
KILN_DEVICE u32 opaque(u32 value) {
  asm("" : "+s"(value));
  return value;
}
// A value in registers that the compiler forgets the origin of: it then holds the value itself, not a wider form of it
// that it was computed from or will be converted to.
template <class T> KILN_DEVICE T opaque_registers(T value) {
  if constexpr (sizeof(T) == 4) {
    u32 bits = __builtin_bit_cast(u32, value);
    asm("" : "+v"(bits));
    return __builtin_bit_cast(T, bits);
  } else if constexpr (sizeof(T) % 4 == 0 && sizeof(T) <= 16) {
    using Registers = u32 __attribute__((ext_vector_type(sizeof(T) / 4)));
    auto registers = __builtin_bit_cast(Registers, value);
    asm("" : "+v"(registers));
    return __builtin_bit_cast(T, registers);
  } else {
    return value;
  }
}
// -0.0 that the compiler cannot see through. fma(f32(h), f32(w), opaque_negative_zero()) is exactly h * w and selects
// v_fma_mix_f32, which converts its f16 operands for free; with a visible -0.0 LLVM folds it to conversions and a product.
KILN_DEVICE f32 opaque_negative_zero() {
  f32 zero;
  asm("" : "=s"(zero) : "0"(-0.0f));
  return zero;
}

// Lane exchanges inside 16 lanes; every lane gets a value. Control words: LLVM's SIDefines.h, enum DppCtrl.
enum class Dpp : int { quad_swap1 = 0xB1 /* quad_perm:[1,0,3,2] */, quad_swap2 = 0x4E /* quad_perm:[2,3,0,1] */,
                       half_mirror = 0x141, mirror = 0x140 };
template <Dpp control> KILN_DEVICE f32 dpp(f32 value) {
  const int bits = __builtin_bit_cast(int, value);
  return __builtin_bit_cast(f32, __builtin_amdgcn_update_dpp(bits, bits, static_cast<int>(control), 0xf, 0xf, true));
}

KILN_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
#if defined(__gfx950__)
// Rows of 16 lanes (distance 16) or halves of 32 (distance 32) exchanged: {even row's value, odd row's value} in both.
struct Halves {
  f32 even, odd;
};
template <int distance> KILN_DEVICE Halves swap_halves(f32 value) {
  const u32 bits = __builtin_bit_cast(u32, value);
  const auto both = distance == 16 ? __builtin_amdgcn_permlane16_swap(bits, bits, false, false)
                                   : __builtin_amdgcn_permlane32_swap(bits, bits, false, false);
  // Through variables: clang 21 takes element 0 for any element that __builtin_bit_cast is given of a vector.
  const u32 even = both[0], odd = both[1];
  return {__builtin_bit_cast(f32, even), __builtin_bit_cast(f32, odd)};
}
#endif

// Single instructions. Bounds as documented for the instruction: 1 ulp, results below 2^-126 are flushed to 0.
KILN_DEVICE f32 exp2(f32 x) { return __builtin_amdgcn_exp2f(x); }
KILN_DEVICE f32 log2(f32 x) { return __builtin_amdgcn_logf(x); }
KILN_DEVICE f32 rcp(f32 x) { return __builtin_amdgcn_rcpf(x); }
KILN_DEVICE f32 rsqrt(f32 x) { return __builtin_amdgcn_rsqf(x); }
KILN_DEVICE f32 sqrt(f32 x) { return __builtin_amdgcn_sqrtf(x); }
// sin and cos of `x` turns, for |x| <= 256.
KILN_DEVICE f32 sin_turns(f32 x) { return __builtin_amdgcn_sinf(x); }
KILN_DEVICE f32 cos_turns(f32 x) { return __builtin_amdgcn_cosf(x); }
KILN_DEVICE f32 fract(f32 x) { return __builtin_amdgcn_fractf(x); }
KILN_DEVICE f32 median(f32 a, f32 b, f32 c) { return __builtin_amdgcn_fmed3f(a, b, c); }

using f16x2 = f16 __attribute__((ext_vector_type(2)));
using bf16x2 = bf16 __attribute__((ext_vector_type(2)));
using f32x2 = f32 __attribute__((ext_vector_type(2)));
// a.x * b.x + a.y * b.y + c in f32.
KILN_DEVICE f32 dot2(f16x2 a, f16x2 b, f32 c) { return __builtin_amdgcn_fdot2(a, b, c, false); }
#if defined(__gfx950__)
KILN_DEVICE f32 dot2(bf16x2 a, bf16x2 b, f32 c) { return __builtin_amdgcn_fdot2_f32_bf16(a, b, c, false); }
#endif

// Two f32 to two fp8 bytes in the low or high half of `old`, and back. The bytes are of the target's own flavour.
template <bool high> KILN_DEVICE u32 pack_e4m3(f32 a, f32 b, u32 old) {
  return static_cast<u32>(__builtin_amdgcn_cvt_pk_fp8_f32(a, b, static_cast<int>(old), high));
}
template <bool high> KILN_DEVICE u32 pack_e5m2(f32 a, f32 b, u32 old) {
  return static_cast<u32>(__builtin_amdgcn_cvt_pk_bf8_f32(a, b, static_cast<int>(old), high));
}
template <bool high> KILN_DEVICE f32x2 unpack_e4m3(u32 bytes) {
  return __builtin_amdgcn_cvt_pk_f32_fp8(static_cast<int>(bytes), high);
}
template <bool high> KILN_DEVICE f32x2 unpack_e5m2(u32 bytes) {
  return __builtin_amdgcn_cvt_pk_f32_bf8(static_cast<int>(bytes), high);
}

} // namespace platform
} // namespace kiln
