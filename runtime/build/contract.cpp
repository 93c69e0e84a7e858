// The ISA contract of a generated kernel.
#include "runtime/build/contract.h"

namespace kiln {
namespace {

isa::WidthExpectation widths(const PromisedWidths& promised) {
  return {.min_bytes = promised.min_bytes, .exceptions = promised.exceptions, .at_least = promised.at_least};
}

} // namespace

isa::Expectations contract(const Plan& plan, const Schedule& schedule, const Target& target) {
  Promises p = promises(plan, schedule, target);
  return {.no_scratch = true,
          .no_spills = true,
          .max_sgpr_spills = p.max_sgpr_spills,
          .max_vgpr_spills = p.max_vgpr_spills,
          .max_vgprs = p.max_vgprs,
          .max_lds_bytes = p.max_lds_bytes,
          .global_loads = widths(p.global_loads),
          .lds = widths(p.lds),
          .required = std::move(p.required),
          .forbidden = std::move(p.forbidden),
          .max_loop_drains = p.max_loop_drains,
          .min_bytes_in_flight = p.min_bytes_in_flight,
          .in_loops_with = std::move(p.in_loops_with),
          .no_findings = std::move(p.no_findings),
          .no_errata = true};
}

} // namespace kiln
