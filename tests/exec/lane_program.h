// A few instructions run on one wave, with inputs in registers and results read back: what most executor tests need.
#pragma once
#include "isa_checks/exec/numbers/numeric.h"
#include "isa_checks/exec/run/execute.h"
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::exec::testing {

using Lanes64 = std::array<std::uint32_t, 64>;

struct LaneProgram {
  std::string body;                 // assembly; may use v1 to v250, s12 to s95, all of VCC, EXEC, M0; s[4:5] in, s[6:7] out, s[8:9] scalars
  std::vector<Lanes64> inputs = {}; // in v1, v2, ... (up to 63)
  std::vector<std::uint32_t> scalars = {}; // in s16, s17, ... (up to 16)
  int results = 1;                         // v64, v65, ... (up to 64)
  int lds_bytes = 0;
  bool accumulation = false; // a0 to a255 exist
  std::string arch = "gfx942";
  std::string descriptor = {}; // more .amdhsa_ lines
  bool check_hazards = false;  // snippets leave out wait states that have nothing to do with what they test
};

struct LaneResult {
  std::vector<Lanes64> v;
  ExecResult run;
};

LaneResult run(const LaneProgram& program, const ExecOptions& options = {});

// The text of an object with one kernel `k` around `body`; 24 bytes of arguments (three pointers), in s[0:1].
struct KernelText {
  std::string body;
  std::string arch = "gfx942";
  int lds_bytes = 0, scratch_bytes = 0, kernarg_bytes = 24;
  bool accumulation = false;
  std::string descriptor = {};
};
isa::CodeObject assemble_kernel(const KernelText& text);

// Lane values from a function of the lane number, and the bits of floats.
Lanes64 each_lane(const std::function<std::uint32_t(int)>& f);
Lanes64 floats(const std::function<float(int)>& f);

// `count` lanes' worth of every pair of `values`, in order, then random bit patterns: the two operands of a test.
struct Pairs {
  Lanes64 a, b;
};
std::vector<Pairs> pairs_of(const std::vector<std::uint32_t>& values, int random_sets, std::uint64_t seed = 1);
const std::vector<std::uint32_t>& interesting_floats();
const std::vector<std::uint32_t>& interesting_halves(); // in both halves of the word
const std::vector<std::uint32_t>& interesting_integers();

// Equal bits, or both NaN.
bool same_float(std::uint32_t a, std::uint32_t b);
bool same_half(std::uint32_t a, std::uint32_t b);

} // namespace kiln::exec::testing
