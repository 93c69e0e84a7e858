// Looking for addresses in code words. An instruction of another kind whose literal looks the same makes no difference: the sum has to be
// the address of a function.
#include "isa_checks/object/called_functions.h"
#include <algorithm>
#include <cstring>
#include <llvm/BinaryFormat/ELF.h>
#include <map>
#include <optional>
#include <set>

namespace kiln::isa {
namespace {

using u32 = std::uint32_t;

// Encodings of gfx9 ("AMD Instinct MI300 ISA", SOP1 and SOP2): SDST in bits 16 to 22, SSRC1 in 8 to 15, SSRC0 in 0 to 7.
constexpr u32 getpc = 0xbe801c00, getpc_mask = 0xff80ffff;
constexpr u32 add = 0x80000000, addc = 0x82000000;
constexpr u32 literal = 255, first_integer = 128, last_positive = 192, last_negative = 208;

u32 word_at(std::span<const std::uint8_t> code, std::size_t at) {
  u32 word = 0;
  if (at + sizeof word <= code.size()) std::memcpy(&word, code.data() + at, sizeof word);
  return word;
}

// The constant that an addition to register `reg` adds, and goes on behind it; nothing for any other instruction.
std::optional<u32> added(std::span<const std::uint8_t> code, std::size_t& at, u32 operation, u32 reg) {
  const u32 word = word_at(code, at), constant = word >> 8 & 0xff;
  if ((word & ~u32{0xff00}) != (operation | reg << 16 | reg)) return std::nullopt;
  at += 4;
  if (constant == literal) {
    at += 4;
    return word_at(code, at - 4);
  }
  if (constant < first_integer || constant > last_negative) return std::nullopt;
  return constant <= last_positive ? constant - first_integer : last_positive - constant;
}

// Calls `visit` with each address that the code makes from its own.
template <class Visit> void each_address(const Kernel& from, Visit visit) {
  for (std::size_t at = 0; at + 12 <= from.code.size(); at += 4) {
    const u32 word = word_at(from.code, at);
    if ((word & getpc_mask) != getpc) continue;
    const u32 reg = word >> 16 & 0x7f;
    std::size_t next = at + 4;
    const std::uint64_t here = from.entry + next;
    const auto low = added(from.code, next, add, reg);
    const auto high = low ? added(from.code, next, addc, reg + 1) : std::nullopt;
    if (high) visit(here + (std::uint64_t{*high} << 32) + *low);
  }
}

} // namespace

std::vector<Kernel> called_functions(const CodeObject& object) {
  if (object.relocatable()) return {};
  std::map<std::uint64_t, const ElfSymbol*> functions;
  for (const ElfSymbol& symbol : object.symbols())
    if (symbol.type == llvm::ELF::STT_FUNC && symbol.size > 0) functions.emplace(symbol.value, &symbol);
  for (const Kernel& kernel : object.kernels()) functions.erase(kernel.entry);
  std::vector<Kernel> found;
  if (functions.empty()) return found;
  const auto follow = [&](const Kernel& from) {
    each_address(from, [&](std::uint64_t address) {
      const auto at = functions.find(address);
      if (at == functions.end()) return;
      const ElfSymbol& symbol = *at->second;
      Kernel function = from; // descriptor and metadata
      function.name = std::string(symbol.name);
      function.entry = symbol.value;
      function.section = symbol.section;
      function.code = object.code_at(symbol);
      function.code_size_known = true;
      function.function = true;
      functions.erase(at);
      if (!function.code.empty()) found.push_back(std::move(function));
    });
  };
  for (const Kernel& kernel : object.kernels()) {
    std::size_t next = found.size();
    follow(kernel);
    while (next < found.size()) {
      const Kernel from = found[next++];
      follow(from);
    }
  }
  std::ranges::sort(found, {}, &Kernel::entry);
  return found;
}

} // namespace kiln::isa
