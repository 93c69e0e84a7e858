// Decoding and printing with LLVM MC.
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/decode/high_sources.h"
#include "isa_checks/decode/operands.h"
#include "isa_checks/error.h"
#include "isa_checks/target/mc_target.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <llvm/ADT/DenseMap.h>
#include <llvm/MC/MCAsmInfoELF.h>
#include <llvm/MC/MCContext.h>
#include <llvm/MC/MCDisassembler/MCDisassembler.h>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCInstPrinter.h>
#include <llvm/Support/raw_ostream.h>
#include <string_view>
#include <vector>

namespace kiln::isa {
namespace {

constexpr std::size_t longest_instruction = 16; // bytes
constexpr std::size_t max_known = 1 << 16;      // instructions remembered; some 20 MB

// LLVM 21 and 22 crash on an instruction that names a literal for which no bytes are left (llvm-project issues 170318
// and 214909). They take as many bytes of the input as the longest instruction has, so a longer one is claimed here: a
// literal can then always be read, and an instruction that has become too long by it is refused.
class RoomForLiterals : public llvm::MCAsmInfoELF {
public:
  unsigned getMaxInstLength(const llvm::MCSubtargetInfo*) const override { return 2 * longest_instruction; }
};

Flow flow_of(std::string_view mnemonic) {
  if (!mnemonic.starts_with("s_")) return Flow::next;
  if (mnemonic.starts_with("s_endpgm")) return Flow::end;
  if (mnemonic == "s_branch") return Flow::jump;
  if (mnemonic == "s_setpc_b64" || mnemonic == "s_rfe_b64" || mnemonic == "s_rfe_restore_b64") return Flow::indirect;
  if (mnemonic == "s_cbranch_g_fork" || mnemonic == "s_cbranch_i_fork" || mnemonic == "s_cbranch_join") // fork and join: a stack of masks
    return Flow::indirect;
  if (mnemonic.starts_with("s_cbranch_")) return Flow::branch;
  if (mnemonic == "s_swappc_b64" || mnemonic == "s_call_b64") return Flow::call;
  return Flow::next;
}

// A selector of an SDWA instruction (a source of 0xf9 in VOP1, VOP2 and VOPC) with a reserved value, on which LLVM's
// printer has undefined behaviour. VOPC has a register in place of the destination's two.
bool has_reserved_sdwa(std::span<const std::uint8_t> code) {
  if ((code[3] & 0x80) != 0 || code[0] != 0xf9 || (code[1] & 1) != 0) return false;
  const bool vopc = (code[3] >> 1) == 0x3e;
  return (!vopc && ((code[5] & 7) == 7 || ((code[5] >> 3) & 3) == 3)) || (code[6] & 7) == 7 || (code[7] & 7) == 7;
}

// v_cvt_scalef32_pk32_{f32,f16,bf16}_{fp6,bf6} of gfx950 (VOP3 opcodes 0x256, 0x257 and 0x260 to 0x263) read six vector
// registers; LLVM crashes when the encoding names a scalar source.
bool has_scalar_fp6_source(std::span<const std::uint8_t> code) {
  const bool reads_six = (code[2] >= 0x60 && code[2] <= 0x63) || code[2] == 0x56 || code[2] == 0x57;
  return code[3] == 0xd2 && reads_six && (code[5] & 1) == 0;
}

// SOPP and SOPK branches hold a signed count of dwords from the next instruction in their low 16 bits.
std::optional<std::uint64_t> target_of(const Instruction& instruction) {
  const bool direct = instruction.flow == Flow::jump || instruction.flow == Flow::branch || instruction.mnemonic == "s_call_b64";
  if (!direct) return std::nullopt;
  std::int16_t dwords;
  std::memcpy(&dwords, instruction.bytes.data(), sizeof dwords);
  return instruction.address + 4 + static_cast<std::uint64_t>(std::int64_t{dwords} * 4);
}

std::string tidy(std::string_view printed) {
  std::string text;
  text.reserve(printed.size());
  for (char c : printed) {
    if (c == '\t') c = ' ';
    if (c == ' ' && (text.empty() || text.back() == ' ')) continue;
    text += c;
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

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

// What LLVM does not describe: bits and conditional moves of scalar registers, a sum in place, SDWA that keeps the rest of its result, and
// halves that op_sel names.
bool keeps_result(Text m, const Operands& o) {
  if (m.starts_with("s_bitset") || m.starts_with("s_cmov") || m.starts_with("v_pk_fmac")) return true;
  if (!m.starts_with("v_")) return false;
  if (o.modifiers.find("UNUSED_PRESERVE") != Text::npos) return true;
  return o.modifiers.find("op_sel:") != Text::npos && (m.find("_f16") != Text::npos || m.find("16_e64") != Text::npos);
}

// The registers that an instruction reads and writes, as LLVM describes its opcode.
class RegisterReader {
public:
  explicit RegisterReader(const McTarget& mc) : instructions_(*mc.instructions) {
    for (unsigned i = 0; i < mc.registers->getNumRegs(); ++i) ranges_.push_back(range_of(mc.registers->getName(i)));
  }

  // Its operands and the implicit registers of its opcode. A register of which it keeps a part (accumulation in place, halves, lanes that
  // DPP leaves alone) counts as read too. EXEC is listed only where an instruction names or changes it, though all vector instructions
  // depend on it. `instruction` has its text, class and memory access.
  RegisterUse use_of(const llvm::MCInst& inst, const Instruction& instruction) const {
    RegisterUse use;
    const llvm::MCInstrDesc& opcode = instructions_.get(inst.getOpcode());
    const Operands operands = operands_of(instruction);
    const Text m = instruction.mnemonic;
    const bool begins = begins_result(m, operands), scalar = m.starts_with("s_");
    for (const bool kept : {true, false}) // what is written and kept in part comes first
      for (unsigned i = 0; i < inst.getNumOperands(); ++i) {
        if (!inst.getOperand(i).isReg() || kept != (opcode.getOperandConstraint(i, llvm::MCOI::TIED_TO) >= 0)) continue;
        const RegisterRange range = ranges_[inst.getOperand(i).getReg()];
        if (i < opcode.getNumDefs()) use.write(range);
        else if (!kept || !begins) use.read(range);
      }
    if (keeps_result(m, operands))
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

private:
  const llvm::MCInstrInfo& instructions_;
  std::vector<RegisterRange> ranges_; // by LLVM's number of a register; of no registers: one that is not followed
};

} // namespace

std::string_view Instruction::operands() const {
  const std::string_view all = text;
  return all.size() <= mnemonic.size() ? std::string_view() : all.substr(mnemonic.size() + 1);
}

struct Disassembler::Machine {
  explicit Machine(const TargetFacts& facts)
      : mc(facts), context(mc.triple, &limits, mc.registers.get(), mc.subtarget.get()), registers(mc), high_sources(*mc.registers) {
    disassembler.reset(mc.target->createMCDisassembler(*mc.subtarget, context));
    printer.reset(
        mc.target->createMCInstPrinter(mc.triple, mc.asm_info->getAssemblerDialect(), *mc.asm_info, *mc.instructions, *mc.registers));
    if (!disassembler || !printer)
      throw Error("LLVM", "its AMDGPU back end has no disassembler", "link Kiln with a complete LLVM 20 to 22");
  }

  // The size of the instruction at the start of `code` when it decodes and lies wholly inside.
  std::optional<std::size_t> decode_operands(std::span<const std::uint8_t> code, std::uint64_t address, llvm::MCInst& inst) {
    // Zeros follow the last instruction, for the same reason.
    std::array<std::uint8_t, 2 * longest_instruction> tail{};
    llvm::ArrayRef<std::uint8_t> bytes(code.data(), code.size());
    if (code.size() < tail.size()) {
      std::copy(code.begin(), code.end(), tail.begin());
      bytes = tail;
    }
    if (has_reserved_sdwa(bytes) || has_scalar_fp6_source(bytes)) return std::nullopt;
    const std::optional<HighSources::Lowered> lowered = HighSources::lowered(bytes);
    if (lowered) {
      tail = {};
      std::ranges::copy(lowered->bytes, tail.begin());
      bytes = tail;
    }
    std::uint64_t size = 0;
    const auto status = disassembler->getInstruction(inst, size, bytes, address, llvm::nulls());
    const bool possible = size == 4 || size == 8 || size == longest_instruction; // these targets have no 12
    if (status == llvm::MCDisassembler::Fail || !possible || size > code.size()) return std::nullopt;
    if (lowered && (size != lowered->size || !high_sources.raise(inst, *lowered))) return std::nullopt; // not its prefix alone
    return size;
  }

  // What an instruction is does not depend on where it stands, and code repeats itself: three of four instructions of a
  // library have been seen before. One of 4 bytes is known by them alone, because no encoding looks further unless they
  // say so.
  void decode_one(std::span<const std::uint8_t> code, Instruction& instruction) {
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, code.data(), std::min<std::size_t>(code.size(), sizeof bytes));
    const std::uint64_t address = instruction.address;
    const std::uint64_t first = bytes & 0xffffffff;
    const auto* place = find(first);
    if (place && *place == goes_on) place = code.size() >= sizeof bytes && bytes != first && bytes < largest_key ? find(bytes) : nullptr;
    if (place && known_[*place].size <= code.size()) {
      instruction = known_[*place];
      instruction.address = address;
      instruction.branch_target = target_of(instruction);
      return;
    }
    decode_new(code, instruction);
    if (instruction.valid && instruction.size <= sizeof bytes) remember(bytes, instruction);
  }

  const std::uint32_t* find(std::uint64_t key) const {
    const auto at = places_.find(key);
    return at == places_.end() ? nullptr : &at->second;
  }

  void remember(std::uint64_t bytes, const Instruction& instruction) {
    if (known_.size() >= max_known) {
      known_.clear();
      places_.clear();
    }
    const std::uint64_t first = bytes & 0xffffffff;
    const auto place = static_cast<std::uint32_t>(known_.size());
    if (instruction.size == 4) {
      places_[first] = place;
    } else {
      // A second half of zeros would make the key of all 8 bytes that of the first 4, and two keys are the map's own.
      if (bytes == first || bytes >= largest_key) return;
      places_[first] = goes_on;
      places_[bytes] = place;
    }
    known_.push_back(instruction);
  }

  void decode_new(std::span<const std::uint8_t> code, Instruction& instruction) {
    llvm::MCInst inst;
    const auto size = decode_operands(code, instruction.address, inst);
    instruction.valid = size.has_value();
    instruction.size = static_cast<std::uint32_t>(size.value_or(std::min<std::size_t>(code.size(), 4)));
    std::copy_n(code.begin(), instruction.size, instruction.bytes.begin());
    if (!instruction.valid) {
      std::uint32_t word = 0;
      std::memcpy(&word, instruction.bytes.data(), instruction.size);
      instruction.mnemonic = ".long";
      instruction.text = fmt::format(".long {:#010x}", word);
      return;
    }
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    printer->printInst(&inst, instruction.address, "", *mc.subtarget, stream);
    stream.flush();
    instruction.text = tidy(printed);
    instruction.mnemonic = instruction.text.substr(0, instruction.text.find(' '));
    instruction.opcode = inst.getOpcode();
    const llvm::StringRef name = mc.instructions->getName(inst.getOpcode());
    instruction.mc_name = {name.data(), name.size()};
    instruction.flow = flow_of(instruction.mnemonic);
    instruction.kind = class_of_mnemonic(instruction.mnemonic);
    instruction.memory = memory_op_of_text(instruction.mnemonic, instruction.text);
    instruction.use = registers.use_of(inst, instruction);
    instruction.branch_target = target_of(instruction);
  }

  McTarget mc;
  RoomForLiterals limits;
  llvm::MCContext context;
  RegisterReader registers;
  HighSources high_sources;
  std::unique_ptr<llvm::MCDisassembler> disassembler;
  std::unique_ptr<llvm::MCInstPrinter> printer;
  // Valid instructions that were decoded before, and where each is: by its 4 bytes, or by its 8, with `goes_on` at the first 4.
  static constexpr std::uint32_t goes_on = ~std::uint32_t{0};
  static constexpr std::uint64_t largest_key = ~std::uint64_t{0} - 1;
  std::vector<Instruction> known_;
  llvm::DenseMap<std::uint64_t, std::uint32_t> places_;
};

Disassembler::Disassembler(const TargetFacts& target) : machine_(std::make_unique<Machine>(target)) {}
Disassembler::~Disassembler() = default;
Disassembler::Disassembler(Disassembler&&) noexcept = default;
Disassembler& Disassembler::operator=(Disassembler&&) noexcept = default;

std::vector<Instruction> Disassembler::decode(std::span<const std::uint8_t> code, std::uint64_t address) {
  std::vector<Instruction> instructions;
  instructions.reserve(code.size() / 6);
  while (!code.empty()) {
    Instruction& instruction = instructions.emplace_back();
    instruction.address = address;
    machine_->decode_one(code, instruction);
    code = code.subspan(instruction.size);
    address += instruction.size;
  }
  return instructions;
}
} // namespace kiln::isa
