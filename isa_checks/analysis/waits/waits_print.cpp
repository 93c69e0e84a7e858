// WaitAnalysis as text and as JSON.
#include "isa_checks/analysis/waits/waits.h"
#include "isa_checks/plural.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln::isa {

std::string to_text(const WaitAnalysis& waits, const Program& program) {
  std::string text = waits.approximate ? "  (calls, indirect or irreducible flow: approximate)\n" : "";
  if (!waits.complete) text += "  not analysed: the flow graph exceeds the work budget\n";
  for (const WaitPoint& point : waits.points) {
    text += fmt::format("  {:#x} {}({}): ", program.instructions[point.instruction].address, to_string(point.counter), point.value);
    if (point.idle()) {
      text += "waits for nothing\n";
      continue;
    }
    text += point.min_outstanding == point.max_outstanding
                ? fmt::format("{} outstanding", point.max_outstanding)
                : fmt::format("{} to {} outstanding", point.min_outstanding, point.max_outstanding);
    std::vector<std::string> awaited;
    for (const std::size_t i : point.waits_for)
      awaited.push_back(fmt::format("{:#x} {}", program.instructions[i].address, program.instructions[i].mnemonic));
    text += fmt::format(", waits for {}, issued {} before\n", fmt::join(awaited, ", "),
                        plural(static_cast<std::size_t>(point.shortest_distance), "instruction"));
  }
  for (const LoopFlight& flight : waits.loops)
    text += fmt::format("  {}: {}, {} bytes a trip of a wave, {} to {} bytes in flight, {}\n", program.loop_name(flight.loop),
                        plural(flight.loads, "load"), flight.bytes_a_trip, flight.min_bytes, flight.max_bytes,
                        plural(flight.drains, "full drain"));
  return text;
}

std::string to_json(const WaitAnalysis& waits, const Program& program) {
  using Json = nlohmann::ordered_json;
  Json json;
  json["kernel"] = program.kernel;
  json["approximate"] = waits.approximate;
  json["complete"] = waits.complete;
  json["waits"] = Json::array();
  const auto address = [&](std::size_t i) { return program.instructions[i].address; };
  for (const WaitPoint& point : waits.points) {
    Json awaited = Json::array();
    for (const std::size_t i : point.waits_for) awaited.push_back(address(i));
    json["waits"].push_back({{"address", address(point.instruction)},
                             {"counter", to_string(point.counter)},
                             {"value", point.value},
                             {"least_outstanding", point.min_outstanding},
                             {"most_outstanding", point.max_outstanding},
                             {"waits_for", awaited},
                             {"shortest_distance", point.shortest_distance},
                             {"loop", point.loop == nothing ? Json() : Json(point.loop)}});
  }
  json["loops"] = Json::array();
  for (const LoopFlight& flight : waits.loops)
    json["loops"].push_back({{"loop", flight.loop},
                             {"header", address(program.blocks[program.loops[flight.loop].header].begin)},
                             {"loads", flight.loads},
                             {"bytes_a_trip", flight.bytes_a_trip},
                             {"least_bytes", flight.min_bytes},
                             {"most_bytes", flight.max_bytes},
                             {"most_back_bytes", flight.max_back_bytes},
                             {"drains", flight.drains}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace kiln::isa
