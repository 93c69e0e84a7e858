// Finding: one thing that a rule has to say about one kernel, with the numbers that it rests on.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

// error: wrong or far too slow, fails a build by default; warning: costs time; info: worth knowing.
enum class Severity : std::uint8_t { info, warning, error };
std::string_view to_string(Severity severity);              // "warning"
std::optional<Severity> severity_of(std::string_view name); // nothing for a name that is none of the three

struct Evidence {
  std::string name; // "waves_per_simd"
  double value = 0;
  std::string unit; // "B", "cycles", "instructions", or "" for a count
  bool operator==(const Evidence&) const = default;
};

// What a program that writes kernels would do about a finding.
struct Repair {
  std::string change;                   // "insert s_nop 3"
  std::optional<std::uint64_t> address; // before which, or of which, instruction; absent: of the whole kernel
  std::string effect;                   // what is expected of it: "4 wait states instead of 0"
  bool operator==(const Repair&) const = default;
};

struct Finding {
  std::string rule; // "MEM001"
  Severity severity = Severity::info;
  std::string kernel, arch;
  // The instruction that the finding is about. Absent when it is about the whole kernel (registers, LDS, arguments).
  std::optional<std::uint64_t> address;
  std::string instruction;           // as disassembled; "" without an address
  std::vector<std::uint64_t> others; // addresses of further instructions that the finding is about, ascending
  std::string file;                  // source file of `address` as the line table names it; "" when there is none
  int line = 0;                      // from 1; 0 when there is none
  std::string loop;                  // "loop 0 (0x140 to 0x1b8)"; "" outside of loops
  std::string message;               // one sentence: the fact, with numbers
  std::vector<Evidence> evidence;    // the same numbers, named
  std::vector<std::string> path;     // of a finding about an order of execution: its steps, "0x140 global_load_dword v0, ..."
  double share = 0;                  // of the kernel's estimated clocks that lie in what the finding is about, 0 to 1 (analysis/issue.h)
  Repair repair;
  std::string why;    // why it costs
  std::string advice; // what to try
  bool operator==(const Finding&) const = default;
};

std::string to_text(const Finding& finding);               // several lines, the last with a line feed
std::string to_json(const std::vector<Finding>& findings); // an array of objects, indented by 2

} // namespace kiln::isa
