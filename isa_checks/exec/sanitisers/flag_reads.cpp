// Following what an LDS instruction returns to the branches that depend on it.
#include "isa_checks/exec/sanitisers/flag_reads.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include <algorithm>
#include <bitset>
#include <map>
#include <string_view>

namespace kiln::exec {
namespace {

constexpr std::size_t max_visits = 600;        // instructions that are looked at after one read
constexpr std::uint32_t rotated_distance = 64; // of a loop's read from the same read before the loop

// Registers that depend on the value.
struct Dependent {
  std::bitset<max_vgprs> vector;
  std::bitset<code::scalar_registers> scalar;
  bool scc = false;
  bool any() const { return scc || vector.any() || scalar.any(); }
  bool operator==(const Dependent&) const = default;
  bool add(const Dependent& other) {
    const Dependent before = *this;
    vector |= other.vector;
    scalar |= other.scalar;
    scc = scc || other.scc;
    return !(before == *this);
  }
};

template <std::size_t n> bool touches(const std::bitset<n>& set, RegisterSpan r) {
  for (int i = 0; i < r.count; ++i)
    if (set[(r.first + static_cast<std::size_t>(i)) % n]) return true;
  return false;
}
template <std::size_t n> void assign(std::bitset<n>& set, RegisterSpan r, bool value) {
  for (int i = 0; i < r.count; ++i) set[(r.first + static_cast<std::size_t>(i)) % n] = value;
}

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

bool is_compare_or_logic(const Inst& inst) { // scalar instructions that set SCC
  const std::string_view name = inst.op->name;
  return inst.cls == InstClass::salu && !name.starts_with("s_mov") && !name.starts_with("s_cmov") && !name.starts_with("s_cselect") &&
         !name.starts_with("s_getpc") && !name.starts_with("s_getreg");
}
bool reads_scc(std::string_view name) {
  return name.starts_with("s_cselect") || name.starts_with("s_cmov") || name.starts_with("s_addc") || name.starts_with("s_subb");
}

// One read: everything that it reaches.
class Follower {
public:
  Follower(std::span<const Inst> program, std::uint32_t read) : program_(program), read_(read) {}

  FlagUse run() {
    Dependent start;
    for (const RegisterSpan& r : program_[read_].vector_writes) assign(start.vector, r, true);
    reach(read_ + 1, start);
    for (std::size_t visits = 0; !work_.empty() && visits < max_visits && use_ != FlagUse::polls; ++visits) {
      const std::uint32_t at = work_.back();
      work_.pop_back();
      step(at, states_[at]);
    }
    return use_;
  }

private:
  void reach(std::uint32_t at, const Dependent& state) {
    if (at >= program_.size() || at == read_ || !state.any()) return;
    const auto [entry, fresh] = states_.try_emplace(at, state);
    if (fresh || entry->second.add(state)) work_.push_back(at);
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

  void branch(std::uint32_t at, const Inst& inst, const Dependent& state) {
    const std::string_view name = inst.op->name;
    const bool on_scc = name.starts_with("s_cbranch_scc"), on_vcc = name.starts_with("s_cbranch_vcc");
    const bool on_exec = name.starts_with("s_cbranch_exec");
    if ((on_scc && state.scc) || (on_vcc && touches(state.scalar, {code::vcc, 2})) || (on_exec && touches(state.scalar, {code::exec, 2})))
      decides(at);
    if (name.starts_with("s_endpgm") || name.find("pc_b64") != name.npos) return;
    if (name != "s_branch") reach(at + 1, state);
    if (inst.target != 0 && inst.target != ~0U) reach(inst.target, state);
  }

  void step(std::uint32_t at, Dependent state) {
    const Inst& inst = program_[at];
    if (inst.cls == InstClass::branch) return branch(at, inst, state);
    bool dependent = reads_scc(inst.op->name) && state.scc;
    for (const RegisterSpan& r : inst.vector_reads) dependent = dependent || touches(state.vector, r);
    for (const RegisterSpan& r : inst.scalar_reads) dependent = dependent || touches(state.scalar, r);
    dependent = dependent && passes_on(inst);
    for (const RegisterSpan& r : inst.vector_writes) assign(state.vector, r, dependent);
    assign(state.scalar, inst.scalar_write, dependent);
    if (is_compare_or_logic(inst)) state.scc = dependent;
    const bool sets_exec = inst.writes_exec || inst.op->name.find("saveexec") != std::string_view::npos ||
                           inst.op->name.find("wrexec") != std::string_view::npos;
    if (sets_exec) assign(state.scalar, {code::exec, 2}, dependent);
    if (dependent && touches(state.scalar, {code::exec, 2})) decides(at);
    reach(at + 1, state);
  }

  std::span<const Inst> program_;
  std::uint32_t read_;
  FlagUse use_ = FlagUse::none;
  std::map<std::uint32_t, Dependent> states_;
  std::vector<std::uint32_t> work_;
};

} // namespace

std::vector<FlagUse> find_flag_reads(std::span<const Inst> program) {
  std::vector<FlagUse> uses(program.size(), FlagUse::none);
  for (std::uint32_t i = 0; i < program.size(); ++i) {
    const Inst& inst = program[i];
    const bool lds = inst.op->memory != nullptr && !inst.pure &&
                     (inst.fields.format == Format::ds || (inst.fields.format == Format::flat && inst.fields.segment == 0));
    if (lds && inst.vector_writes[0].count != 0) uses[i] = Follower(program, i).run();
  }
  // Compilers rotate loops: the first test of a flag stands before the loop, as a read of its own.
  for (std::uint32_t i = 0; i < program.size(); ++i)
    for (std::uint32_t k = i + 1; uses[i] == FlagUse::decides && k < program.size() && k <= i + rotated_distance; ++k)
      if (uses[k] == FlagUse::polls && program[k].op == program[i].op && program[k].fields.offset == program[i].fields.offset)
        uses[i] = FlagUse::polls;
  return uses;
}

} // namespace kiln::exec
