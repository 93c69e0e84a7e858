// What the executor adds to the registers that LLVM names, and the check that loads have been waited for.
#include "isa_checks/exec/sanitisers/operand_checks.h"
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/exec/machine/memory_ops.h"
#include "isa_checks/exec/machine/wait_counts.h"
#include <fmt/format.h>

namespace kiln::exec {
namespace {

// Whether some of the destination's old bytes survive in the lanes that are written.
bool keeps_destination(const Inst& inst) {
  const Signature& s = inst.op->signature;
  const Sdwa& sdwa = inst.fields.sdwa;
  return s.keeps_half || inst.dst_high || (sdwa.present && sdwa.dst_sel != 6 && sdwa.dst_unused == 2) ||
         inst.op->name == "v_writelane_b32" || s.keeps_rest;
}

void report(Wave& wave, const Inst& inst, const char* what, isa::RegisterRange r) {
  exec::report(wave, inst, DefectKind::unwaited_register, -1, [&] {
    return fmt::format("{} {} while the load at {:#x} that fills it is in flight", what, name_of(r), wave.in_flight->filler(r));
  });
}

} // namespace

bool addressed_by_m0(std::string_view name) { return name.find("addtid") != name.npos || name == "ds_append" || name == "ds_consume"; }

void set_use(Inst& inst, const isa::RegisterUse& use) {
  inst.use = use;
  const std::string_view name = inst.op->name;
  const bool alu = inst.op->memory == nullptr && inst.op->matrix == nullptr;
  if (alu && inst.dst.kind == InstOperand::vector && keeps_destination(inst)) inst.use.read({inst.dst.reg, 1});
  if (addressed_by_m0(name)) inst.use.read({isa::reg::m0, 1});
  const InstClass cls = inst.cls;
  inst.ignores_exec = name == "v_readlane_b32" || name == "v_writelane_b32" || cls == InstClass::matrix;
  inst.pure = cls == InstClass::valu || cls == InstClass::trans || cls == InstClass::salu || cls == InstClass::matrix ||
              name == "ds_bpermute_b32" || name == "ds_permute_b32" || name == "ds_swizzle_b32";
}

void check_waits(Wave& wave, const Inst& inst) {
  const InFlight& in_flight = *wave.in_flight;
  if (!in_flight.any()) return;
  const LaneAccess* const load = inst.op->memory;
  const bool partial_load = load != nullptr && load->half != 0; // the halves of a register arrive in order
  for (const isa::RegisterRange r : inst.use.reads())
    if (in_flight.pending(r) && !(partial_load && r.first == inst.dst.reg)) report(wave, inst, "reads", r);
  // A load into a register that an earlier load of the same counter fills returns after it, in order.
  for (const isa::RegisterRange r : inst.use.writes())
    if (!(load != nullptr && r.vector()) && in_flight.pending(r)) report(wave, inst, "overwrites", r);
}

} // namespace kiln::exec
