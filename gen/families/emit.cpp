// Emission: the family emits.
#include "gen/families/emit.h"

namespace kiln {

KernelSource emit_source(const Plan& plan, const Schedule& schedule, const Target& target) {
  require_valid(schedule, plan, target);
  return plan.family->emit(plan, schedule, target);
}

} // namespace kiln
