// Elementwise: the text of flat kernels.
#include "gen/emit/values.h"
#include "gen/families/elementwise/elementwise.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

std::string kernel_body(const Body& body, const ElementwiseConfig& c, const Target& target, const std::string& block) {
  const std::vector<Pass> passes = split_passes(body);
  ValueEmitter values(body, target, passes, "flat");
  std::string elements = "static_cast<u64>(1u)";
  for (const Shape& dims : body.outer_dims)
    for (const Dim& dim : dims) elements += dim.is_dynamic() ? " * " + dim.name() : fmt::format(" * {}u", dim.size());
  std::string text = fmt::format("  const Flat<config{}> flat({}{});\n", !c.exact && known_factor(body) % c.vec == 0 ? ", false" : "",
                                 elements, block.empty() ? "" : ", " + block);
  text += values.load_lane_inputs();
  for (const TensorPlan& t : body.tensors)
    if (t.output)
      text += fmt::format("  const auto {} = flat.full({});\n", values.unique_name("to_" + t.name),
                          t.in_place_of.empty() ? t.name : t.in_place_of);
  std::vector<std::string> parameters, sources;
  for (const int index : passes.front().streams) {
    const std::string& input = body.value(index).expr->name;
    parameters.push_back("auto " + input);
    sources.push_back(fmt::format("flat.full({})", input));
  }
  const PassText pass = values.pass_body(0);
  text += pass.before;
  text += fmt::format("  flat.pass([&](auto at{}{}) KILN_LAMBDA {{\n{}  }}{}{});\n", parameters.empty() ? "" : ", ",
                      fmt::join(parameters, ", "), pass.inside, sources.empty() ? "" : ", ", fmt::join(sources, ", "));
  return text;
}

} // namespace

KernelParts Elementwise::parts(const Plan& plan, const Config& c, const Target& target, const ProblemPlace& place) {
  return {.header = std::string(name),
          .config = config_text(c, "ElementwiseConfig"),
          .threads = "config.threads",
          .attributes = waves_per_eu_attribute(c.waves_per_eu),
          .body = kernel_body(plan.body, c, target, place.block),
          .access = {.vec = c.vec},
          .threads_per_block = c.threads,
          .units_per_block = c.tile()};
}

} // namespace kiln
