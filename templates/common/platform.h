// With the headers of instructions the place that spells compiler builtins: attributes, ids, memory, and operations of waves.
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
// Gives a kernel at most 256 registers, as for two waves per SIMD. LLVM then leaves the results of matrix instructions in VGPRs; other
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

KILN_DEVICE u32 smaller(u32 a, u32 b) { return a < b ? a : b; } // min is an operation on f32

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

// The row of the target, and what device code asks of it.
namespace machine {
#if defined(__gfx950__)
inline constexpr const Arch& here = gfx950;
#else
inline constexpr const Arch& here = gfx942;
#endif
} // namespace machine
inline constexpr bool has_ocp_fp8 = machine::here.fp8 == machine::Fp8Format::ocp; // fp8 is e4m3fn and e5m2; else e4m3fnuz and e5m2fnuz
inline constexpr bool has_doubled_mfma = machine::here.doubled_mfma, has_scaled_mfma = machine::here.scaled_mfma, has_scaled_convert = machine::here.scaled_convert;
inline constexpr bool has_native_bf16_convert = machine::here.native_bf16_convert, has_dot2_bf16 = machine::here.dot2_bf16;
inline constexpr bool has_permlane_swap = machine::here.permlane_swap, has_wide_lds_dma = machine::here.wide_lds_dma;
inline constexpr int xcds = machine::here.xcds;

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
// Nothing moves across it at compile time.
KILN_DEVICE void schedule_barrier() { __builtin_amdgcn_sched_barrier(0); }
// A register whose content does not matter. (__builtin_nondeterministic_value costs a v_mov of 0 each time.)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wuninitialized"
KILN_DEVICE u32 any_value() {
  u32 value;
  return value;
}
#pragma clang diagnostic pop
// A number that the compiler cannot see through, the same in all lanes.
KILN_DEVICE u32 pin_constant(u32 value) {
  asm("" : "+s"(value));
  return value;
}
// All bits or none, which the compiler does not take back to the condition.
KILN_DEVICE u64 pin_mask(bool all) {
  u32 half = all ? ~0u : 0;
  asm("" : "+v"(half));
  half = uniform(half);
  return static_cast<u64>(half) << 32 | half;
}
// Keeps what is computed from an offset behind this place. If LLVM widens an offset to 64 bits before a loop, it adds it to its base
// there, in VGPRs; widened beside the access, it is part of the access. The same for what VALU makes for an f8f6f4 matrix instruction: LLVM
// 21 moves those behind later branches, and with them what they take, where lanes that do not take the branch compute nothing.
template <class T> KILN_DEVICE void pin_vgpr(T& value) { asm volatile("" : "+v"(value)); }
// A base in scalar registers, to which no offset is added before the access.
template <class T> KILN_DEVICE T* uniform_base(T* base) {
  const u64 address = reinterpret_cast<u64>(base);
  auto* global = (__attribute__((address_space(1))) T*)(static_cast<u64>(uniform(static_cast<u32>(address >> 32))) << 32 |
                                                        uniform(static_cast<u32>(address)));
  asm("" : "+s"(global));
  return (T*)global;
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
// Ends the life of a value in VGPRs that is not used any more, where the compiler cannot tell.
template <class T> KILN_DEVICE void forget(T& value) { asm("" : "=v"(value)); }
// A value that is computed here, and not where a branch behind needs it. Numbers of other sizes than 2 and 4 bytes stay as they are.
template <class T> KILN_DEVICE T pin_computed(T value) {
  if constexpr (sizeof(T) % 4 == 0) {
    struct Words { u32 at[sizeof(T) / 4]; };
    auto words = __builtin_bit_cast(Words, value);
#pragma unroll
    for (u32& word : words.at) asm volatile("" : "+v"(word));
    return __builtin_bit_cast(T, words);
  } else if constexpr (sizeof(T) == 2) {
    u32 word = __builtin_bit_cast(unsigned short, value);
    asm volatile("" : "+v"(word));
    return __builtin_bit_cast(T, static_cast<unsigned short>(word));
  } else {
    return value;
  }
}
// As pin_computed, for a value that all lanes have.
KILN_DEVICE u32 pin_sgpr(u32 value) {
  asm volatile("" : "+s"(value));
  return value;
}
// Arguments that are loaded here, together, and not where a branch behind needs them.
template <class T> KILN_DEVICE void pin_argument(T argument) { asm volatile("" : : "s"(argument)); }
template <class... T> KILN_DEVICE void pin_arguments(T... arguments) { (pin_argument(arguments), ...); }
// -0.0 that the compiler cannot see through. fma(f32(h), f32(w), pin_negative_zero()) is exactly h * w and selects
// v_fma_mix_f32, which converts its f16 operands for free; with a visible -0.0 LLVM folds it to conversions and a product.
KILN_DEVICE f32 pin_negative_zero() {
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

} // namespace platform
} // namespace kiln
