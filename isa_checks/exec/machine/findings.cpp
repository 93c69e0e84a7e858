// Findings as text, and merging those of several workgroups.
#include "isa_checks/exec/machine/findings.h"
#include <fmt/format.h>

namespace kiln::exec {

std::string_view to_string(FindingKind kind) {
  switch (kind) {
  case FindingKind::out_of_bounds:
    return "out_of_bounds";
  case FindingKind::misaligned:
    return "misaligned";
  case FindingKind::read_only_store:
    return "read_only_store";
  case FindingKind::unwaited_register:
    return "unwaited_register";
  case FindingKind::unwaited_lds:
    return "unwaited_lds";
  case FindingKind::uninitialised:
    return "uninitialised";
  case FindingKind::lds_race:
    return "lds_race";
  case FindingKind::hazard:
    return "hazard";
  case FindingKind::deadlock:
    return "deadlock";
  case FindingKind::instruction_limit:
    return "instruction_limit";
  case FindingKind::not_modelled:
    return "not_modelled";
  }
  return "unknown";
}

std::string to_text(const Finding& f) {
  std::string where = fmt::format("workgroup ({}, {}, {}) wave {}", f.workgroup[0], f.workgroup[1], f.workgroup[2], f.wave);
  if (f.lane >= 0) where += fmt::format(" lane {}", f.lane);
  std::string times = f.count > 1 ? fmt::format(" [{} times]", f.count) : "";
  const std::string source = f.source.empty() ? "" : " " + f.source;
  return fmt::format("{} at {:#x}{} `{}`: {}; {}{}", to_string(f.kind), f.instruction, source, f.text, f.message, where, times);
}

void Findings::merge(const Findings& other) {
  for (const Finding& f : other.list_) {
    auto [at, fresh] = index_.try_emplace({f.kind, f.instruction}, list_.size());
    if (fresh)
      list_.push_back(f);
    else
      list_[at->second].count += f.count;
  }
}

} // namespace kiln::exec
