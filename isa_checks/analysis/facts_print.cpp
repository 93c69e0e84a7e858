// KernelFacts as text and as JSON.
#include "isa_checks/analysis/facts.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

using Json = nlohmann::ordered_json;

std::string line(std::string_view name, std::string_view value) { return fmt::format("  {:<16} {}\n", name, value); }

std::string memory_name(const MemoryOp& op) {
  return fmt::format("{}_{}{}", to_string(op.space), to_string(op.direction), op.to_lds ? "_to_lds" : "");
}

std::string histogram_text(std::string_view counter, const WaitHistogram& histogram) {
  std::string text;
  for (const auto& [value, count] : histogram) text += fmt::format("{}{}({}) x{}", text.empty() ? "" : ", ", counter, value, count);
  return text;
}

Json by_number(const std::map<int, std::uint32_t>& counts) {
  Json json = Json::object();
  for (const auto& [key, count] : counts) json[std::to_string(key)] = count;
  return json;
}

} // namespace

std::string widths_text(const std::map<int, std::uint32_t>& widths) {
  std::string text;
  for (auto it = widths.rbegin(); it != widths.rend(); ++it)
    text += fmt::format("{}{}B x{}", text.empty() ? "" : ", ", it->first, it->second);
  return text.empty() ? "-" : text;
}

std::string to_text(const KernelFacts& facts) {
  const Resources& r = facts.resources;
  const Occupancy& o = facts.occupancy;
  std::string text = fmt::format("{} ({})\n", facts.kernel, facts.target_id);
  text += line("registers", fmt::format("{} VGPR ({} architectural + {} accumulation, {} allocated), {} SGPR", r.vgprs, r.arch_vgprs,
                                        r.agprs, o.allocated_vgprs, r.sgprs));
  text +=
      line("memory", fmt::format("{} B LDS, {} B scratch per lane, {} B kernel arguments", r.lds_bytes, r.scratch_bytes, r.kernarg_bytes));
  text += line("spills", fmt::format("{} VGPR, {} SGPR", r.vgpr_spills, r.sgpr_spills));
  text += line("workgroup", fmt::format("{} lanes{}", r.workgroup_size, r.workgroup_size_known ? "" : " (not said, the most assumed)"));
  std::string limit =
      fmt::format("{:g} waves per SIMD, {} workgroups per CU, limited by {}", o.waves_per_simd, o.workgroups_per_cu, to_string(o.limit));
  if (o.next_vgprs > 0) limit += fmt::format(" ({} fewer would allow more)", r.vgprs - o.next_vgprs);
  if (o.compiler_waves_per_simd != o.waves_per_simd) limit += fmt::format("; the compiler's remark says {}", o.compiler_waves_per_simd);
  text += line("occupancy", limit);
  std::string mix;
  for (std::size_t i = 0; i < facts.classes.size(); ++i)
    if (facts.classes[i] != 0) mix += fmt::format(", {} {}", to_string(static_cast<InstructionClass>(i)), facts.classes[i]);
  text += line("instructions", fmt::format("{} in {} bytes{}", facts.instructions, facts.code_bytes, mix));
  if (facts.undecodable != 0) text += line("undecodable", fmt::format("{} words", facts.undecodable));
  std::map<std::string, std::map<int, std::uint32_t>> memory;
  for (const auto& [op, count] : facts.memory) memory[memory_name(op)][op.bytes] += count;
  for (const auto& [name, widths] : memory) text += line(name, widths_text(widths));
  std::string waits = histogram_text("vmcnt", facts.vmcnt);
  for (const std::string& more : {histogram_text("lgkmcnt", facts.lgkmcnt), histogram_text("expcnt", facts.expcnt)})
    if (!more.empty()) waits += (waits.empty() ? "" : ", ") + more;
  text += line("waits", waits.empty() ? "-" : waits);
  return text;
}

std::string to_json(const KernelFacts& facts) {
  const Resources& r = facts.resources;
  const Occupancy& o = facts.occupancy;
  Json json;
  json["kernel"] = facts.kernel;
  json["arch"] = facts.arch;
  json["target_id"] = facts.target_id;
  json["resources"] = {{"vgprs", r.vgprs},
                       {"arch_vgprs", r.arch_vgprs},
                       {"agprs", r.agprs},
                       {"sgprs", r.sgprs},
                       {"lds_bytes", r.lds_bytes},
                       {"scratch_bytes", r.scratch_bytes},
                       {"vgpr_spills", r.vgpr_spills},
                       {"sgpr_spills", r.sgpr_spills},
                       {"kernarg_bytes", r.kernarg_bytes},
                       {"workgroup_size", r.workgroup_size},
                       {"workgroup_size_known", r.workgroup_size_known},
                       {"dynamic_stack", r.dynamic_stack}};
  json["occupancy"] = {{"waves_per_simd", o.waves_per_simd},
                       {"waves_per_cu", o.waves_per_cu},
                       {"workgroups_per_cu", o.workgroups_per_cu},
                       {"limit", to_string(o.limit)},
                       {"allocated_vgprs", o.allocated_vgprs},
                       {"allocated_lds_bytes", o.allocated_lds_bytes},
                       {"next_vgprs", o.next_vgprs},
                       {"compiler_waves_per_simd", o.compiler_waves_per_simd}};
  json["instructions"] = facts.instructions;
  json["code_bytes"] = facts.code_bytes;
  json["undecodable"] = facts.undecodable;
  for (std::size_t i = 0; i < facts.classes.size(); ++i)
    json["classes"][std::string(to_string(static_cast<InstructionClass>(i)))] = facts.classes[i];
  json["memory"] = Json::array();
  for (const auto& [op, count] : facts.memory)
    json["memory"].push_back({{"space", to_string(op.space)},
                              {"direction", to_string(op.direction)},
                              {"bytes", op.bytes},
                              {"to_lds", op.to_lds},
                              {"count", count}});
  json["waits"] = {{"vmcnt", by_number(facts.vmcnt)}, {"lgkmcnt", by_number(facts.lgkmcnt)}, {"expcnt", by_number(facts.expcnt)}};
  // Names come from the file's bytes: what is not UTF-8 is replaced, never thrown over.
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
