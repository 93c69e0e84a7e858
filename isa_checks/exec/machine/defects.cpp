// Defects as text, and merging those of several workgroups.
#include "isa_checks/exec/machine/defects.h"
#include <fmt/format.h>

namespace kiln::exec {

std::string_view to_string(DefectKind kind) {
  switch (kind) {
  case DefectKind::out_of_bounds: return "out_of_bounds";
  case DefectKind::misaligned: return "misaligned";
  case DefectKind::read_only_store: return "read_only_store";
  case DefectKind::unwaited_register: return "unwaited_register";
  case DefectKind::unwaited_lds: return "unwaited_lds";
  case DefectKind::uninitialised: return "uninitialised";
  case DefectKind::lds_race: return "lds_race";
  case DefectKind::hazard: return "hazard";
  case DefectKind::deadlock: return "deadlock";
  case DefectKind::instruction_limit: return "instruction_limit";
  case DefectKind::not_modelled: return "not_modelled";
  }
  return "unknown";
}

std::string to_text(const Defect& f) {
  std::string where = fmt::format("workgroup ({}, {}, {}) wave {}", f.workgroup[0], f.workgroup[1], f.workgroup[2], f.wave);
  if (f.lane >= 0) where += fmt::format(" lane {}", f.lane);
  std::string times = f.count > 1 ? fmt::format(" [{} times]", f.count) : "";
  const std::string source = f.source.empty() ? "" : " " + f.source;
  return fmt::format("{} at {:#x}{} `{}`: {}; {}{}", to_string(f.kind), f.instruction, source, f.text, f.message, where, times);
}

void Defects::merge(const Defects& other) {
  for (const Defect& f : other.list_) {
    auto [at, fresh] = index_.try_emplace({f.kind, f.instruction}, list_.size());
    if (fresh) list_.push_back(f);
    else list_[at->second].count += f.count;
  }
}

} // namespace kiln::exec
