// Which registers may be undefined where: a forward data-flow fixpoint over the blocks, once for "on all paths" and once for "on
// some path".
#include "isa_checks/analysis/dataflow/uninitialised.h"
#include "isa_checks/decode/instruction_class.h"
#include <algorithm>
#include <bitset>
#include <optional>

namespace kiln::isa {
namespace {

using Registers = std::bitset<reg::count>;

Registers bits(RegisterRange range) {
  Registers result;
  for (std::uint16_t r = range.first; r < range.first + range.count; ++r) result.set(r);
  return result;
}

Registers undefined_at_entry(const KernelDescriptor& d) {
  Registers undefined;
  undefined.set();
  undefined.reset(reg::vgpr);
  const int scalars = d.user_sgprs + d.workgroup_id_x + d.workgroup_id_y + d.workgroup_id_z + d.workgroup_info + d.private_segment;
  for (int i = 0; i < scalars && i < 102; ++i) undefined.reset(static_cast<std::size_t>(reg::sgpr + i));
  for (const std::uint16_t r : {reg::exec, reg::flat_scratch}) undefined.reset(r).reset(r + 1U);
  for (std::uint16_t r = reg::sgpr + 102; r < reg::vcc; ++r) undefined.reset(r); // XNACK mask, trap registers
  return undefined;
}

// Hands values on without looking at them: what it writes is as undefined as what it reads.
bool hands_on(std::string_view m) {
  for (const std::string_view name : {"v_mov_b", "v_accvgpr_", "v_pk_mov_b", "v_cndmask_b", "v_readlane", "v_readfirstlane", "v_swap_b",
                                      "v_permlane", "s_mov_b", "s_cselect_b", "s_cmov_b"})
    if (m.starts_with(name)) return true;
  return false;
}

// Operands in which an instruction reads registers by name, results left out: what it keeps of them is no read.
template <class Read> void each_source(const Program& p, std::size_t i, const Operands& o, const RegisterUse& use, Read read) {
  const auto m = std::string_view(p.instructions[i].mnemonic);
  const bool accumulates = m.starts_with("v_fmac") || m.starts_with("v_mac") || m.starts_with("v_pk_fmac") || m.starts_with("v_dot2c") ||
                           m.starts_with("v_dot4c") || m.starts_with("v_dot8c") || m.starts_with("v_smfmac");
  for (const RegisterRange range : use.reads()) {
    const auto is_it = [&](const Operand& operand) { return operand.is(Operand::Kind::registers) && operand.registers == range; };
    const auto results = std::ranges::count_if(use.writes(), [&](RegisterRange w) { return w == range; });
    const auto named = std::ranges::count_if(o.all(), is_it);
    const bool source = results == 0 || named > results || accumulates;
    // x - x and x ^ x are how a register becomes 0.
    const bool cancels = named > 1 + results && (m.find("_xor_") != m.npos || m.find("_sub_") != m.npos);
    if (source && !cancels) read(range);
  }
}

class UninitialisedFinder {
public:
  UninitialisedFinder(const Program& program, const std::vector<Operands>& operands, const std::vector<RegisterUse>& uses,
                      const KernelDescriptor& d)
      : p_(program), operands_(operands), uses_(uses), entry_(undefined_at_entry(d)) {}

  std::vector<UninitialisedRead> run() {
    solve(true);
    find(true);
    solve(false);
    find(false);
    std::ranges::sort(list_, {}, &UninitialisedRead::instruction);
    return std::move(list_);
  }

private:
  void step(std::size_t i, Registers& undefined) const {
    const RegisterUse& use = uses_[i];
    bool copy = false;
    if (hands_on(p_.instructions[i].mnemonic))
      each_source(p_, i, operands_[i], use, [&](RegisterRange r) { copy = copy || (undefined & bits(r)).any(); });
    for (const RegisterRange w : use.writes())
      if (copy) undefined |= bits(w);
      else undefined &= ~bits(w);
  }

  // A branch that is taken when no lane is on.
  bool skips_lanes(std::size_t from, std::size_t to) const {
    const Block& block = p_.blocks[from];
    return p_.instructions[block.end - 1].mnemonic == "s_cbranch_execz" && block.end < p_.instructions.size() &&
           p_.blocks[to].begin != block.end;
  }

  // Edges that "some path" takes. Not those back to a lower address: what a first repetition leaves out, a later one rarely misses.
  bool counts(std::size_t from, std::size_t to) const {
    return to > from && !(skips_lanes(from, to) && p_.blocks[to].predecessors.size() > 1);
  }

  void solve(bool all_paths) {
    in_.assign(p_.blocks.size(), std::nullopt);
    in_[p_.entry] = entry_;
    for (bool changed = true; changed;) {
      changed = false;
      for (const std::size_t b : p_.order) {
        if (!in_[b]) continue;
        Registers state = *in_[b];
        for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) step(i, state);
        for (const std::size_t to : p_.blocks[b].successors) {
          if (!all_paths && !counts(b, to)) continue;
          const Registers before = in_[to].value_or(all_paths ? Registers().set() : Registers());
          const Registers after = all_paths ? before & state : before | state;
          if (in_[to] && after == before) continue;
          in_[to] = after;
          changed = true;
        }
      }
    }
  }

  void find(bool all_paths) {
    for (std::size_t b = 0; b < p_.blocks.size(); ++b) {
      if (!in_[b]) continue;
      Registers state = *in_[b];
      for (std::size_t i = p_.blocks[b].begin; i < p_.blocks[b].end; ++i) {
        if (!hands_on(p_.instructions[i].mnemonic))
          each_source(p_, i, operands_[i], uses_[i], [&](RegisterRange r) { look(i, r, state, all_paths); });
        step(i, state);
      }
    }
  }

  void look(std::size_t i, RegisterRange r, const Registers& state, bool all_paths) {
    if (r.first == reg::scc || r.first == reg::m0 || (state & bits(r)).none() || (reported_ & bits(r)).any()) return;
    reported_ |= bits(r);
    list_.push_back({i, r, all_paths, path_to(i, state & bits(r))});
  }

  // Some of `registers` are undefined behind instruction i.
  bool undefined_behind(std::size_t i, const Registers& registers) const {
    const std::size_t block = p_.block_of(i);
    Registers state = in_[block].value_or(Registers());
    for (std::size_t n = p_.blocks[block].begin; n <= i; ++n) step(n, state);
    return (state & registers).any();
  }

  // A path from the entry on which `registers` are not written, or only copies of what is undefined itself.
  FlowPath path_to(std::size_t target, const Registers& registers) const {
    if (p_.block_of(target) == p_.entry) return {p_.entry};
    FlowSearch search(p_);
    return search.run(p_.blocks[p_.entry].begin, 0, [&](std::size_t i, unsigned&) {
      if (i == target) return FlowStep::found;
      const bool writes = std::ranges::any_of(uses_[i].writes(), [&](RegisterRange w) { return (bits(w) & registers).any(); });
      return writes && !undefined_behind(i, registers) ? FlowStep::stop : FlowStep::go_on;
    });
  }

  const Program& p_;
  const std::vector<Operands>& operands_;
  const std::vector<RegisterUse>& uses_;
  Registers entry_, reported_;
  std::vector<std::optional<Registers>> in_;
  std::vector<UninitialisedRead> list_;
};

} // namespace

std::vector<UninitialisedRead> uninitialised_reads(const Program& program, const std::vector<Operands>& operands,
                                                   const std::vector<RegisterUse>& uses, const KernelDescriptor& descriptor) {
  if (program.blocks.empty() || program.calls + program.indirect_branches > 0) return {};
  return UninitialisedFinder(program, operands, uses, descriptor).run();
}

} // namespace kiln::isa
