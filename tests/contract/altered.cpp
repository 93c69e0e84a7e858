// Altered kernels: compiled anew, and the verdict on the code that comes of it.
#include "tests/contract/altered.h"
#include "gen/families/schedule.h"
#include "runtime/build/inspect.h"
#include <stdexcept>

namespace kiln::testing {

BuiltKernel altered(const Alteration& alteration, const BuiltKernel& kernel, const Target& to) {
  BuiltKernel result = kernel;
  KernelSource& source = result.source;
  source.text = self_contained(source);
  std::size_t at = source.text.find(alteration.from);
  if (at == std::string::npos) throw std::runtime_error("the headers lack: " + alteration.from);
  for (; at != std::string::npos; at = source.text.find(alteration.from, at + alteration.to.size()))
    source.text.replace(at, alteration.from.size(), alteration.to);
  result.object = compile(source, to, own_process_options(process_environment()));
  return result;
}

std::set<std::string> broken_by(const Alteration& alteration, const BuiltKernel& kernel, const Target& to) {
  const Inspection seen = inspect(altered(alteration, kernel, to).object, promises(kernel.plan, kernel.schedule, to));
  std::set<std::string> names;
  for (const isa::ExpectationResult& result : seen.report.results)
    if (!result.met) names.insert(result.name);
  return names;
}

} // namespace kiln::testing
