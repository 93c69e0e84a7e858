// Reading line tables with LLVM's DWARF library. No other file of the executor includes LLVM.
#include "isa_checks/exec/source_lines.h"
#include <algorithm>
#include <fmt/format.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ObjectFile.h>

namespace kiln::exec {

void add_source_lines(const isa::CodeObject& object, const isa::Kernel& kernel, std::vector<Finding>& findings) {
  const auto sections = object.sections();
  const bool has_lines = std::ranges::any_of(sections, [](const isa::ElfSection& s) { return s.name == ".debug_line"; });
  if (!has_lines || findings.empty()) return;
  const auto bytes = object.bytes();
  const llvm::MemoryBufferRef buffer(llvm::StringRef(reinterpret_cast<const char*>(bytes.data()), bytes.size()), "code object");
  auto file = llvm::object::ObjectFile::createELFObjectFile(buffer);
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); }; // a damaged table says less, no more
  const auto context =
      llvm::DWARFContext::create(**file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
  const std::uint64_t section = object.relocatable() ? kernel.section : llvm::object::SectionedAddress::UndefSection;
  for (Finding& f : findings) {
    const auto found = context->getLineInfoForAddress({f.instruction, section});
#if LLVM_VERSION_MAJOR >= 21
    if (!found) continue;
    const llvm::DILineInfo& line = *found;
#else
    const llvm::DILineInfo& line = found;
#endif
    if (line.Line == 0 || line.FileName == llvm::DILineInfo::BadString) continue;
    const std::string& path = line.FileName;
    f.source = fmt::format("{}:{}", path.substr(path.find_last_of('/') + 1), line.Line);
  }
}

} // namespace kiln::exec
