// What each instruction reads for each of its results, operand by operand.
#include "isa_checks/analysis/dataflow/value_sources.h"
#include "isa_checks/decode/disassembler.h"
#include <algorithm>
#include <set>
#include <string_view>

namespace kiln::isa {
namespace {

using Text = std::string_view;

bool only_computes(const Instruction& instruction) {
  switch (instruction.kind) {
  case InstructionClass::valu:
  case InstructionClass::trans:
  case InstructionClass::packed:
  case InstructionClass::dot:
  case InstructionClass::mfma: return true;
  case InstructionClass::salu: return !instruction.mnemonic.starts_with("s_setreg") && !instruction.mnemonic.starts_with("s_setprio");
  case InstructionClass::lds: return !instruction.memory; // lane exchanges
  default: return false;
  }
}

bool adds_to_result(Text m) {
  return m.starts_with("v_fmac") || m.starts_with("v_mac") || m.starts_with("v_pk_fmac") || m.starts_with("v_dot2c") ||
         m.starts_with("v_dot4c") || m.starts_with("v_dot8c") || m.starts_with("v_smfmac");
}

// Register n of the result depends on register n of the source, and on no other of it.
bool elementwise(Text m, const Operands& o, RegisterRange result, RegisterRange source) {
  if (source.count != result.count || result.count < 2) return false;
  if (m.starts_with("v_smfmac_")) return source == result;
  if (m.starts_with("v_mfma_")) return o.count > 3 && o[3].registers == source && o[1].registers != source && o[2].registers != source;
  constexpr Text bits[] = {"v_mov_b64", "s_mov_b64", "s_and_b64", "s_or_b64", "s_cselect_b64"};
  return (m.starts_with("v_pk_") && o.modifiers.find("op_sel") == Text::npos) ||
         std::ranges::any_of(bits, [&](Text one) { return m.starts_with(one); });
}

// The lower half of a 64-bit result depends on the lower halves of 64-bit sources: compilers use these for 32-bit numbers, and leave the
// upper half of a source as it is.
bool goes_upward(Text m) {
  constexpr Text all[] = {"v_mad_u64_u32", "v_mad_i64_i32", "v_lshl_add_u64", "v_lshlrev_b64", "s_lshl_b64"};
  return std::ranges::any_of(all, [&](Text one) { return m.starts_with(one); });
}

// The bit of source `k` in a modifier such as "op_sel_hi:[0,1]", given up to its bracket; `otherwise` if it is not there.
bool selects_high(Text modifiers, Text name, std::size_t k, bool otherwise) {
  const std::size_t at = modifiers.find(name), bit = at + name.size() + 2 * k;
  return at == Text::npos || bit >= modifiers.size() ? otherwise : modifiers[bit] == '1';
}

// Clears the bits of lanes that are on: a lane mask of which only bits of other lanes were undefined stays so, and LLVM ANDs it with
// EXEC before it uses it.
bool keeps_lanes_that_are_off(Text m, const Operands& o) {
  return m == "s_andn2_b64" && o.count == 3 && o[2].is(Operand::Kind::registers) && o[2].registers.first == reg::exec;
}

// The operand that a store to scratch stores: what lies there is of one lane, and whether it is read back is not followed. gfx90a reaches
// scratch through a buffer descriptor that interleaves the lanes; of any other buffer a store without an offset of the lane would put all
// lanes at one address.
std::optional<std::size_t> stored_to_scratch(const Instruction& instruction, const Operands& o) {
  const auto op = instruction.memory;
  if (!op || op->direction != MemoryDirection::store || o.count < 2) return std::nullopt;
  if (op->space == MemorySpace::scratch) return 1;
  const bool by_lane = o.has("offen") || o.has("idxen");
  return op->space == MemorySpace::buffer && o[1].is(Operand::Kind::off) && !by_lane ? std::optional<std::size_t>(0) : std::nullopt;
}

// Operands in which an instruction reads registers by name, results left out: what it keeps of them is no read.
template <class Read> void each_source(const Program& p, std::size_t i, const Operands& o, const RegisterUse& use, Read read) {
  const auto m = Text(p.instructions[i].mnemonic);
  if (keeps_lanes_that_are_off(m, o)) return;
  const bool names_zero =
      std::ranges::any_of(o.all(), [](const Operand& operand) { return operand.is(Operand::Kind::number) && operand.number == 0; });
  const bool zero = names_zero && (m.starts_with("s_mul_i32") || m.starts_with("v_mul_lo_u32") || m.find("_and_b") != m.npos);
  const auto stored = stored_to_scratch(p.instructions[i], o);
  for (const RegisterRange range : use.reads()) {
    if (stored && o[*stored].registers == range) continue;
    const auto is_it = [&](const Operand& operand) { return operand.is(Operand::Kind::registers) && operand.registers == range; };
    const auto results = std::ranges::count_if(use.writes(), [&](RegisterRange w) { return w == range; });
    const auto named = std::ranges::count_if(o.all(), is_it);
    const bool kept = results > 0 && m.starts_with("v_cndmask"); // a chain of selects begins with any value, and covers all lanes
    const bool source = (results == 0 || named > results || adds_to_result(m)) && !kept;
    // x - x, x ^ x and 0 * x are 0, whatever x is.
    const bool cancels = zero || (named > 1 + results && (m.find("_xor_") != m.npos || m.find("_sub_") != m.npos));
    if (source && !cancels) read(range);
  }
}

} // namespace

ValueSources::ValueSources(const Program& program, const std::vector<Operands>& operands) : p_(program), operands_(operands) {
  find_lanes();
  facts_.reserve(program.instructions.size());
  for (std::size_t i = 0; i < program.instructions.size(); ++i) look_at(i);
}

// Numbers lanes of vector registers that v_writelane writes and v_readlane reads, by lanes that the code names. A register that other
// instructions use keeps scalars only if v_writelane writes it: the results of reductions are read by lane as well.
void ValueSources::find_lanes() {
  std::set<std::pair<std::uint16_t, int>> found;
  RegisterSet kept, others; // written by lane; used in another way
  for (std::size_t i = 0; i < p_.instructions.size(); ++i) {
    const Text m = p_.instructions[i].mnemonic;
    const bool writes = m == "v_writelane_b32", reads = m == "v_readlane_b32";
    const Operands& o = operands_[i];
    if ((writes || reads) && o.count == 3 && o[2].is(Operand::Kind::number) && o[writes ? 0 : 1].is(Operand::Kind::registers)) {
      const RegisterRange r = o[writes ? 0 : 1].registers;
      found.insert({r.first, static_cast<int>(o[2].number & 63U)});
      if (writes) kept.set(r);
      continue;
    }
    for (const auto& ranges : {p_.instructions[i].use.writes(), p_.instructions[i].use.reads()})
      for (const RegisterRange r : ranges) others.set(r);
  }
  for (const auto& key : found) {
    const auto number = static_cast<std::uint16_t>(reg::count + lanes_.size());
    if ((others.test(key.first) && !kept.test(key.first)) || key.first == reg::vgpr || number >= RegisterSet::size) continue;
    lanes_.emplace(key, number);
    const auto [at, fresh] = lanes_of_.try_emplace(key.first, RegisterRange{number, 0});
    ++at->second.count;
    if (others.test(key.first)) shared_.set(key.first);
  }
}

std::optional<std::pair<std::uint16_t, int>> ValueSources::lane_of(std::uint16_t reg) const {
  for (const auto& [key, number] : lanes_)
    if (number == reg) return key;
  return std::nullopt;
}

std::optional<std::uint16_t> ValueSources::lane_slot(std::size_t i, std::size_t reg_operand, std::size_t lane_operand) const {
  const Operands& o = operands_[i];
  if (lanes_.empty() || o.count != 3 || !o[lane_operand].is(Operand::Kind::number)) return std::nullopt;
  const auto at = lanes_.find({o[reg_operand].registers.first, static_cast<int>(o[lane_operand].number & 63U)});
  return at == lanes_.end() ? std::nullopt : std::optional(at->second);
}

void ValueSources::look_at(std::size_t i) {
  const Text m = p_.instructions[i].mnemonic;
  const Operands& o = operands_[i];
  Facts f{.computes = only_computes(p_.instructions[i]), .begin = list_.size(), .element_by_element = {}, .upward = {}};
  f.has_effect = !f.computes || p_.instructions[i].use.writes_any({reg::exec, 2});
  const auto written = m == "v_writelane_b32" ? lane_slot(i, 0, 2) : std::nullopt,
             read = m == "v_readlane_b32" ? lane_slot(i, 1, 2) : std::nullopt;
  if (read) list_.push_back({*read, 1});
  else
    each_source(p_, i, o, p_.instructions[i].use, [&](RegisterRange r) {
      if (!written || !r.vector()) list_.push_back(r);
    });
  f.writes_begin = list_.size();
  f.writes_lane = written.has_value();
  if (written) list_.push_back({*written, 1});
  for (const RegisterRange w : p_.instructions[i].use.writes()) {
    if (written && !shared_.any(w)) continue;
    list_.push_back(w);
    for (auto at = lanes_of_.lower_bound(w.first); !written && at != lanes_of_.end() && at->first < w.first + w.count; ++at)
      list_.push_back(at->second);
  }
  f.end = list_.size();
  f.halves = (m.starts_with("v_pk_") && m.ends_with("_f32")) || m.starts_with("v_pk_mov_b32");
  if (f.computes && p_.instructions[i].use.write_count == 1 && !f.halves)
    for (std::size_t n = f.begin; n < f.writes_begin; ++n)
      if (elementwise(m, o, p_.instructions[i].use.write_list[0], list_[n])) f.element_by_element = list_[n];
  if (f.computes && p_.instructions[i].use.write_count > 0 && goes_upward(m)) f.upward = o[0].registers;
  facts_.push_back(f);
}

bool ValueSources::accumulates(std::size_t i, std::uint16_t reg) const {
  const Text m = p_.instructions[i].mnemonic;
  const Operands& o = operands_[i];
  if (o.count == 0 || !o[0].registers.overlaps({reg, 1})) return false;
  return adds_to_result(m) || (m.starts_with("v_mfma_") && o.count > 3 && o[3].registers == o[0].registers);
}

// Whether half `upper` of a packed result is made of the upper half of this source.
bool ValueSources::takes_upper(const Operands& operands, std::size_t source, bool upper) {
  return upper ? selects_high(operands.modifiers, "op_sel_hi:[", source, true)
               : selects_high(operands.modifiers, "op_sel:[", source, false);
}

} // namespace kiln::isa
