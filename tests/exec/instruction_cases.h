// Tables of instructions with expected values: many instructions run over many inputs in a few programs.
#pragma once
#include "tests/exec/lane_program.h"
#include <span>

namespace kiln::exec::testing {

// Input registers by number: in[1] is v1, or s21 of a scalar instruction, up to 7.
using In = const std::uint32_t*;

enum class Compare : std::uint8_t {
  word,
  half_word,
  two_words,
  f32,
  f16,
  two_f16,
  f64,
  two_f32,
  f32_ulp,
  f16_ulp,
  f16_number,
  f64_quotient
}; // f16_number: zeros are equal; _ulp: or one step away; f64_quotient: that for denormals

// `text` has @ for the destination register and @@ for a pair of them; both hold in[6] and in[7] before. VCC has the lanes where
// in[3] < in[4] as unsigned numbers.
struct VectorCase {
  const char* text;
  std::uint64_t (*expected)(In in);
  Compare compare = Compare::word;
};
// Runs every case over every set of inputs and checks each lane; returns how many results were checked.
int check_vector(std::span<const VectorCase> cases, const std::vector<Pairs>& sets, const char* arch = "gfx942");

// A scalar instruction: inputs in s21 to s27, @ is s40 and @@ is s[40:41], SCC is the low bit of in[5] before.
struct ScalarResult {
  std::uint64_t value;
  bool scc;
};
struct ScalarCase {
  const char* text;
  ScalarResult (*expected)(In in);
  bool wide = false; // a 64-bit result
};
int check_scalar(std::span<const ScalarCase> cases, const std::vector<Pairs>& sets, const char* arch = "gfx942");

inline bool scc_in(In in) { return (in[5] & 1U) != 0; }
inline bool vcc_in(In in) { return in[3] < in[4]; }
inline std::uint64_t pair_in(In in, int k) { return in[k] | static_cast<std::uint64_t>(in[k + 1]) << 32; }
inline float float_in(In in, int k) { return as_float(in[k]); }
inline double double_in(In in, int k) { return as_double(pair_in(in, k)); }

} // namespace kiln::exec::testing
