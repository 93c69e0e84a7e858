// Parsing the printed operands.
#include "isa_checks/decode/operands.h"
#include "isa_checks/decode/instruction_class.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

namespace kiln::isa {
namespace {

using Text = std::string_view;

bool has_part(Text text, Text part) { return text.find(part) != Text::npos; }

template <class... Prefixes> bool starts(Text text, Prefixes... prefixes) { return (text.starts_with(prefixes) || ...); }

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

struct Collector {
  RegisterUse use;
  void write(RegisterRange range) {
    if (use.write_count < use.write_list.size()) use.write_list[use.write_count++] = range;
  }
  void read(RegisterRange range) {
    if (use.read_count < use.read_list.size()) use.read_list[use.read_count++] = range;
  }
  void write(const Operand& operand) {
    if (operand.is(Operand::Kind::registers)) write(operand.registers);
  }
  void read(const Operand& operand) {
    if (operand.is(Operand::Kind::registers)) read(operand.registers);
  }
  void read_from(const Operands& operands, std::size_t first) {
    for (std::size_t i = first; i < operands.count; ++i) read(operands[i]);
  }
};

// Operands at the front that an instruction of the vector ALU writes.
std::size_t vector_results(Text m) {
  if (m == "v_nop" || m == "v_clrexcp") return 0;
  const bool carry = has_part(m, "_co_") || starts(m, "v_mad_u64_u32", "v_mad_i64_i32", "v_div_scale_");
  const bool swap = starts(m, "v_swap_b32", "v_permlane16_swap", "v_permlane32_swap");
  return carry || swap ? 2 : 1;
}

// Instructions that keep a part of their destination, or add to it.
bool reads_result(Text m, const Operands& o) {
  if (starts(m, "v_fmac_", "v_mac_", "v_pk_fmac_", "v_dot2c_", "v_dot4c_", "v_dot8c_", "v_writelane", "v_smfmac_", "v_swap_b32",
             "v_permlane16_swap", "v_permlane32_swap", "v_fmaak", "v_fmamk"))
    return !starts(m, "v_fmaak", "v_fmamk");
  if (has_part(o.modifiers, "UNUSED_PRESERVE") || has_part(o.modifiers, "row_") || has_part(o.modifiers, "quad_perm")) return true;
  if (has_part(m, "_dpp")) return true;
  const bool halves = starts(m, "v_cvt_pk_fp8", "v_cvt_pk_bf8", "v_cvt_sr_fp8", "v_cvt_sr_bf8", "v_cvt_scalef32_");
  return has_part(o.modifiers, "op_sel:") && (halves || has_part(m, "_f16") || has_part(m, "16_e64"));
}

void vector_use(Text m, const Operands& o, Collector& c) {
  const std::size_t results = std::min<std::size_t>(vector_results(m), o.count);
  for (std::size_t i = 0; i < results; ++i) c.write(o[i]);
  if (reads_result(m, o))
    for (std::size_t i = 0; i < results; ++i) c.read(o[i]);
  c.read_from(o, results);
  if (m.starts_with("v_cmpx_")) c.write(RegisterRange{reg::exec, 2});
  if (m.starts_with("v_div_fmas_")) c.read(RegisterRange{reg::vcc, 2});
}

void scalar_use(Text m, const Operands& o, Collector& c) {
  if (starts(m, "s_cmp_", "s_cmpk_", "s_bitcmp")) {
    c.read_from(o, 0);
    return c.write(RegisterRange{reg::scc, 1});
  }
  if (starts(m, "s_cbranch_scc")) return c.read(RegisterRange{reg::scc, 1});
  if (starts(m, "s_cbranch_vcc")) return c.read(RegisterRange{reg::vcc, 2});
  if (starts(m, "s_cbranch_exec")) return c.read(RegisterRange{reg::exec, 2});
  if (starts(m, "s_setreg", "s_store", "s_buffer_store", "s_scratch_store", "s_setpc", "s_set_gpr_idx", "s_sendmsg", "s_waitcnt", "s_nop",
             "s_branch", "s_atomic"))
    return c.read_from(o, 0);
  if (o.count > 0) c.write(o[0]);
  if (starts(m, "s_addk", "s_mulk", "s_cmov", "s_bitset") && o.count > 0) c.read(o[0]);
  c.read_from(o, 1);
  if (has_part(m, "_saveexec_") || has_part(m, "_wrexec_")) {
    c.write(RegisterRange{reg::exec, 2});
    c.read(RegisterRange{reg::exec, 2});
  }
  if (starts(m, "s_cselect", "s_addc", "s_subb", "s_cmov")) c.read(RegisterRange{reg::scc, 1});
  if (!starts(m, "s_mov", "s_load", "s_buffer_load", "s_mul_i32", "s_mul_hi", "s_cselect", "s_cmov", "s_getpc", "s_getreg", "s_memtime",
              "s_memrealtime", "s_swappc", "s_call", "s_bfm", "s_pack", "s_brev", "s_ff", "s_flbit", "s_sext", "s_bitset"))
    c.write(RegisterRange{reg::scc, 1});
}

void memory_use(Text m, const MemoryOp& op, const Operands& o, Collector& c) {
  bool returns = op.direction == MemoryDirection::load && !op.to_lds;
  if (op.direction == MemoryDirection::atomic)
    returns = op.space == MemorySpace::lds ? has_part(m, "_rtn") || starts(m, "ds_append", "ds_consume") : o.has("sc0") || o.has("glc");
  const bool data_is_result = op.space == MemorySpace::buffer && op.direction == MemoryDirection::atomic; // one operand for both
  if (returns && o.count > 0) {
    c.write(o[0]);
    if (data_is_result || has_part(m, "d16")) c.read(o[0]);
  }
  c.read_from(o, returns ? 1 : 0);
  if (op.to_lds) c.read(RegisterRange{reg::m0, 1});
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

RegisterUse register_use(const Instruction& instruction, const Operands& operands) {
  Collector c;
  if (!instruction.valid) return c.use;
  const Text m = instruction.mnemonic;
  if (const auto op = memory_op(instruction); op && op->space != MemorySpace::scalar) memory_use(m, *op, operands, c);
  else if (m.starts_with("v_")) vector_use(m, operands, c);
  else if (m.starts_with("s_")) scalar_use(m, operands, c);
  else if (starts(m, "ds_bpermute", "ds_permute", "ds_swizzle")) {
    if (operands.count > 0) c.write(operands[0]);
    c.read_from(operands, 1);
  } else {
    c.read_from(operands, 0);
  }
  return c.use;
}

} // namespace kiln::isa
