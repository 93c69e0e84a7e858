// KernelInterface: from a source or a kernel, and as JSON.
#include "runtime/launch/arguments/interface.h"
#include "runtime/launch/kernel.h"
#include <algorithm>
#include <nlohmann/json.hpp>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

Json argument_json(const KernelArgument& a) {
  Json json{{"name", a.name}, {"kind", to_string(a.kind)}, {"dtype", to_string(a.dtype)}, {"offset", a.offset},
            {"size", a.size}, {"alignment", a.alignment}};
  if (!a.tensor.empty()) json["tensor"] = a.tensor;
  return json;
}

void put_units(Json& json, const Launch& launch) {
  Json units = Json::array({launch.units});
  for (const Dim& dim : launch.dims) units.push_back(dim.is_dynamic() ? Json(dim.name()) : Json(dim.size()));
  json["units"] = std::move(units);
  json["units_per_workgroup"] = launch.units_per_block;
  json["workgroups_per_unit"] = launch.blocks_per_unit;
}

Json grid_json(const Launch& launch) {
  Json json{{"threads", launch.workgroup_threads()}};
  put_units(json, launch);
  json["dynamic_lds_bytes"] = 0;
  for (const Launch& other : launch.behind) put_units(json["behind"].emplace_back(Json::object()), other);
  return json;
}

} // namespace

KernelInterface interface_of(const KernelSource& source) {
  return {source.name, source.arch, source.arguments, source.launch, source.workspace_bytes};
}

KernelInterface interface_of(const Kernel& kernel) {
  const auto arguments = kernel.arguments();
  return {kernel.name(), kernel.arch(), {arguments.begin(), arguments.end()}, kernel.launch(), kernel.workspace_bytes()};
}

std::string to_json(const KernelInterface& interface) {
  Json arguments = Json::array();
  int bytes = 0;
  for (const KernelArgument& a : interface.arguments) {
    arguments.push_back(argument_json(a));
    bytes = std::max(bytes, a.offset + a.size);
  }
  return Json{{"kernel", interface.name},
              {"arch", interface.arch},
              {"arguments", std::move(arguments)},
              {"argument_bytes", bytes},
              {"grid", grid_json(interface.launch)},
              {"workspace", {{"bytes", interface.workspace_bytes}, {"alignment", 256}, {"zeroed", "before the first launch"}}}}
      .dump(2);
}

} // namespace kiln
