// What goes wrong during execution: defects with where and why, each kind once an instruction, counted.
#pragma once
#include "isa_checks/exec/machine/wave.h"
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::isa {
class CodeObject;
struct Kernel;
} // namespace kiln::isa

namespace kiln::exec {

enum class DefectKind : std::uint8_t {
  out_of_bounds, // outside every allocation, or outside LDS
  misaligned,
  read_only_store,
  unwaited_register, // read or overwritten while the load that fills it is in flight
  unwaited_lds,      // LDS bytes are used while the direct-to-LDS load that fills them is in flight
  uninitialised,     // a value never written decides a branch, an address or what is stored
  lds_race,          // two waves, one LDS byte, nothing that orders them, one of them writing
  hazard,            // wait states that software has to leave between two instructions are missing
  deadlock,          // every wave waits for another one
  instruction_limit,
  not_modelled
};
std::string_view to_string(DefectKind kind);

struct Defect {
  DefectKind kind{};
  std::uint64_t instruction = 0; // its address in the code object
  std::string text;              // as disassembled
  std::uint32_t workgroup[3] = {};
  int wave = 0, lane = -1; // lane -1: not of one lane
  std::string message;     // subject, fact with numbers
  std::uint64_t count = 1; // occurrences of this kind at this instruction
  std::string source = {}; // "file:line", when the code object has line tables
};
std::string to_text(const Defect& defect);

class Defects {
public:
  // `make` builds the defect only for the first occurrence.
  template <class Make> void report(DefectKind kind, std::uint64_t instruction, Make make) {
    auto [at, fresh] = index_.try_emplace({kind, instruction}, list_.size());
    if (fresh) list_.push_back(make());
    else ++list_[at->second].count;
  }
  void merge(const Defects& other);
  const std::vector<Defect>& list() const { return list_; }

private:
  std::map<std::pair<DefectKind, std::uint64_t>, std::size_t> index_;
  std::vector<Defect> list_;
};

// Reports a defect of the instruction that a wave executes; `message` is called for the first occurrence only.
template <class Message> void report(Wave& wave, const Inst& inst, DefectKind kind, int lane, Message message) {
  wave.defects->report(kind, inst.address, [&] {
    Defect f{kind, inst.address, inst.text, {}, wave.index, lane, message()};
    std::ranges::copy(wave.group->id, f.workgroup);
    return f;
  });
}

// Fills Defect::source ("gemm.hip:42") where the line table of a linked code object says where an instruction came from.
void add_source_lines(const isa::CodeObject& object, const isa::Kernel& kernel, std::vector<Defect>& defects);

} // namespace kiln::exec
