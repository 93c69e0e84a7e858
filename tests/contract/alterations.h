// Alterations of device headers: a place and what is put there, by the promise that it breaks.
#pragma once
#include "gen/plan/target.h"
#include <compare>
#include <map>
#include <string>

namespace kiln::testing {

// `from` stands in the kernel's headers; all of its occurrences become `to`.
struct Alteration {
  std::string title; // a few words, for the table
  std::string from, to;
  auto operator<=>(const Alteration&) const = default;
};
using Alterations = std::map<std::string, Alteration>; // by the name of the promise that each breaks

// The entries of both; of one name that of `a`.
Alterations joined(Alterations a, const Alterations& b);

// Functions of the headers that kernels call.
inline const std::string thread_id = "KILN_DEVICE u32 thread_id() { return __builtin_amdgcn_workitem_id_x(); }";
inline const std::string lane_id = "KILN_DEVICE u32 lane_id() { return __builtin_amdgcn_mbcnt_hi(";

// What breaks promises that any kernel may make; `place` is one of these functions.
Alterations alterations_of_all(const std::string& place, int few_registers);

// ---- promises of loads

// Loads of 16 bytes in two halves, which the compiler may not join: those that stream weights and keys, and the chunks of rows.
std::string halves_of(const std::string& address);
Alteration narrow_stream();
Alteration narrow_chunks();

// ---- promises of streaming loops

// Behind `loads`, a statement of the loop.
Alterations of_loop(const std::string& loads);
// Those of products whose waves keep a ring in flight, with f16 operands.
Alterations of_ring(const Target& to);

// ---- required instructions

// A product is replaced by an addition; fp8 of 32 bytes a lane, if `wide`.
Alteration no_f16_matrix(const Target& to);
Alteration no_bf16_matrix(const Target& to);
Alteration no_fp8_matrix(bool wide);
Alteration no_mx_matrix();
Alteration no_exponential();

// ---- registers

Alteration few_registers(const std::string& attribute);
// No scalar register keeps its value where a lane asks for its number.
Alteration no_scalars();
// Behind this code nothing that lives in a vector register from v16 on stays there.
Alteration no_vectors_behind(const std::string& code);

} // namespace kiln::testing
