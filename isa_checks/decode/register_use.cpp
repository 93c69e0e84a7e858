// Registers by their names in LLVM, and what its descriptions of opcodes lack or have too much.
#include "isa_checks/decode/register_use.h"
#include "isa_checks/decode/operands.h"
#include <algorithm>
#include <charconv>
#include <string_view>

namespace kiln::isa {
namespace {

using Text = std::string_view;

// "VGPR4_VGPR5" is v[4:5]; names of registers whose number differs between generations end in one: "FLAT_SCR_LO_vi".
RegisterRange range_of(Text name) {
  static constexpr std::pair<Text, std::uint16_t> files[] = {{"VGPR", reg::vgpr}, {"AGPR", reg::agpr}, {"SGPR", reg::sgpr}};
  for (const auto& [file, begin] : files) {
    std::uint16_t first = 0;
    if (!name.starts_with(file) || std::from_chars(name.data() + file.size(), name.data() + name.size(), first).ec != std::errc()) continue;
    return {static_cast<std::uint16_t>(begin + first), static_cast<std::uint16_t>(1 + std::ranges::count(name, '_'))};
  }
  static constexpr std::pair<Text, std::uint16_t> pairs[] = {{"VCC", reg::vcc}, {"EXEC", reg::exec}, {"FLAT_SCR", reg::flat_scratch}};
  for (const auto& [pair, begin] : pairs) {
    if (!name.starts_with(pair) || (name.size() > pair.size() && name[pair.size()] != '_')) continue;
    const Text part = name.substr(pair.size());
    if (part.starts_with("_LO")) return {begin, 1};
    if (part.starts_with("_HI")) return {static_cast<std::uint16_t>(begin + 1), 1};
    return {begin, 2};
  }
  if (name.starts_with("M0")) return {reg::m0, 1};
  return name == "SCC" || name == "SRC_SCC" ? RegisterRange{reg::scc, 1} : RegisterRange{};
}

// Whether an instruction that makes one half or byte of its result begins a register: what the others have been is nobody's.
bool begins_result(Text m, const Operands& o) {
  if (m.starts_with("v_fma_mixlo")) return true;
  constexpr Text parts[] = {"v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr_fp8", "v_cvt_sr_bf8", "v_cvt_scalef32_"};
  return std::ranges::any_of(parts, [m](Text part) { return m.starts_with(part); }) && o.modifiers.find("op_sel:") == Text::npos;
}

// What LLVM does not describe: SDWA that keeps the rest of its result, and halves that op_sel names.
bool keeps_result(Text m, const Operands& o) {
  if (o.modifiers.find("UNUSED_PRESERVE") != Text::npos) return true;
  return o.modifiers.find("op_sel:") != Text::npos && (m.find("_f16") != Text::npos || m.find("16_e64") != Text::npos);
}

} // namespace

RegisterReader::RegisterReader(const McTarget& mc) : instructions_(*mc.instructions) {
  for (unsigned i = 0; i < mc.registers->getNumRegs(); ++i) ranges_.push_back(range_of(mc.registers->getName(i)));
}

RegisterUse RegisterReader::use_of(const llvm::MCInst& inst, const Instruction& instruction) const {
  RegisterUse use;
  const llvm::MCInstrDesc& opcode = instructions_.get(inst.getOpcode());
  const Operands operands = operands_of(instruction);
  const Text m = instruction.mnemonic;
  const bool begins = begins_result(m, operands), vector = m.starts_with("v_"), scalar = m.starts_with("s_");
  for (const bool kept : {true, false}) // what is written and kept in part comes first
    for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
      if (!inst.getOperand(i).isReg() || kept != (opcode.getOperandConstraint(i, llvm::MCOI::TIED_TO) >= 0)) continue;
      const RegisterRange range = ranges_[inst.getOperand(i).getReg()];
      if (i < opcode.getNumDefs()) use.write(range);
      else if (!kept || !begins) use.read(range);
    }
  if (vector && keeps_result(m, operands))
    for (const RegisterRange range : use.writes()) use.read(range);
  for (const auto implicit : opcode.implicit_uses()) {
    const RegisterRange range = ranges_[implicit];
    const bool mask = range.first == reg::exec, limit = range.first == reg::m0 && m.starts_with("ds_"); // before gfx9: of LDS
    if (range.first != reg::flat_scratch && !limit && (scalar || !mask)) use.read(range);
  }
  for (const auto implicit : opcode.implicit_defs())
    if (ranges_[implicit].first != reg::flat_scratch) use.write(ranges_[implicit]);
  return use;
}

} // namespace kiln::isa
