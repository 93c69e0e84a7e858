// ELF files through LLVM's reader, which checks every bound. Internal: includes LLVM headers.
#pragma once
#include "isa_checks/error.h"
#include <llvm/Object/ELF.h>
#include <span>
#include <string>
#include <utility>

namespace kiln::isa {

using ElfFile = llvm::object::ELF64LEFile;

// The value, or what LLVM says of a malformed file as an Error.
template <class T> T checked(llvm::Expected<T> value, const std::string& name) {
  if (value) return std::move(*value);
  throw Error(name, "its ELF file is damaged: " + llvm::toString(value.takeError()), "rebuild it, or check that it was copied whole");
}

inline ElfFile elf_file(std::span<const std::uint8_t> bytes, const std::string& name) {
  return checked(ElfFile::create({reinterpret_cast<const char*>(bytes.data()), bytes.size()}), name);
}

} // namespace kiln::isa
