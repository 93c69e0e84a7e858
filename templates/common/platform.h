// With instructions.h the one place that spells compiler builtins: attributes, ids, memory, and operations of waves.
#pragma once
#include "common/config.h"

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
// With KILN_LINES_OF_SPEC an instruction of a function of these headers has the line that calls it in line tables, not its own.
#ifdef KILN_LINES_OF_SPEC
#define KILN_OWN_LINES __attribute__((nodebug))
#else
#define KILN_OWN_LINES
#endif
#define KILN_DEVICE static inline __attribute__((device, always_inline, unused)) KILN_OWN_LINES
#define KILN_MEMBER inline __attribute__((device, always_inline)) KILN_OWN_LINES
#define KILN_LAMBDA __attribute__((always_inline)) KILN_OWN_LINES
// bit_cast for a struct: as the result of a function, LLVM moves its parts in another order.
#define KILN_BIT_CAST(To, x) __builtin_bit_cast(To, x)
// A kernel of exactly `threads` work-items a workgroup.
#define KILN_KERNEL(threads) extern "C" __attribute__((global, amdgpu_flat_work_group_size(threads, threads)))
// Gives a kernel at most 256 registers, as for two waves a SIMD. LLVM then leaves the results of matrix instructions in VGPRs; other
// instructions need a copy of what is in AGPRs.
#define KILN_VGPRS_ONLY __attribute__((amdgpu_waves_per_eu(2)))
// Gives a kernel so few registers that `waves` of them share a SIMD.
#define KILN_WAVES_PER_EU(waves) __attribute__((amdgpu_waves_per_eu(waves)))

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
template <class T, int N> using Vec = T __attribute__((ext_vector_type(N))); // N elements that one lane holds

// 8-bit floats in memory, one of each kind; what they mean is in convert.h.
struct e4m3fn { u8 bits; };
struct e4m3fnuz { u8 bits; };
struct e5m2 { u8 bits; };
struct e5m2fnuz { u8 bits; };
// Two numbers of 4 bits, the first in the low half; and a power of two. What they mean is in common/mx_convert.h.
struct e2m1 { u8 bits; };
struct e8m0 { u8 bits; };
// Two 4-bit numbers, the first in the low half; what they mean is in gemm/operands/.
struct u4x2 { u8 bits; };

// What the target has, by the names of gen/plan/target.h and isa_checks/target/target_table.h.
#if defined(__gfx950__)
inline constexpr bool has_ocp_fp8 = true;             // fp8 is e4m3fn and e5m2; else e4m3fnuz and e5m2fnuz
inline constexpr bool has_doubled_mfma = true;        // shapes of twice the k in the same passes: 16x16x32 f16
inline constexpr bool has_scaled_mfma = true;         // 16x16x128 and 32x32x64 f8f6f4
inline constexpr bool has_scaled_convert = true;      // v_cvt_scalef32_*, between wide types and OCP's 4 to 8 bits
inline constexpr bool has_native_bf16_convert = true; // v_cvt_pk_bf16_f32
inline constexpr bool has_dot2_bf16 = true;           // v_dot2_f32_bf16
inline constexpr bool has_permlane_swap = true;       // v_permlane16_swap_b32, v_permlane32_swap_b32
inline constexpr bool has_wide_lds_dma = true;        // global_load_lds_dwordx4
#else
inline constexpr bool has_ocp_fp8 = false, has_doubled_mfma = false, has_scaled_mfma = false, has_native_bf16_convert = false;
inline constexpr bool has_dot2_bf16 = false, has_permlane_swap = false, has_wide_lds_dma = false, has_scaled_convert = false;
#endif
inline constexpr int xcds = 8; // of MI300X and MI350X in their usual partition: workgroups go to them in turn

// The same bits as another type; the same numbers as a vector of another element type.
template <class To, class From> KILN_DEVICE constexpr To bit_cast(From x) { return __builtin_bit_cast(To, x); }
template <class To, class From> KILN_DEVICE To convert(From x) { return __builtin_convertvector(x, To); }

namespace platform {

inline constexpr f32 infinity = __builtin_inff(), nan = __builtin_nanf("");
template <class V> KILN_DEVICE V abs(V x) { return __builtin_elementwise_abs(x); }
template <class V> KILN_DEVICE V fma(V a, V b, V c) { return __builtin_elementwise_fma(a, b, c); }
KILN_DEVICE f32 min(f32 a, f32 b) { return __builtin_fminf(a, b); } // IEEE minNum: NaN loses against a number
KILN_DEVICE f32 max(f32 a, f32 b) { return __builtin_fmaxf(a, b); }
KILN_DEVICE f32 floor(f32 x) { return __builtin_floorf(x); }
KILN_DEVICE f32 round_to_even(f32 x) { return __builtin_rintf(x); }

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
  if (thread_id() % wave_size) return;
  if constexpr (beside_direct_loads) asm volatile("ds_write_b32 %0, %1" : : "v"(lds_address(flag)), "v"(value) : "memory");
  else __hip_atomic_store(flag, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
}
KILN_DEVICE void nap() { __builtin_amdgcn_s_sleep(1); } // 64 to 127 clocks
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

// A number that workgroups of the device tell each other: written and read as a whole, past the caches that others do not see.
// The compiler does not always see that these are global addresses.
using GlobalU64 = __attribute__((address_space(1))) u64;
KILN_DEVICE u64 load_for_device(const u64* from) {
  return __hip_atomic_load((const GlobalU64*)from, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
KILN_DEVICE void store_for_device(u64* to, u64 value) {
  __hip_atomic_store((GlobalU64*)to, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}

// Nothing moves across it at compile time.
KILN_DEVICE void schedule_barrier() { __builtin_amdgcn_sched_barrier(0); }
// Wait states that software leaves between a matrix instruction of `passes` passes (of 4 clocks) and an instruction that reads or
// overwrites its result: LLVM's GCNHazardRecognizer.cpp, GFX940_XDL_N_PassWriteVgprVALUMemExpReadWaitStates and GFX950's. 8 passes
// and more; tests/compile/target_tables.cpp compares them with isa_checks' table.
constexpr int matrix_wait_states(int passes) { return passes + (has_doubled_mfma ? 4 : 3); }
template <int states> KILN_DEVICE void wait_states() { // s_nop N is N + 1 of them, up to 16
  asm volatile("s_nop %0" : : "n"(states - 1));
}
// Stands between the last matrix instruction and what reads its result or reuses its registers. LLVM 21 leaves too few wait states
// if paths of different lengths lead from the one to the other: it looks at one of them. The longest instructions have 8 passes for
// 16 x 16 tiles and 16 passes for 32 x 32.
template <int edge> KILN_DEVICE void settle_sums() {
  schedule_barrier();
  wait_states<matrix_wait_states(8)>();
  if constexpr (edge == 32) wait_states<matrix_wait_states(16) - matrix_wait_states(8)>();
  schedule_barrier();
}
// Adds to a number in global memory for the whole device.
KILN_DEVICE void add_for_device(f32* to, f32 value) {
  __builtin_amdgcn_global_atomic_fadd_f32((__attribute__((address_space(1))) f32*)to, value);
}

// Keeps what is computed from an offset behind this place. If LLVM widens an offset to 64 bits before a loop, it adds it to its base
// there, in VGPRs; widened beside the access, it is part of the access. The same for what VALU makes for an f8f6f4 matrix instruction: LLVM
// 21 moves those behind later branches, and with them what they take, where lanes that do not take the branch compute nothing.
template <class T> KILN_DEVICE void stay_here(T& value) { asm volatile("" : "+v"(value)); }
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
// A value whose origin the compiler forgets: it then holds the value itself, not a wider form of it that it was computed from or will
// be converted to.
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
// A value that is computed here, and not where a branch behind needs it. Less than 4 bytes stay as they are.
template <class T> KILN_DEVICE T computed_here(T value) {
  if constexpr (sizeof(T) % 4 == 0) {
    struct Words { u32 at[sizeof(T) / 4]; };
    auto words = __builtin_bit_cast(Words, value);
#pragma unroll
    for (u32& word : words.at) asm volatile("" : "+v"(word));
    return __builtin_bit_cast(T, words);
  } else {
    return value;
  }
}
// As count_up, for a count that is needed later. If LLVM sees that all lanes add to one place, it combines them, and waits for the
// result at once.
KILN_DEVICE u32 count_up_ahead(u32* counter, u32 by = 1) {
  const u64 address = computed_here(reinterpret_cast<u64>(counter));
  return __hip_atomic_fetch_add(reinterpret_cast<__attribute__((address_space(1))) u32*>(address), by, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
// As computed_here, for a value that all lanes have.
KILN_DEVICE u32 known_here(u32 value) {
  asm volatile("" : "+s"(value));
  return value;
}
// Arguments that are loaded here, together, and not where a branch behind needs them.
template <class T> KILN_DEVICE void argument_here(T argument) { asm volatile("" : : "s"(argument)); }
template <class... T> KILN_DEVICE void arguments_here(T... arguments) { (argument_here(arguments), ...); }
// -0.0 that the compiler cannot see through. fma(f32(h), f32(w), opaque_negative_zero()) is exactly h * w and selects
// v_fma_mix_f32, which converts its f16 operands for free; with a visible -0.0 LLVM folds it to conversions and a product.
KILN_DEVICE f32 opaque_negative_zero() {
  f32 zero;
  asm("" : "=s"(zero) : "0"(-0.0f));
  return zero;
}

// Lane exchanges inside 16 lanes; every lane gets a value. Control words: LLVM's SIDefines.h, enum DppCtrl.
enum class Dpp : int { quad_swap1 = 0xB1 /* quad_perm:[1,0,3,2] */, quad_swap2 = 0x4E /* quad_perm:[2,3,0,1] */,
                       quad_mirror = 0x1B /* quad_perm:[3,2,1,0] */, half_mirror = 0x141, mirror = 0x140, rotate8 = 0x128 /* row_ror:8 */ };
template <Dpp control> KILN_DEVICE f32 dpp(f32 value) {
  const int bits = __builtin_bit_cast(int, value);
  return __builtin_bit_cast(f32, __builtin_amdgcn_update_dpp(bits, bits, static_cast<int>(control), 0xf, 0xf, true));
}

// What the lane that many places below in its 16 has, or below in the wave; the last lane of the 16 (32) below. 0 where there is none,
// and in rows of 16 lanes that `rows` has no bit for.
enum class Shift : int { by_1 = 0x111, by_2 = 0x112, by_4 = 0x114, by_8 = 0x118, wave_by_1 = 0x138, end_of_16 = 0x142, end_of_32 = 0x143 };
template <Shift control, int rows = 0xf> KILN_DEVICE f32 shifted(f32 value) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_update_dpp(0, __builtin_bit_cast(int, value), static_cast<int>(control), rows, 0xf, false));
}
template <Shift control, int rows = 0xf> KILN_DEVICE u32 shifted(u32 value) {
  return static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), static_cast<int>(control), rows, 0xf, false));
}
// The lowest of the lanes that `condition` holds in, if there is one; and the number of one lane, the same in all.
KILN_DEVICE int first_lane(bool condition) { return __builtin_ctzll(__builtin_amdgcn_ballot_w64(condition)); }
template <class Lane> KILN_DEVICE u32 read_lane(u32 value, Lane lane) {
  return static_cast<u32>(__builtin_amdgcn_readlane(static_cast<int>(value), static_cast<int>(lane)));
}
// Accesses of this wave's lanes to LDS before it are done before those after it.
KILN_DEVICE void wave_barrier() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront", "local");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront", "local");
}

// The lanes in which it holds, a bit each; how many lanes such bits name, and how many below this one.
KILN_DEVICE u64 lanes_where(bool condition) { return __builtin_amdgcn_ballot_w64(condition); }
KILN_DEVICE u32 count_lanes(u64 lanes) { return static_cast<u32>(__builtin_popcountll(lanes)); }
KILN_DEVICE u32 lanes_below(u64 lanes) {
  return __builtin_amdgcn_mbcnt_hi(static_cast<u32>(lanes >> 32), __builtin_amdgcn_mbcnt_lo(static_cast<u32>(lanes), 0u));
}

// Whether it holds in some lane; all take part.
KILN_DEVICE bool any_lane(bool condition) { return __builtin_amdgcn_ballot_w64(condition) != 0; }
KILN_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
// Exchanges rows of 16 lanes (distance 16) or halves of 32 (distance 32): {even row's value, odd row's value} in both.
struct Halves {
  f32 even, odd;
};
#if defined(__gfx950__)
// The odd row (half) of `a` and the even one of `b` change places.
template <int distance> KILN_DEVICE void swap_rows(u32& a, u32& b) {
  const auto both = distance == 16 ? __builtin_amdgcn_permlane16_swap(a, b, false, false) : __builtin_amdgcn_permlane32_swap(a, b, false, false);
  // Through variables: clang 21 takes element 0 for any element that __builtin_bit_cast is given of a vector.
  a = both[0], b = both[1];
}
template <int distance> KILN_DEVICE Halves swap_halves(f32 value) {
  u32 even = __builtin_bit_cast(u32, value), odd = even;
  swap_rows<distance>(even, odd);
  return {__builtin_bit_cast(f32, even), __builtin_bit_cast(f32, odd)};
}
#else
template <int distance> void swap_rows(u32& a, u32& b) = delete;
template <int distance> Halves swap_halves(f32 value) = delete;
#endif

// What another lane has; all lanes take part. Through the paths of LDS, so that it takes as long as a read of LDS.
KILN_DEVICE f32 of_lane(f32 value, u32 lane) {
  return __builtin_bit_cast(f32, __builtin_amdgcn_ds_bpermute(static_cast<int>(lane * 4), __builtin_bit_cast(int, value)));
}
// What the lane whose number differs in the bit `distance` has; lanes that take part do so with that one. 1 to 8 by DPP; 16 and 32
// through the paths of LDS, where permlane swaps are not there.
template <int distance> KILN_DEVICE u32 of_partner_lane(u32 value) {
  const f32 bits = __builtin_bit_cast(f32, value);
  if constexpr (distance == 1) return __builtin_bit_cast(u32, dpp<Dpp::quad_swap1>(bits));
  else if constexpr (distance == 2) return __builtin_bit_cast(u32, dpp<Dpp::quad_swap2>(bits));
  else if constexpr (distance == 4) return __builtin_bit_cast(u32, dpp<Dpp::quad_mirror>(dpp<Dpp::half_mirror>(bits))); // 7 ^ 3
  else if constexpr (distance == 8) return __builtin_bit_cast(u32, dpp<Dpp::rotate8>(bits));
  else if constexpr (distance == 16) return static_cast<u32>(__builtin_amdgcn_ds_swizzle(static_cast<int>(value), 0x401f)); // lane ^ 16
  else return __builtin_bit_cast(u32, of_lane(bits, lane_id() ^ 32));
}
// The sum of the values of this lane and of all before it.
KILN_DEVICE u32 sum_up_to_lane(u32 value) {
  // row_shr:1, 2, 4 and 8 inside 16 lanes, then the last lane of a row of 16 to the next row, and of the first half to the second.
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x111, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x112, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x114, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x118, 0xf, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x142, 0xa, 0xf, false));
  value += static_cast<u32>(__builtin_amdgcn_update_dpp(0, static_cast<int>(value), 0x143, 0xc, 0xf, false));
  return value;
}

} // namespace platform
} // namespace kiln
