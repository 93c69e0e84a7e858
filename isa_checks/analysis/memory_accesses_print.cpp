// MemoryAnalysis as text and as JSON.
#include "isa_checks/analysis/memory_accesses.h"
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

std::string kind_of(const MemoryAccess& a) {
  std::string text = fmt::format("{}_{} {} B", to_string(a.op.space), to_string(a.op.direction), a.op.bytes);
  if (a.op.to_lds) text += " to LDS";
  for (const auto& [set, name] : {std::pair(a.sc0, "sc0"), std::pair(a.sc1, "sc1"), std::pair(a.nt, "nt")})
    if (set) text += fmt::format(" {}", name);
  return text;
}

std::string traffic_text(const LoopTraffic& t) {
  return fmt::format("{} B loaded, {} B stored, {} B read and {} B written in LDS, {} B scalar", t.loaded, t.stored, t.lds_read,
                     t.lds_written, t.scalar);
}

} // namespace

std::string to_text(const MemoryAnalysis& memory, const Program& program) {
  std::string text;
  if (!memory.addresses_complete) text += "  addresses not analysed: the kernel exceeds the work budget\n";
  for (const LoopTraffic& t : memory.loops) {
    const std::string name = t.loop == nothing ? "whole kernel, each instruction once" : program.loop_name(t.loop);
    text += fmt::format("  {}: of one wave {}\n", name, traffic_text(t));
    std::map<std::string, int> kinds;
    for (const MemoryAccess& a : memory.accesses)
      if (t.loop == nothing || a.loop == t.loop) ++kinds[kind_of(a)];
    for (const auto& [kind, count] : kinds) text += fmt::format("    {} x{}\n", kind, count);
    if (t.flat > 0) text += fmt::format("    {} flat instructions, which wait for LDS and device memory alike\n", t.flat);
    if (t.missed_saddr > 0) text += fmt::format("    {} accesses advance a 64-bit vector address\n", t.missed_saddr);
  }
  for (const MemoryAccess& a : memory.accesses) {
    if (a.banks && a.banks->needed > a.banks->ideal)
      text += fmt::format("  {:#x} {}: {} bank passes, {} without conflicts\n", program.instructions[a.instruction].address,
                          program.instructions[a.instruction].mnemonic, a.banks->needed, a.banks->ideal);
  }
  return text;
}

std::string to_json(const MemoryAnalysis& memory, const Program& program) {
  using Json = nlohmann::ordered_json;
  const auto loop_of = [](std::size_t loop) { return loop == nothing ? Json() : Json(loop); };
  Json json;
  json["addresses_complete"] = memory.addresses_complete;
  json["accesses"] = Json::array();
  for (const MemoryAccess& a : memory.accesses) {
    Json one{{"address", program.instructions[a.instruction].address},
             {"loop", loop_of(a.loop)},
             {"space", to_string(a.op.space)},
             {"direction", to_string(a.op.direction)},
             {"bytes", a.op.bytes},
             {"to_lds", a.op.to_lds},
             {"sc0", a.sc0},
             {"sc1", a.sc1},
             {"nt", a.nt},
             {"saddr", a.saddr}};
    if (a.banks)
      one["banks"] = {{"passes", a.banks->needed}, {"ideal", a.banks->ideal}, {"worst", a.banks->worst}, {"lanes_known", a.lanes_known}};
    if (a.coalescing)
      one["coalescing"] = {{"lines64", a.coalescing->lines64},
                           {"lines128", a.coalescing->lines128},
                           {"useful_bytes", a.coalescing->useful_bytes},
                           {"step", a.coalescing->step ? Json(*a.coalescing->step) : Json()},
                           {"lanes_known", a.lanes_known}};
    json["accesses"].push_back(std::move(one));
  }
  json["loops"] = Json::array();
  for (const LoopTraffic& t : memory.loops)
    json["loops"].push_back({{"loop", loop_of(t.loop)},
                             {"loaded", t.loaded},
                             {"stored", t.stored},
                             {"lds_read", t.lds_read},
                             {"lds_written", t.lds_written},
                             {"scalar", t.scalar},
                             {"flat", t.flat},
                             {"missed_saddr", t.missed_saddr}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
