// Defects as text, and merging those of several workgroups.
#include "isa_checks/exec/machine/defects.h"
#include "isa_checks/object/source_lines.h"
#include <fmt/format.h>

namespace kiln::exec {

std::string_view to_string(DefectKind kind) {
  constexpr std::string_view names[] = {"out_of_bounds", "misaligned",        "read_only_store", "unwaited_register",
                                        "unwaited_lds",  "uninitialised",     "lds_race",        "hazard",
                                        "deadlock",      "instruction_limit", "not_modelled"};
  return names[static_cast<std::size_t>(kind)];
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

void add_source_lines(const isa::CodeObject& object, const isa::Kernel& kernel, std::vector<Defect>& defects) {
  if (defects.empty()) return;
  const isa::SourceLines lines(object);
  for (Defect& f : defects)
    if (const isa::SourceLine line = lines.at(f.instruction, kernel.section); line.known())
      f.source = fmt::format("{}:{}", line.file.substr(line.file.find_last_of('/') + 1), line.line);
}

} // namespace kiln::exec
