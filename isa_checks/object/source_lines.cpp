// Line tables, read with LLVM's DWARF library.
#include "isa_checks/object/source_lines.h"
#include <algorithm>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

namespace kiln::isa {

struct SourceLines::Tables {
  std::shared_ptr<const Bytes> bytes; // the object need not live as long
  std::unique_ptr<llvm::object::ObjectFile> file;
  mutable std::unique_ptr<llvm::DWARFContext> context;           // parses units when they are first asked for
  bool relocatable = false;
};

SourceLines::SourceLines(const CodeObject& object) {
  const auto has_lines = [](const ElfSection& section) { return section.name == ".debug_line" && section.size > 0; };
  if (std::none_of(object.sections().begin(), object.sections().end(), has_lines)) return;
  auto tables = std::make_shared<Tables>();
  tables->bytes = object.shared_bytes();
  tables->relocatable = object.relocatable();
  const llvm::StringRef text(reinterpret_cast<const char*>(tables->bytes->data()), tables->bytes->size());
  auto file = llvm::object::ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(text, object.name()));
  if (!file) {
    llvm::consumeError(file.takeError());
    return;
  }
  tables->file = std::move(*file);
  const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  tables->context =
      llvm::DWARFContext::create(*tables->file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
  tables_ = std::move(tables);
}

SourceLine SourceLines::at(std::uint64_t address, std::uint16_t section) const {
  if (!tables_) return {};
  const std::uint64_t place = tables_->relocatable ? section : llvm::object::SectionedAddress::UndefSection;
  const llvm::DILineInfoSpecifier how(llvm::DILineInfoSpecifier::FileLineInfoKind::RelativeFilePath,
                                      llvm::DILineInfoSpecifier::FunctionNameKind::None);
  // LLVM 20 returns the value, later releases an optional one.
  const std::optional<llvm::DILineInfo> found = tables_->context->getLineInfoForAddress({address, place}, how);
  if (!found || found->Line == 0 || found->FileName == llvm::DILineInfo::BadString) return {};
  return {found->FileName, static_cast<int>(found->Line), static_cast<int>(found->Column)};
}

} // namespace kiln::isa
