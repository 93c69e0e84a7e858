// Building a CodeObject from the parsed ELF image.
#include "isa_checks/object/code_object.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <iterator>
#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Demangle/Demangle.h>
#include <map>
#include <set>
#include <utility>

namespace kiln::isa {
namespace {

namespace elf = llvm::ELF;

constexpr std::uint64_t max_name_bytes = 4; // of all kernels together, for each byte of the file

// The names of AMD GPUs by EF_AMDGPU_MACH of LLVM's AMDGPUUsage, those included that the target table does not know: "gfx1100" of 0x41;
// "machine 0x7f" for a number that is none.
std::string machine_name(std::uint32_t machine) {
  static constexpr std::pair<std::uint32_t, std::string_view> names[] = {
      {0x20, "gfx600"},  {0x21, "gfx601"},       {0x22, "gfx700"},          {0x23, "gfx701"},          {0x24, "gfx702"},
      {0x25, "gfx703"},  {0x26, "gfx704"},       {0x28, "gfx801"},          {0x29, "gfx802"},          {0x2a, "gfx803"},
      {0x2b, "gfx810"},  {0x2c, "gfx900"},       {0x2d, "gfx902"},          {0x2e, "gfx904"},          {0x2f, "gfx906"},
      {0x30, "gfx908"},  {0x31, "gfx909"},       {0x32, "gfx90c"},          {0x33, "gfx1010"},         {0x34, "gfx1011"},
      {0x35, "gfx1012"}, {0x36, "gfx1030"},      {0x37, "gfx1031"},         {0x38, "gfx1032"},         {0x39, "gfx1033"},
      {0x3a, "gfx602"},  {0x3b, "gfx705"},       {0x3c, "gfx805"},          {0x3d, "gfx1035"},         {0x3e, "gfx1034"},
      {0x3f, "gfx90a"},  {0x40, "gfx940"},       {0x41, "gfx1100"},         {0x42, "gfx1013"},         {0x43, "gfx1150"},
      {0x44, "gfx1103"}, {0x45, "gfx1036"},      {0x46, "gfx1101"},         {0x47, "gfx1102"},         {0x48, "gfx1200"},
      {0x49, "gfx1250"}, {0x4a, "gfx1151"},      {0x4b, "gfx941"},          {0x4c, "gfx942"},          {0x4e, "gfx1201"},
      {0x4f, "gfx950"},  {0x51, "gfx9-generic"}, {0x52, "gfx10-1-generic"}, {0x53, "gfx10-3-generic"}, {0x54, "gfx11-generic"},
      {0x55, "gfx1152"}, {0x58, "gfx1153"},      {0x59, "gfx12-generic"},   {0x5f, "gfx9-4-generic"}};
  for (const auto& [number, name] : names)
    if (number == machine) return std::string(name);
  return fmt::format("machine {:#04x}", machine);
}

const TargetFacts& checked_target(const ElfImage& image, const std::string& name) {
  const std::uint32_t machine = image.flags & elf::EF_AMDGPU_MACH;
  if (image.os_abi != elf::ELFOSABI_AMDGPU_HSA)
    throw Error(name, fmt::format("its OS ABI is {}, HSA code objects have {}", image.os_abi, static_cast<int>(elf::ELFOSABI_AMDGPU_HSA)),
                "give a code object built for amdgcn-amd-amdhsa");
  if (const TargetFacts* facts = find_target_by_machine(machine)) return *facts;
  UnknownMachine error(name, fmt::format("it is for {}, which is not in the target table", machine_name(machine)),
                       fmt::format("give a code object for one of {}", known_target_names()));
  error.machine = machine_name(machine);
  throw error;
}

// Calls `visit` with each metadata note; an assembler writes one for each kernel of its text. Notes are (name size, description
// size, type, name, description), each part padded to 4 bytes.
template <class Visit> void each_metadata_note(std::span<const std::uint8_t> notes, Visit visit) {
  constexpr std::uint32_t metadata_note = 32; // NT_AMDGPU_METADATA
  const auto pad = [](std::uint64_t size) { return (size + 3) & ~std::uint64_t{3}; };
  while (notes.size() >= 12) {
    std::uint32_t head[3];
    std::memcpy(head, notes.data(), sizeof head);
    const std::uint64_t description = 12 + pad(head[0]);
    if (description > notes.size() || head[1] > notes.size() - description) break;
    const bool is_amdgpu = head[0] == 7 && std::memcmp(notes.data() + 12, "AMDGPU", 7) == 0;
    if (is_amdgpu && head[2] == metadata_note) visit(notes.subspan(description, head[1]));
    notes = notes.subspan(std::min<std::uint64_t>(description + pad(head[1]), notes.size()));
  }
}

// All notes together. Sections may overlap: together they are read once for each byte of the file.
Metadata read_metadata(const ElfImage& image, const std::string& name) {
  Metadata all;
  std::uint64_t left = image.bytes->size();
  for (const ElfSection& section : image.sections) {
    if (section.type != elf::SHT_NOTE || section.bytes.size() > left) continue;
    left -= section.bytes.size();
    each_metadata_note(section.bytes, [&](std::span<const std::uint8_t> note) {
      Metadata one = parse_metadata(note, name);
      if (all.target.empty()) all.target = std::move(one.target);
      std::ranges::move(one.kernels, std::back_inserter(all.kernels));
    });
  }
  return all;
}

bool is_code(const ElfImage& image, std::uint16_t section) {
  return section < image.sections.size() && (image.sections[section].flags & elf::SHF_EXECINSTR) != 0 &&
         !image.sections[section].bytes.empty();
}

class KernelFinder {
public:
  KernelFinder(const ElfImage& image, const Metadata& metadata, const std::string& name) : image_(image), name_(name) {
    for (const ElfSymbol& symbol : image.symbols)
      if (is_code(image, symbol.section)) code_symbols_.emplace(symbol.name, &symbol);
    for (const KernelMetadata& entry : metadata.kernels)
      by_symbol_.emplace(entry.symbol.empty() ? entry.name + ".kd" : entry.symbol, &entry);
  }

  std::vector<Kernel> run() {
    const std::vector<const ElfSymbol*> descriptors = descriptors_in();
    for (const ElfSymbol* symbol : descriptors) kernels_.push_back(from_descriptor(*symbol));
    std::sort(kernels_.begin(), kernels_.end(),
              [](const Kernel& a, const Kernel& b) { return std::pair(a.section, a.entry) < std::pair(b.section, b.entry); });
    for (std::size_t i = 0; i < kernels_.size(); ++i)
      if (!kernels_[i].code_size_known) end_at_next_kernel(i);
    return std::move(kernels_);
  }

private:
  // Each name once, so that each entry of the note is copied once. Names may overlap in the string table: together they have to
  // stay a small multiple of the file, because each is copied.
  std::vector<const ElfSymbol*> descriptors_in() const {
    std::vector<const ElfSymbol*> result;
    std::set<std::string_view> names;
    std::uint64_t bytes = 0;
    for (const ElfSymbol& symbol : image_.symbols) {
      if (symbol.name.size() <= 3 || !symbol.name.ends_with(".kd") || symbol.section == elf::SHN_UNDEF) continue;
      if (!names.insert(symbol.name).second) fail(symbol.name.substr(0, symbol.name.size() - 3), "has several descriptors");
      bytes += symbol.name.size();
      result.push_back(&symbol);
    }
    const std::uint64_t most = max_name_bytes * image_.bytes->size();
    if (bytes > most)
      throw Error(name_, fmt::format("the names of its {} kernels have {} bytes, at most {} are read", result.size(), bytes, most),
                  "rebuild it, or check that it was copied whole");
    return result;
  }

  [[noreturn]] void fail(std::string_view kernel, std::string fact) const {
    throw Error(name_, fmt::format("kernel '{}' {}", kernel.substr(0, 256), fact), "rebuild it, or check that it was copied whole");
  }

  Kernel from_descriptor(const ElfSymbol& symbol) const {
    Kernel kernel;
    kernel.name = std::string(symbol.name.substr(0, symbol.name.size() - 3));
    kernel.descriptor_address = symbol.value;
    const auto bytes = image_.at(symbol.section, symbol.value, 64);
    if (bytes.empty())
      fail(kernel.name, fmt::format("has a descriptor at {:#x} that is not 64 bytes inside section {}", symbol.value, symbol.section));
    kernel.descriptor = decode_descriptor(bytes.first<64>());
    find_code(kernel);
    if (const auto entry = by_symbol_.find(symbol.name); entry != by_symbol_.end()) kernel.metadata = *entry->second;
    return kernel;
  }

  // In a linked object the descriptor says where the code is; in a relocatable one that is a relocation against the
  // symbol of the kernel's name.
  void find_code(Kernel& kernel) const {
    const auto found = code_symbols_.find(kernel.name);
    const ElfSymbol* symbol = found == code_symbols_.end() ? nullptr : found->second;
    if (image_.relocatable) {
      if (!symbol) fail(kernel.name, "has a descriptor but no code symbol of its name");
      kernel.entry = symbol->value;
      kernel.section = symbol->section;
    } else {
      kernel.entry = kernel.descriptor_address + static_cast<std::uint64_t>(kernel.descriptor.entry_offset);
      kernel.section = section_of(kernel.entry);
      if (kernel.section == elf::SHN_UNDEF) fail(kernel.name, fmt::format("starts at {:#x}, outside every section of code", kernel.entry));
      if (symbol && symbol->value != kernel.entry) symbol = nullptr;
    }
    const std::uint64_t size = symbol ? symbol->size : 0;
    kernel.code_size_known = size != 0;
    if (size != 0 && image_.at(kernel.section, kernel.entry, size).empty())
      fail(kernel.name, fmt::format("has {} bytes of code at {:#x}, which do not fit its section", size, kernel.entry));
    kernel.code = image_.at(kernel.section, kernel.entry, size);
  }

  std::uint16_t section_of(std::uint64_t address) const {
    for (std::size_t i = 0; i < image_.sections.size(); ++i) {
      const ElfSection& section = image_.sections[i];
      if (is_code(image_, static_cast<std::uint16_t>(i)) && address >= section.address && address - section.address < section.bytes.size())
        return static_cast<std::uint16_t>(i);
    }
    return elf::SHN_UNDEF;
  }

  // Hand-written objects give no sizes, and have many labels inside one kernel: only another kernel's entry ends it.
  void end_at_next_kernel(std::size_t index) {
    Kernel& kernel = kernels_[index];
    const ElfSection& section = image_.sections[kernel.section];
    std::uint64_t end = section.address + section.bytes.size();
    for (std::size_t next = index + 1; next < kernels_.size() && kernels_[next].section == kernel.section; ++next)
      if (kernels_[next].entry > kernel.entry) {
        end = kernels_[next].entry;
        break;
      }
    if (kernel.entry > end) fail(kernel.name, fmt::format("starts at {:#x}, after the end of its section at {:#x}", kernel.entry, end));
    kernel.code = image_.at(kernel.section, kernel.entry, end - kernel.entry);
  }

  const ElfImage& image_;
  const std::string& name_;
  std::map<std::string, const KernelMetadata*, std::less<>> by_symbol_;
  std::map<std::string_view, const ElfSymbol*> code_symbols_;
  std::vector<Kernel> kernels_;
};

} // namespace

std::string CodeObject::target_id() const {
  std::string id(target_->name);
  const std::uint32_t sramecc = image_.flags & elf::EF_AMDGPU_FEATURE_SRAMECC_V4;
  const std::uint32_t xnack = image_.flags & elf::EF_AMDGPU_FEATURE_XNACK_V4;
  if (sramecc == elf::EF_AMDGPU_FEATURE_SRAMECC_ON_V4 || sramecc == elf::EF_AMDGPU_FEATURE_SRAMECC_OFF_V4)
    id += sramecc == elf::EF_AMDGPU_FEATURE_SRAMECC_ON_V4 ? ":sramecc+" : ":sramecc-";
  if (xnack == elf::EF_AMDGPU_FEATURE_XNACK_ON_V4 || xnack == elf::EF_AMDGPU_FEATURE_XNACK_OFF_V4)
    id += xnack == elf::EF_AMDGPU_FEATURE_XNACK_ON_V4 ? ":xnack+" : ":xnack-";
  return id;
}

const Kernel* CodeObject::find(std::string_view kernel) const {
  for (const Kernel& candidate : kernels_)
    if (candidate.name == kernel) return &candidate;
  return nullptr;
}

const Kernel& CodeObject::kernel(std::string_view kernel) const {
  if (const Kernel* found = find(kernel)) return *found;
  std::vector<std::string_view> names;
  for (const Kernel& candidate : kernels_) names.push_back(candidate.name);
  throw Error(name_, fmt::format("it has no kernel '{}' among its {}", kernel, kernels_.size()),
              names.empty() ? "give an object that contains kernels" : fmt::format("use one of {}", fmt::join(names, ", ")));
}

std::span<const std::uint8_t> CodeObject::code_at(const ElfSymbol& symbol) const {
  return is_code(image_, symbol.section) ? image_.at(symbol.section, symbol.value, symbol.size) : std::span<const std::uint8_t>();
}

std::string readable_name(const std::string& kernel) {
  return kernel.starts_with("_Z") ? llvm::demangle(kernel) : kernel; // llvm::demangle also takes apart what only looks like Rust or D
}

CodeObject load_code_object(SharedBytes bytes, std::string name) {
  CodeObject object;
  object.name_ = std::move(name);
  object.image_ = parse_elf(std::move(bytes), object.name_);
  object.target_ = &checked_target(object.image_, object.name_);
  object.metadata_ = read_metadata(object.image_, object.name_);
  object.kernels_ = KernelFinder(object.image_, object.metadata_, object.name_).run();
  return object;
}

CodeObject load_code_object_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(path, "it cannot be opened for reading", "check the path and its permissions");
  Bytes bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return load_code_object(std::move(bytes), path);
}

} // namespace kiln::isa
