// Line tables, read with LLVM's DWARF library.
#include "isa_checks/object/source_lines.h"
#include <algorithm>
#include <llvm/ADT/StringMap.h>
#include <llvm/DebugInfo/DWARF/DWARFCompileUnit.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/Object/Decompressor.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

namespace kiln::isa {

struct SourceLines::Tables {
  SharedBytes bytes; // the object need not live as long
  std::unique_ptr<llvm::object::ObjectFile> file;
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> sections; // of a linked object: what the context reads
  mutable std::unique_ptr<llvm::DWARFContext> context;           // parses units when they are first asked for
  mutable llvm::DWARFCompileUnit* unit = nullptr;                // the last one asked for: of others no line table is kept
  bool relocatable = false;
};

namespace {

// What leads from an address to a line. Variables' locations and call frames, decompressed, can be as large as all the rest.
llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> sections_for_lines(const CodeObject& object) {
  constexpr std::string_view wanted[] = {".debug_line",     ".debug_line_str", ".debug_str",  ".debug_info",    ".debug_abbrev",
                                         ".debug_rnglists", ".debug_ranges",   ".debug_addr", ".debug_aranges", ".debug_str_offsets"};
  constexpr std::uint64_t compressed = 0x800, most = std::uint64_t{1} << 30; // SHF_COMPRESSED; bytes of a section, decompressed
  llvm::StringMap<std::unique_ptr<llvm::MemoryBuffer>> result;
  for (const ElfSection& section : object.sections()) {
    if (std::ranges::find(wanted, section.name) == std::end(wanted)) continue;
    const llvm::StringRef name(section.name.data() + 1, section.name.size() - 1);
    const llvm::StringRef bytes(reinterpret_cast<const char*>(section.bytes.data()), section.bytes.size());
    if ((section.flags & compressed) == 0) {
      result[name] = llvm::MemoryBuffer::getMemBuffer(bytes, name, /*RequiresNullTerminator=*/false);
      continue;
    }
    auto source = llvm::object::Decompressor::create(name, bytes, /*IsLE=*/true, /*Is64Bit=*/true);
    if (!source || source->getDecompressedSize() > std::min<std::uint64_t>(most, 1024 * bytes.size())) {
      if (!source) llvm::consumeError(source.takeError());
      continue;
    }
    auto buffer = llvm::WritableMemoryBuffer::getNewUninitMemBuffer(source->getDecompressedSize(), name);
    if (llvm::Error error = source->decompress({reinterpret_cast<std::uint8_t*>(buffer->getBufferStart()), buffer->getBufferSize()}))
      llvm::consumeError(std::move(error));
    else result[name] = std::move(buffer);
  }
  return result;
}

} // namespace

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
  if (tables->relocatable) {
    tables->context =
        llvm::DWARFContext::create(*tables->file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
  } else {
    tables->sections = sections_for_lines(object);
    tables->context = llvm::DWARFContext::create(tables->sections, sizeof(std::uint64_t), true, ignore, ignore);
  }
  tables_ = std::move(tables);
}

SourceLine SourceLines::at(std::uint64_t address, std::uint16_t section) const {
  if (!tables_) return {};
  const std::uint64_t place = tables_->relocatable ? section : llvm::object::SectionedAddress::UndefSection;
  // Not DWARFContext::getLineInfoForAddress, which parses all entries of the unit to find the function: RCCL's take 1 GB.
  llvm::DWARFCompileUnit* const unit = tables_->context->getCompileUnitForCodeAddress(address);
  if (!unit) return {};
  if (tables_->unit && tables_->unit != unit) tables_->context->clearLineTableForUnit(tables_->unit);
  tables_->unit = unit;
  const llvm::DWARFDebugLine::LineTable* const table = tables_->context->getLineTableForUnit(unit);
  if (!table) return {};
  const std::uint32_t row = table->lookupAddress({address, place});
  if (row >= table->Rows.size() || table->Rows[row].Line == 0) return {}; // UnknownRowIndex is larger
  SourceLine line{.file = {}, .line = static_cast<int>(table->Rows[row].Line), .column = table->Rows[row].Column};
  const char* const folder = unit->getCompilationDir();
  if (!table->getFileNameByIndex(table->Rows[row].File, folder ? folder : "", llvm::DILineInfoSpecifier::FileLineInfoKind::RelativeFilePath,
                                 line.file))
    return {};
  return line;
}

} // namespace kiln::isa
