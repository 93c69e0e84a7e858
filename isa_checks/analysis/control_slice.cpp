// A backward data flow from branches, EXEC and addresses.
#include "isa_checks/analysis/control_slice.h"
#include "isa_checks/analysis/dataflow/register_set.h"
#include "isa_checks/decode/operands.h"
#include <algorithm>

namespace kiln::isa {
namespace {

// What those behind want. A write with some lanes on gives a value to those alone, so it ends the want of those who read with no more lanes
// on: `here`. Others, who read where EXEC may have more lanes or of lanes that are off, want what came before too: `elsewhere`.
struct Wanted {
  RegisterSet here, elsewhere;
  bool any(RegisterRange range) const { return here.any(range) || elsewhere.any(range); }
  bool join(const Wanted& other) {
    const bool more = here.join(other.here, false);
    return elsewhere.join(other.elsewhere, false) || more;
  }
};

constexpr RegisterRange exec_mask{reg::exec, 2}, scalar_file{reg::sgpr, reg::count - reg::sgpr};

bool reads_other_lanes(const Instruction& i) {
  return i.mnemonic.find("dpp") != std::string::npos || i.mnemonic.find("permlane") != std::string::npos ||
         i.mnemonic.starts_with("v_readlane");
}

bool takes_lanes_off(const Instruction& i) {
  if (i.mnemonic.starts_with("v_cmpx") || i.mnemonic == "s_and_saveexec_b64") return true;
  return (i.mnemonic == "s_and_b64" || i.mnemonic == "s_andn2_b64") && i.operands().starts_with("exec, exec,");
}

bool is_store(const Instruction& i) { return i.memory && i.memory->direction == MemoryDirection::store; }
bool is_atomic(const Instruction& i) { return i.memory && i.memory->direction == MemoryDirection::atomic; }
bool loads_lds(const Instruction& i) {
  return i.memory && !i.memory->to_lds && !is_store(i) && (i.memory->space == MemorySpace::lds || i.memory->space == MemorySpace::flat);
}

// Whether it does more than to write registers: what has no results, sets EXEC or waits, and atomics.
bool has_effect(const Instruction& i) {
  return i.use.writes().empty() || i.use.writes_any(exec_mask) || is_atomic(i) || i.flow != Flow::next ||
         i.kind == InstructionClass::other || i.kind == InstructionClass::barrier;
}

class Slicer {
public:
  Slicer(const Program& program, bool stores_decide) : p_(program), stores_decide_(stores_decide), out_(program.blocks.size()) {}

  std::vector<std::uint8_t> run() {
    std::vector<std::uint8_t> unwanted(p_.instructions.size(), 0);
    for (bool again = true; again;) {
      solve();
      again = false;
      for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
        Wanted wanted = out_[b];
        for (std::size_t i = p_.blocks[b].end; i-- > p_.blocks[b].begin;) {
          unwanted[i] = step(p_.instructions[i], wanted) ? 0 : 1;
          if (unwanted[i] == 0 && loads_lds(p_.instructions[i]) && !lds_decides_) lds_decides_ = again = true;
        }
      }
    }
    return unwanted;
  }

private:
  // Whether its results are wanted; `wanted` goes from behind it to before it.
  bool step(const Instruction& i, Wanted& wanted) const {
    if (i.kind == InstructionClass::mfma) return false;
    if (i.use.writes_any(exec_mask) && !takes_lanes_off(i)) {
      RegisterSet vectors = wanted.here;
      vectors.clear(scalar_file);
      wanted.elsewhere.join(vectors, false);
      wanted.here.clear(vectors);
    }
    bool results = i.memory ? false : has_effect(i);
    if (is_atomic(i)) results = true;
    else if (is_store(i) || (i.memory && i.memory->to_lds)) results = written_memory_decides(*i.memory);
    else results = results || std::ranges::any_of(i.use.writes(), [&](RegisterRange w) { return wanted.any(w); });
    if (i.mnemonic.find("_d16") == std::string::npos) // the other half stays
      for (const RegisterRange w : i.use.writes()) wanted.here.clear(w);
    if (results || i.memory) want_sources(i, results, wanted);
    return results;
  }

  bool written_memory_decides(const MemoryOp& op) const {
    if (op.to_lds || op.space == MemorySpace::lds) return lds_decides_;
    if (op.space == MemorySpace::flat) return stores_decide_ || lds_decides_;
    return stores_decide_ || op.space == MemorySpace::scratch;
  }

  static void want_sources(const Instruction& i, bool results, Wanted& wanted) {
    const bool addresses_alone = is_store(i) && !results;
    const Operands operands = addresses_alone ? operands_of(i) : Operands{};
    for (const RegisterRange r : i.use.reads())
      if (!addresses_alone || !is_stored_value(i, operands, r))
        (r.vector() && reads_other_lanes(i) ? wanted.elsewhere : wanted.here).set(r);
  }

  // What a store stores: the first operand of buffers, of others all vector registers behind the address.
  static bool is_stored_value(const Instruction& i, const Operands& o, RegisterRange range) {
    const bool buffer = i.memory->space == MemorySpace::buffer;
    const auto is = [&](std::size_t k) { return o[k].is(Operand::Kind::registers) && o[k].registers == range; };
    bool value = false, address = false;
    for (std::size_t k = 0; k < o.count; ++k) (buffer == (k == 0) ? value : address) |= is(k);
    return range.vector() && value && !address;
  }

  void solve() {
    std::vector<bool> waits(p_.blocks.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (std::size_t n = p_.order.size(); n-- > 0;) {
        const std::size_t b = p_.order[n];
        if (!waits[b]) continue;
        waits[b] = false;
        Wanted wanted = out_[b];
        for (std::size_t i = p_.blocks[b].end; i-- > p_.blocks[b].begin;) step(p_.instructions[i], wanted);
        for (const std::size_t before : p_.blocks[b].predecessors)
          if (out_[before].join(wanted)) waits[before] = changed = true;
      }
    }
  }

  const Program& p_;
  bool stores_decide_, lds_decides_ = false; // whether what is stored there may decide
  std::vector<Wanted> out_;                  // by block: behind it
};

// Whether it is known where control goes and which registers are meant. Else everything but products is wanted.
bool can_be_followed(const Program& p) {
  return !p.function && p.calls == 0 && p.indirect_branches == 0 && p.wild_branches == 0 &&
         std::ranges::none_of(p.instructions, [](const Instruction& i) {
           return i.mnemonic.starts_with("s_set_gpr_idx") || i.mnemonic.starts_with("s_movrel");
         });
}

} // namespace

std::vector<std::uint8_t> unwanted_results(const Program& program, bool stores_decide) {
  if (can_be_followed(program)) return Slicer(program, stores_decide).run();
  std::vector<std::uint8_t> products;
  for (const Instruction& i : program.instructions) products.push_back(i.kind == InstructionClass::mfma ? 1 : 0);
  return products;
}

} // namespace kiln::isa
