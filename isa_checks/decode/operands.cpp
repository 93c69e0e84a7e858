// Parsing the printed operands.
#include "isa_checks/decode/operands.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

namespace kiln::isa {
namespace {

using Text = std::string_view;

bool has_part(Text text, Text part) { return text.find(part) != Text::npos; }

std::optional<std::uint16_t> small_number(Text digits) {
  std::uint16_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// "7" or "[4:7]" behind the letter of a register file.
std::optional<RegisterRange> indexed(Text text, std::uint16_t file, int size) {
  std::uint16_t first = 0, last = 0;
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    const std::size_t colon = text.find(':');
    const auto from = small_number(text.substr(0, colon));
    const auto to = colon == Text::npos ? from : small_number(text.substr(colon + 1));
    if (!from || !to || *to < *from) return std::nullopt;
    first = *from;
    last = *to;
  } else {
    const auto only = small_number(text);
    if (!only) return std::nullopt;
    first = last = *only;
  }
  if (last >= size) return std::nullopt;
  return RegisterRange{static_cast<std::uint16_t>(file + first), static_cast<std::uint16_t>(last - first + 1)};
}

std::optional<RegisterRange> parse_register(Text text) {
  struct Named {
    Text name;
    RegisterRange range;
  };
  static constexpr Named named[] = {{"vcc", {reg::vcc, 2}},
                                    {"vcc_lo", {reg::vcc, 1}},
                                    {"vcc_hi", {reg::vcc + 1, 1}},
                                    {"exec", {reg::exec, 2}},
                                    {"exec_lo", {reg::exec, 1}},
                                    {"exec_hi", {reg::exec + 1, 1}},
                                    {"m0", {reg::m0, 1}},
                                    {"flat_scratch", {reg::flat_scratch, 2}},
                                    {"flat_scratch_lo", {reg::flat_scratch, 1}},
                                    {"flat_scratch_hi", {reg::flat_scratch + 1, 1}},
                                    {"src_scc", {reg::scc, 1}},
                                    {"scc", {reg::scc, 1}}};
  if (text.size() < 2) return std::nullopt;
  const Text rest = text.substr(1);
  if (text[0] == 'v' && (rest[0] == '[' || (rest[0] >= '0' && rest[0] <= '9'))) return indexed(rest, reg::vgpr, max_arch_vgprs);
  if (text[0] == 'a' && (rest[0] == '[' || (rest[0] >= '0' && rest[0] <= '9'))) return indexed(rest, reg::agpr, max_arch_vgprs);
  if (text[0] == 's' && (rest[0] == '[' || (rest[0] >= '0' && rest[0] <= '9'))) return indexed(rest, reg::sgpr, 102);
  for (const Named& n : named)
    if (n.name == text) return n.range;
  return std::nullopt;
}

std::optional<std::uint64_t> parse_number(Text text) {
  const bool minus = text.starts_with('-');
  Text digits = minus ? text.substr(1) : text;
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  if (has_part(digits, ".")) {
    const float value = std::strtof(std::string(digits).c_str(), nullptr);
    return std::bit_cast<std::uint32_t>(minus ? -value : value);
  }
  const int base = digits.starts_with("0x") ? 16 : 10;
  if (base == 16) digits.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return minus ? 0 - value : value;
}

Operand parse_operand(Text text) {
  Operand operand;
  const auto strip = [&](Text before, Text after) {
    if (!text.starts_with(before) || !text.ends_with(after) || text.size() <= before.size() + after.size()) return false;
    text = text.substr(before.size(), text.size() - before.size() - after.size());
    return operand.modified = true;
  };
  const bool is_number = parse_number(text).has_value();
  if (!is_number && strip("-", "")) operand.negated = true;
  strip("|", "|");
  strip("abs(", ")");
  strip("sext(", ")");
  strip("neg(", ")");
  operand.text = text;
  if (const auto range = parse_register(text)) {
    operand.kind = Operand::Kind::registers;
    operand.registers = *range;
  } else if (const auto number = parse_number(text)) {
    operand.kind = Operand::Kind::number;
    operand.number = *number;
  } else if (text == "off") {
    operand.kind = Operand::Kind::off;
  }
  return operand;
}

// The length of the first operand: up to a comma or space outside of brackets.
std::size_t operand_length(Text text) {
  int open = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    open += c == '[' || c == '(';
    open -= c == ']' || c == ')';
    if (open == 0 && (c == ',' || c == ' ')) return i;
  }
  return text.size();
}

} // namespace

bool Operands::has(Text modifier) const {
  for (std::size_t at = modifiers.find(modifier); at != Text::npos; at = modifiers.find(modifier, at + 1)) {
    const std::size_t end = at + modifier.size();
    if ((at == 0 || modifiers[at - 1] == ' ') && (end == modifiers.size() || modifiers[end] == ' ')) return true;
  }
  return false;
}

std::optional<std::int64_t> Operands::value(Text name) const {
  for (std::size_t at = modifiers.find(name); at != Text::npos; at = modifiers.find(name, at + 1)) {
    const std::size_t colon = at + name.size();
    if ((at != 0 && modifiers[at - 1] != ' ') || colon >= modifiers.size() || modifiers[colon] != ':') continue;
    const Text rest = modifiers.substr(colon + 1);
    if (const auto number = parse_number(rest.substr(0, rest.find(' ')))) return static_cast<std::int64_t>(*number);
  }
  return std::nullopt;
}

std::optional<MatrixShape> matrix_shape(const Instruction& instruction, const Operands& operands, const TargetFacts& target) {
  const auto format = [&](Text name) { return static_cast<int>(operands.value(name).value_or(0)); };
  return matrix_shape(Text(instruction.mnemonic), target, {format("cbsz"), format("blgp")});
}

Operands operands_of(const Instruction& instruction) {
  Operands result;
  if (!instruction.valid) return result;
  Text rest = instruction.operands();
  while (!rest.empty() && result.count < result.list.size()) {
    const std::size_t length = operand_length(rest);
    result.list[result.count++] = parse_operand(rest.substr(0, length));
    const bool more = length < rest.size() && rest[length] == ',';
    rest.remove_prefix(length);
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == ',')) rest.remove_prefix(1);
    if (!more) break;
  }
  result.modifiers = rest;
  return result;
}

} // namespace kiln::isa
