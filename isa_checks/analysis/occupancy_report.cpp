// Looking for the neighbours of a kernel's resources that change its occupancy.
#include "isa_checks/analysis/occupancy_report.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {
namespace {

int workgroups(const TargetFacts& target, OccupancyInput input, int OccupancyInput::* resource, int amount) {
  input.*resource = amount;
  return occupancy(target, input).workgroups_per_cu;
}

// The largest amount below `now` with more workgroups on a CU than `current`: workgroups only grow as the amount falls.
std::optional<OccupancyStep> step_down(const TargetFacts& target, const OccupancyInput& input, int OccupancyInput::* resource,
                                       int current) {
  const int now = input.*resource;
  if (now <= 0 || workgroups(target, input, resource, 0) <= current) return std::nullopt;
  int low = 0, high = now; // more at low, no more at high
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (workgroups(target, input, resource, middle) > current ? low : high) = middle;
  }
  OccupancyInput less = input;
  less.*resource = low;
  const Occupancy then = occupancy(target, less);
  return OccupancyStep{now - low, then.waves_per_simd, then.workgroups_per_cu};
}

int spare(const TargetFacts& target, const OccupancyInput& input, int OccupancyInput::* resource, int most, int current) {
  int low = input.*resource, high = most + 1; // as many at low, fewer at high
  if (low >= high) return 0;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    (workgroups(target, input, resource, middle) >= current ? low : high) = middle;
  }
  return low - input.*resource;
}

std::string count_text(double waves) { return fmt::format("{:g}", waves); }

} // namespace

OccupancyInput occupancy_input(const Resources& r) {
  return {.vgprs = r.vgprs, .sgprs = r.sgprs, .lds_bytes = r.lds_bytes, .workgroup_size = r.workgroup_size};
}

OccupancyReport occupancy_report(const TargetFacts& target, const Resources& resources) {
  const OccupancyInput input = occupancy_input(resources);
  OccupancyReport report;
  report.now = occupancy(target, input);
  const int current = report.now.workgroups_per_cu;
  report.vgprs = step_down(target, input, &OccupancyInput::vgprs, current);
  report.lds = step_down(target, input, &OccupancyInput::lds_bytes, current);
  report.sgprs = step_down(target, input, &OccupancyInput::sgprs, current);
  if (current > 0) {
    report.spare_vgprs = spare(target, input, &OccupancyInput::vgprs, max_vgprs, current);
    report.spare_lds_bytes = spare(target, input, &OccupancyInput::lds_bytes, target.lds_bytes, current);
  }
  return report;
}

std::string to_text(const OccupancyReport& r) {
  std::string text = fmt::format("  {} waves per SIMD ({} workgroups per CU), limited by {}\n", count_text(r.now.waves_per_simd),
                                 r.now.workgroups_per_cu, to_string(r.now.limit));
  const auto line = [&](const std::optional<OccupancyStep>& step, std::string_view unit) {
    if (step)
      text += fmt::format("  {} {} fewer give {} waves instead of {}\n", step->fewer, unit, count_text(step->waves_per_simd),
                          count_text(r.now.waves_per_simd));
  };
  line(r.vgprs, "VGPRs");
  line(r.sgprs, "SGPRs");
  line(r.lds, "bytes of LDS");
  text += fmt::format("  {} more VGPRs and {} more bytes of LDS cost no waves\n", r.spare_vgprs, r.spare_lds_bytes);
  return text;
}

std::string to_json(const OccupancyReport& r) {
  using Json = nlohmann::ordered_json;
  const auto step = [](const std::optional<OccupancyStep>& s) {
    return s ? Json{{"fewer", s->fewer}, {"waves_per_simd", s->waves_per_simd}, {"workgroups_per_cu", s->workgroups_per_cu}} : Json();
  };
  const Json json{{"waves_per_simd", r.now.waves_per_simd},
                  {"workgroups_per_cu", r.now.workgroups_per_cu},
                  {"limit", to_string(r.now.limit)},
                  {"vgprs", step(r.vgprs)},
                  {"sgprs", step(r.sgprs)},
                  {"lds", step(r.lds)},
                  {"spare_vgprs", r.spare_vgprs},
                  {"spare_lds_bytes", r.spare_lds_bytes}};
  return json.dump(2);
}

} // namespace kiln::isa
