// ChipFields: one line for each number, and the reader of chip files.
#include "isa_checks/timing/chip_fields.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::timing {
namespace {

#define KILN_FIELD(name)                                                                                                                   \
  ChipField { #name, &Chip::name }
constexpr ChipField fields[] = {
    KILN_FIELD(clock_ghz),
    KILN_FIELD(eager_ns),
    KILN_FIELD(max_missing_bytes),
    KILN_FIELD(floor_ns),
    KILN_FIELD(wave_launch_cycles),
    KILN_FIELD(slot_turnover_ns),
    KILN_FIELD(dependent_cycles),
    KILN_FIELD(taken_branch_cycles),
    KILN_FIELD(scalar_load_cycles),
    KILN_FIELD(lds_latency_cycles),
    KILN_FIELD(lds_pass_cycles),
    KILN_FIELD(barrier_cycles),
    KILN_FIELD(l1_latency_cycles),
    KILN_FIELD(l2_latency_cycles),
    KILN_FIELD(mall_latency_ns),
    KILN_FIELD(hbm_latency_ns),
    KILN_FIELD(l1_bytes_per_cycle),
    KILN_FIELD(fill_bytes_per_cycle),
    KILN_FIELD(l2_tbs),
    KILN_FIELD(mall_tbs),
    KILN_FIELD(hbm_tbs),
    KILN_FIELD(write_tbs),
    KILN_FIELD(hbm_free_bytes),
    KILN_FIELD(hbm_ns_per_byte),
    KILN_FIELD(mall_free_bytes),
    KILN_FIELD(mall_ns_per_byte),
    KILN_FIELD(store_ack_cycles),
    KILN_FIELD(release_ns),
    KILN_FIELD(acquire_ns),
    KILN_FIELD(atomic_ns),
};
#undef KILN_FIELD

void set(Chip& chip, const std::string& name, const nlohmann::json& value) {
  const nlohmann::json measured = value.is_object() ? value.value("measured", nlohmann::json()) : value;
  const auto field = std::ranges::find(fields, name, &ChipField::name);
  if (field == std::end(fields))
    throw isa::Error(fmt::format("chip constant \"{}\"", name), "there is none of that name", "see kiln calibrate --help");
  if (measured.is_null()) return;
  if (!measured.is_number() || measured.get<double>() <= 0)
    throw isa::Error(fmt::format("chip constant \"{}\"", name), fmt::format("it is {}", measured.dump()), "give a number above 0, or null");
  chip.*(field->place) = measured.get<double>();
}

} // namespace

std::span<const ChipField> chip_fields() { return fields; }

Chip read_chip(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("chip") || !json["chip"].is_string() || !json.contains("constants") ||
      !json["constants"].is_object())
    throw isa::Error("chip file", "it is no object with \"chip\" and \"constants\"", "let kiln calibrate -o write it");
  Chip result = chip(json["chip"].get<std::string>());
  for (const auto& [name, value] : json["constants"].items()) set(result, name, value);
  return result;
}

} // namespace kiln::timing
