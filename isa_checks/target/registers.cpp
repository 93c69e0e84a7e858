// Names of registers.
#include "isa_checks/target/registers.h"
#include <fmt/format.h>
#include <utility>

namespace kiln::isa {

std::string name_of(RegisterRange r) {
  const auto [letter, first] = r.first < reg::agpr   ? std::pair('v', r.first - reg::vgpr)
                               : r.first < reg::sgpr ? std::pair('a', r.first - reg::agpr)
                                                     : std::pair('s', r.first - reg::sgpr);
  if (r.first >= reg::vcc) return r.first < reg::m0 ? "vcc" : r.first < reg::exec ? "m0" : r.first < reg::scc ? "exec" : "scc";
  return r.count == 1 ? fmt::format("{}{}", letter, first) : fmt::format("{}[{}:{}]", letter, first, first + r.count - 1);
}

} // namespace kiln::isa
