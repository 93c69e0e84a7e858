// A prediction as text and as JSON. Each says that it is one, for which chip and which state of the caches.
#include "isa_checks/timing/predict.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::timing {

std::string to_text(const Prediction& p) {
  const Simulation& s = p.simulation;
  std::string text = fmt::format("{}: predicted {:.2f} us ({:.2f} to {:.2f}) on {}, caches {}, {} launch\n", p.kernel, p.microseconds,
                                 p.low, p.high, p.chip->name, to_string(p.cache), to_string(p.launch));
  if (!p.extrapolated.empty()) text += fmt::format("  extrapolated from {}\n", p.extrapolated);
  text += fmt::format("  {} workgroups, {:.2f} MB: {:.2f} TB/s, {:.0f} % of the peak of {:g}", p.workgroups, p.bytes / 1e6, p.rate_tbs,
                      100 * p.share_of_peak, p.chip->peak_tbs);
  const double read = s.traffic.l1 + s.traffic.l2 + s.traffic.mall + s.traffic.hbm;
  if (read > 0)
    text += fmt::format("; read from L1 {:.0f} %, L2 {:.0f} %, MALL {:.0f} %, HBM {:.0f} %", 100 * s.traffic.l1 / read,
                        100 * s.traffic.l2 / read, 100 * s.traffic.mall / read, 100 * s.traffic.hbm / read);
  text += "\n";
  for (const Phase& phase : p.phases)
    text += fmt::format(
        "  {:<7}{:>8.2f} us  {}{}\n", phase.name, phase.microseconds, phase.bound_by,
        phase.bound_by == "latency" || phase.bound_by == "the launch itself" ? "" : fmt::format(" (busy {:.0f} %)", 100 * phase.busy));
  double all = 0;
  for (const double c : s.wave_cycles) all += c;
  text += "  a wave";
  for (std::size_t d = 0; d < doing_count; ++d)
    if (all > 0 && s.wave_cycles[d] / all >= 0.005)
      text += fmt::format("{} {} {:.0f} %", text.ends_with("wave") ? "" : ",", to_string(static_cast<WaveActivity>(d)),
                          100 * s.wave_cycles[d] / all);
  text += "\n";
  for (const Change& c : p.changes)
    if (c.microseconds < p.microseconds - 0.005)
      text += fmt::format("  with {}: predicted {:.2f} us less\n", c.what, p.microseconds - c.microseconds);
  return text;
}

std::string to_json(const Prediction& p) {
  const Simulation& s = p.simulation;
  nlohmann::ordered_json json{{"kernel", p.kernel},
                              {"chip", p.chip->name},
                              {"cache", to_string(p.cache)},
                              {"launch", to_string(p.launch)},
                              {"predicted_us", p.microseconds},
                              {"predicted_low_us", p.low},
                              {"predicted_high_us", p.high},
                              {"bytes", p.bytes},
                              {"rate_tbs", p.rate_tbs},
                              {"share_of_peak", p.share_of_peak},
                              {"workgroups", p.workgroups},
                              {"flops", p.flops}};
  if (!p.extrapolated.empty()) json["extrapolated_from"] = p.extrapolated;
  for (const Phase& phase : p.phases)
    json["phases"].push_back({{"name", phase.name}, {"us", phase.microseconds}, {"bound_by", phase.bound_by}, {"busy", phase.busy}});
  double all = 0;
  for (const double c : s.wave_cycles) all += c;
  for (std::size_t d = 0; d < doing_count; ++d)
    json["wave_time"][std::string(to_string(static_cast<WaveActivity>(d)))] = all > 0 ? s.wave_cycles[d] / all : 0;
  for (const Change& c : p.changes) json["changes"].push_back({{"what", c.what}, {"predicted_us", c.microseconds}});
  const double xcds = s.xcds;
  json["read_bytes"] = {
      {"l1", s.traffic.l1 * xcds}, {"l2", s.traffic.l2 * xcds}, {"mall", s.traffic.mall * xcds}, {"hbm", s.traffic.hbm * xcds}};
  json["simulated"] = {{"xcds", s.xcds}, {"cus_of_one_xcd", s.cus}, {"workgroups_of_one_xcd", s.workgroups}};
  return json.dump(2);
}

} // namespace kiln::timing
