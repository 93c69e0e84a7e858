// Looking defects up in the line tables.
#include "isa_checks/exec/run/source_lines.h"
#include "isa_checks/object/source_lines.h"
#include <fmt/format.h>

namespace kiln::exec {

void add_source_lines(const isa::CodeObject& object, const isa::Kernel& kernel, std::vector<Defect>& defects) {
  if (defects.empty()) return;
  const isa::SourceLines lines(object);
  for (Defect& f : defects)
    if (const isa::SourceLine line = lines.at(f.instruction, kernel.section); line.known())
      f.source = fmt::format("{}:{}", line.file.substr(line.file.find_last_of('/') + 1), line.line);
}

} // namespace kiln::exec
