// Following what an LDS instruction returns to the branches that depend on it.
#include "isa_checks/exec/sanitisers/flag_reads.h"
#include "isa_checks/analysis/dataflow/register_set.h"
#include <algorithm>
#include <map>
#include <string_view>

namespace kiln::exec {
namespace {

using isa::RegisterSet;

constexpr std::size_t max_visits = 600;        // instructions that are looked at after one read
constexpr std::uint32_t rotated_distance = 64; // of a loop's read from the same read before the loop

// Whether an instruction passes a flag on: what compilers do between the load and the branch.
bool passes_on(const Inst& inst) {
  if (inst.cls == InstClass::salu) return true;
  if (inst.fields.format == Format::ds) return inst.pure; // lane exchanges
  if (inst.cls != InstClass::valu) return false;
  if (inst.op->name.starts_with("v_cmp")) return true;
  const Signature& s = inst.op->signature;
  const bool reads_floats = std::any_of(s.source.begin(), s.source.end(), [](Type t) { return is_float(t); });
  return !reads_floats && !is_float(s.result);
}

// One read: everything that it reaches.
class Follower {
public:
  Follower(std::span<const Inst> program, std::uint32_t read) : program_(program), read_(read) {}

  FlagUse run() {
    RegisterSet start;
    for (const isa::RegisterRange r : program_[read_].use.writes()) start.set(r);
    reach(read_ + 1, start);
    for (std::size_t visits = 0; !work_.empty() && visits < max_visits && use_ != FlagUse::polls; ++visits) {
      const std::uint32_t at = work_.back();
      work_.pop_back();
      step(at, states_[at]);
    }
    return use_;
  }

private:
  void reach(std::uint32_t at, const RegisterSet& state) {
    if (at >= program_.size() || at == read_ || state.empty()) return;
    const auto [entry, fresh] = states_.try_emplace(at, state);
    if (fresh || entry->second.join(state, false)) work_.push_back(at);
  }

  static bool depends(const Inst& inst, const RegisterSet& state) {
    return std::ranges::any_of(inst.use.reads(), [&](isa::RegisterRange r) { return state.any(r); });
  }

  // Whether the branch at `at` can leave a loop that has both it and the read in it.
  bool leaves_loop(std::uint32_t at) const {
    for (std::uint32_t b = std::max(at, read_); b < program_.size(); ++b) {
      const Inst& back = program_[b];
      if (back.cls != InstClass::branch || back.target > std::min(at, read_)) continue;
      const std::uint32_t target = program_[at].target;
      if (at == b || target > b || target < back.target) return true;
    }
    return false;
  }

  void decides(std::uint32_t at) {
    use_ = std::max(use_, FlagUse::decides);
    if (program_[at].cls == InstClass::branch && leaves_loop(at)) use_ = FlagUse::polls;
  }

  void branch(std::uint32_t at, const Inst& inst, const RegisterSet& state) {
    const std::string_view name = inst.op->name;
    if (depends(inst, state)) decides(at);
    if (name.starts_with("s_endpgm") || name.find("pc_b64") != name.npos) return;
    if (name != "s_branch") reach(at + 1, state);
    if (inst.target != 0 && inst.target != ~0U) reach(inst.target, state);
  }

  void step(std::uint32_t at, RegisterSet state) {
    const Inst& inst = program_[at];
    if (inst.cls == InstClass::branch) return branch(at, inst, state);
    const bool dependent = passes_on(inst) && depends(inst, state);
    for (const isa::RegisterRange r : inst.use.writes())
      if (dependent) state.set(r);
      else state.clear(r);
    if (dependent && state.any({isa::reg::exec, 2})) decides(at);
    reach(at + 1, state);
  }

  std::span<const Inst> program_;
  std::uint32_t read_;
  FlagUse use_ = FlagUse::none;
  std::map<std::uint32_t, RegisterSet> states_; // by instruction: the registers that depend on the value
  std::vector<std::uint32_t> work_;
};

} // namespace

std::vector<FlagUse> find_flag_reads(std::span<const Inst> program) {
  std::vector<FlagUse> uses(program.size(), FlagUse::none);
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Inst& inst = program[i];
    const bool lds = inst.op->memory != nullptr && !inst.pure &&
                     (inst.fields.format == Format::ds || (inst.fields.format == Format::flat && inst.fields.segment == 0));
    if (lds && inst.use.write_count != 0) uses[i] = Follower(program, i).run();
  }
  // Compilers rotate loops: the first test of a flag stands before the loop, as a read of its own.
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (std::uint32_t k = i + 1; uses[i] == FlagUse::decides && k < program.size() && k <= i + rotated_distance; ++k)
      if (uses[k] == FlagUse::polls && program[k].op == program[i].op && program[k].fields.offset == program[i].fields.offset)
        uses[i] = FlagUse::polls;
  return uses;
}

} // namespace kiln::exec
