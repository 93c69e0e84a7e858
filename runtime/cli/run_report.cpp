// RunReport: what an execution on the CPU found and counted, as text and as JSON.
#include "runtime/cli/run_report.h"
#include "runtime/table.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <utility>

namespace kiln::cli {
namespace {

using exec::InstClass;
using exec::InstCounters;

// Memory instructions alike: of one class, moving as many bytes for each active lane.
struct Width {
  InstClass cls;
  std::uint64_t bytes_per_lane;
  auto operator<=>(const Width&) const = default;
};

struct Summary {
  std::map<Width, InstCounters> by_width;
  std::uint64_t lane_slots = 0, lanes = 0; // of vector instructions: 64 for each execution, and those EXEC left on
  std::uint64_t lds_cycles = 0, lds_ideal = 0;
  std::uint64_t waits = 0, in_flight = 0, in_flight_peak = 0; // s_waitcnt executed; bytes of loads in flight there
  double mean_in_flight() const { return waits == 0 ? 0 : static_cast<double>(in_flight) / static_cast<double>(waits); }
  double lanes_active() const { return lane_slots == 0 ? 0 : static_cast<double>(lanes) / static_cast<double>(lane_slots); }
};

bool is_vector(InstClass cls) {
  return cls == InstClass::valu || cls == InstClass::trans || cls == InstClass::vmem || cls == InstClass::lds;
}

Summary summary_of(const exec::ExecResult& result) {
  Summary s;
  for (const exec::InstructionProfile& i : result.instructions) {
    const InstCounters& c = i.counters;
    if (is_vector(i.cls)) {
      s.lane_slots += wave_size * c.executed;
      s.lanes += c.lanes;
    }
    s.lds_cycles += c.lds_cycles;
    s.lds_ideal += c.lds_ideal;
    if (i.cls == InstClass::wait) {
      s.waits += c.executed;
      s.in_flight += c.in_flight;
      s.in_flight_peak = std::max(s.in_flight_peak, c.in_flight_peak);
    }
    // A scalar load moves its bytes once a wave.
    const std::uint64_t movers = i.cls == InstClass::smem ? c.executed : c.lanes;
    if (c.bytes != 0 && movers != 0) s.by_width[{i.cls, c.bytes / movers}].add(c);
  }
  return s;
}

std::string text_of_classes(const exec::WaveTotals& waves) {
  Table table{.header = {"CLASS", "EXECUTED", "LEAST WAVE", "MOST WAVE"}, .rows = {}, .right = {false, true, true, true}};
  for (std::size_t c = 0; c < exec::inst_class_count; ++c)
    if (waves.total[c] != 0)
      table.rows.push_back({std::string(to_string(static_cast<InstClass>(c))), std::to_string(waves.total[c]),
                            std::to_string(waves.least[c]), std::to_string(waves.most[c])});
  return to_text(table);
}

std::string text_of_memory(const Summary& s) {
  if (s.by_width.empty()) return {};
  Table table{.header = {"MEMORY", "BYTES A LANE", "EXECUTED", "BYTES", "64-BYTE LINES", "128-BYTE LINES"},
              .rows = {},
              .right = {false, true, true, true, true, true}};
  for (const auto& [width, c] : s.by_width)
    table.rows.push_back({std::string(to_string(width.cls)), std::to_string(width.bytes_per_lane), std::to_string(c.executed),
                          std::to_string(c.bytes), std::to_string(c.lines64), std::to_string(c.lines128)});
  return to_text(table);
}

} // namespace

std::string to_text(const exec::ExecResult& result) {
  std::string text;
  for (const exec::Defect& finding : result.defects) text += fmt::format("finding: {}\n", exec::to_text(finding));
  if (result.defects.empty()) text += "findings: none\n";
  if (!result.completed) text += "the run did not complete\n";
  const Summary s = summary_of(result);
  const exec::WaveTotals& waves = result.waves;
  text += fmt::format("{} waves, {} instructions; a wave {} to {}, {:.1f} on average\n{}{}", waves.waves, waves.executed(),
                      exec::sum(waves.least), exec::sum(waves.most), waves.mean(), text_of_classes(waves), text_of_memory(s));
  if (s.in_flight != 0)
    text += fmt::format("bytes of loads in flight at s_waitcnt: {:.0f} on average, {} at most (of a wave)\n", s.mean_in_flight(),
                        s.in_flight_peak);
  text += fmt::format("lanes active {:.1f}%", 100 * s.lanes_active());
  if (s.lds_cycles != 0) text += fmt::format("; LDS bank passes {}, {} of them for conflicts", s.lds_cycles, s.lds_cycles - s.lds_ideal);
  return text + "\n";
}

nlohmann::ordered_json to_json(const exec::ExecResult& result) {
  nlohmann::ordered_json json{{"completed", result.completed}, {"findings", nlohmann::ordered_json::array()}};
  for (const exec::Defect& f : result.defects)
    json["findings"].push_back({{"kind", to_string(f.kind)},
                                {"address", f.instruction},
                                {"instruction", f.text},
                                {"workgroup", f.workgroup},
                                {"wave", f.wave},
                                {"lane", f.lane},
                                {"message", f.message},
                                {"source", f.source},
                                {"count", f.count}});
  const exec::WaveTotals& waves = result.waves;
  json["waves"] = waves.waves;
  json["instructions_per_wave"] = {{"least", exec::sum(waves.least)}, {"mean", waves.mean()}, {"most", exec::sum(waves.most)}};
  for (std::size_t c = 0; c < exec::inst_class_count; ++c)
    if (waves.total[c] != 0)
      json["executed"][std::string(to_string(static_cast<InstClass>(c)))] = {
          {"total", waves.total[c]}, {"least", waves.least[c]}, {"most", waves.most[c]}};
  const Summary s = summary_of(result);
  json["memory"] = nlohmann::ordered_json::array();
  for (const auto& [width, c] : s.by_width)
    json["memory"].push_back({{"class", to_string(width.cls)},
                              {"bytes_per_lane", width.bytes_per_lane},
                              {"executed", c.executed},
                              {"bytes", c.bytes},
                              {"lines64", c.lines64},
                              {"lines128", c.lines128}});
  json["lds"] = {{"bank_passes", s.lds_cycles}, {"bank_passes_without_conflicts", s.lds_ideal}};
  json["lanes_active"] = s.lanes_active();
  json["in_flight"] = {{"mean_bytes", s.mean_in_flight()}, {"peak_bytes", s.in_flight_peak}, {"waits", nlohmann::ordered_json::array()}};
  for (const exec::InstructionProfile& i : result.instructions)
    if (i.cls == InstClass::wait && i.counters.executed != 0)
      json["in_flight"]["waits"].push_back(
          {{"address", i.address},
           {"executed", i.counters.executed},
           {"mean_bytes", static_cast<double>(i.counters.in_flight) / static_cast<double>(i.counters.executed)},
           {"peak_bytes", i.counters.in_flight_peak},
           {"outstanding_vm", {i.counters.min_vm, i.counters.max_vm}},
           {"outstanding_lgkm", {i.counters.min_lgkm, i.counters.max_lgkm}}});
  return json;
}

} // namespace kiln::cli
