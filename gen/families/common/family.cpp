// Family: the error of a schedule that cannot run a plan.
#include "gen/families/common/family.h"
#include "gen/error.h"
#include <fmt/format.h>

namespace kiln {

void reject_schedule(const Plan& plan, const std::string& fact, const std::string& remedy) {
  throw UserError(fmt::format("schedule of '{}'", plan.spec.name()), fact, remedy);
}

} // namespace kiln
