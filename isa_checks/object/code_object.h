// CodeObject: an AMDGPU ELF file (.co, .hsaco, .o) as a list of kernels with code, descriptor and metadata.
#pragma once
#include "isa_checks/error.h"
#include "isa_checks/object/elf_image.h"
#include "isa_checks/object/kernel_descriptor.h"
#include "isa_checks/object/metadata.h"
#include "isa_checks/target/target_table.h"
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct Kernel {
  std::string name;
  std::uint64_t entry = 0;            // address of the first instruction; in a relocatable object an offset into its section
  std::uint16_t section = 0;          // index into CodeObject::sections()
  std::span<const std::uint8_t> code; // from the entry, as long as the symbol says
  bool function = false;       // a device function that a kernel calls (called_functions.h), with descriptor and metadata of that one
  bool code_size_known = true; // false: the symbol has no size, so `code` ends at the next kernel or the section's end
  std::uint64_t descriptor_address = 0;
  KernelDescriptor descriptor;
  std::optional<KernelMetadata> metadata; // absent when the note has no entry for it
};

// A well-formed code object for `machine` ("gfx1100"), which the target table does not know: a tool may count and skip it.
struct UnknownMachine : UnknownArch {
  using UnknownArch::UnknownArch;
  std::string machine = {};
};

// Immutable; copies share the file's bytes, into which every span and string_view points.
class CodeObject {
public:
  const std::string& name() const { return name_; } // for messages
  const TargetFacts& target() const { return *target_; }
  std::string target_id() const; // "gfx942:sramecc+:xnack-", as the ELF flags say
  bool relocatable() const { return image_.relocatable; }
  std::span<const std::uint8_t> bytes() const { return *image_.bytes; }
  const SharedBytes& shared_bytes() const { return image_.bytes; }
  std::span<const ElfSection> sections() const { return image_.sections; }
  std::span<const ElfSymbol> symbols() const { return image_.symbols; }
  std::span<const Kernel> kernels() const { return kernels_; } // by address
  const Kernel* find(std::string_view kernel) const;           // null when there is none of that name
  const Kernel& kernel(std::string_view kernel) const;         // throws Error naming those there are
  const Metadata& metadata() const { return metadata_; }
  // The bytes of a function; empty when they do not lie in a section of code.
  std::span<const std::uint8_t> code_at(const ElfSymbol& symbol) const;

private:
  friend CodeObject load_code_object(SharedBytes bytes, std::string name);
  std::string name_;
  const TargetFacts* target_ = nullptr;
  ElfImage image_;
  Metadata metadata_;
  std::vector<Kernel> kernels_;
};

// A kernel's name as a person would write it: "_Z3addPfS_" -> "add(float*, float*)"; a name that is not mangled stays.
std::string readable_name(const std::string& kernel);

// A kernel is a symbol NAME.kd of 64 bytes whose entry lies in a section of code. Throws Error for malformed bytes, and
// UnknownMachine for an architecture that is not in the target table. `name` is the subject of errors.
CodeObject load_code_object(SharedBytes bytes, std::string name = "code object");
CodeObject load_code_object_file(const std::string& path);

} // namespace kiln::isa
