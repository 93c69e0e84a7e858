// Lowers and raises registers in the encoding and in LLVM's form of an instruction.
#include "isa_checks/decode/high_sources.h"
#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

namespace kiln::isa {
namespace {

constexpr std::uint32_t is_vector = 0x100, last_of_eight = 248, source_bits = 9; // v248 is the last one that begins eight registers

// "VGPR242_VGPR243" with each number raised.
std::string raised(std::string_view name) {
  std::string result;
  while (!name.empty()) {
    const std::size_t digit = name.find_first_of("0123456789");
    if (digit == name.npos) return result;
    unsigned number = 0;
    const char* const end = std::from_chars(name.data() + digit, name.data() + name.size(), number).ptr;
    result.append(name.substr(0, digit)).append(std::to_string(number + HighSources::lower_by));
    name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  }
  return result;
}

} // namespace

std::optional<HighSources::Lowered> HighSources::lowered(std::span<const std::uint8_t> code) {
  const auto is = [&](std::size_t at, std::uint8_t opcode) {
    return code.size() >= at + 8 && code[at + 3] == 0xd3 && code[at + 2] == opcode; // VOP3P
  };
  const std::size_t at = is(0, 0xac) ? 8 : 0; // behind V_MFMA_LD_SCALE_B32
  if (!is(at, 0xad) && !is(at, 0xae)) return std::nullopt;
  Lowered result;
  result.size = at + 8;
  std::copy_n(code.begin(), result.size, result.bytes.begin());
  std::uint32_t sources;
  std::memcpy(&sources, &result.bytes[at + 4], sizeof sources);
  for (std::uint32_t i = 0; i < 2; ++i) {
    const std::uint32_t source = sources >> i * source_bits & ((1U << source_bits) - 1);
    if (source <= is_vector + last_of_eight) continue;
    sources -= lower_by << i * source_bits;
    result.sources[i] = true;
  }
  std::memcpy(&result.bytes[at + 4], &sources, sizeof sources);
  return result.sources[0] || result.sources[1] ? std::optional(result) : std::nullopt;
}

bool HighSources::raise(llvm::MCInst& inst, const Lowered& lowered) const {
  for (unsigned i = 0; i < 2; ++i) {
    if (!lowered.sources[i]) continue;
    llvm::MCOperand& operand = inst.getOperand(1 + i); // behind the result
    if (!operand.isReg()) return false;
    const std::string name = raised(registers_.getName(operand.getReg()));
    unsigned number = 0; // searched for each time: there are few such instructions, and a table costs every disassembler milliseconds
    while (number < registers_.getNumRegs() && name != registers_.getName(number)) ++number;
    if (number == registers_.getNumRegs()) return false;
    operand.setReg(llvm::MCRegister(number));
  }
  return true;
}

} // namespace kiln::isa
