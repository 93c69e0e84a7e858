// Reading the metadata note, straight into its fields: what is not one of them is passed over and costs no memory.
// LLVM's msgpack::Document asserts on hostile map keys; its Reader does not.
#include "isa_checks/object/metadata.h"
#include "isa_checks/error.h"
#include <fmt/format.h>
#include <limits>
#include <llvm/BinaryFormat/MsgPackReader.h>
#include <utility>

namespace kiln::isa {
namespace {

using llvm::msgpack::Object;
using llvm::msgpack::Type;

constexpr int deepest = 32; // the real documents nest 5 deep

class DocumentReader {
public:
  DocumentReader(std::span<const std::uint8_t> document, const std::string& subject)
      : reader_(llvm::StringRef(reinterpret_cast<const char*>(document.data()), document.size())), subject_(subject) {}

  Metadata read() {
    Metadata metadata;
    each_key(next(), 0, [&](std::string_view key, const Object& value) {
      if (key == "amdhsa.target") take(value, 1, metadata.target);
      else if (key == "amdhsa.kernels") each_item(value, 1, [&](const Object& item) { add_kernel(item, metadata.kernels); });
      else pass_over(value, 1);
    });
    return metadata;
  }

private:
  [[noreturn]] void fail(const std::string& fact) const {
    throw Error(subject_, "its metadata note " + fact, "rebuild it, or check that it was copied whole");
  }

  Object next() {
    Object object;
    llvm::Expected<bool> got = reader_.read(object);
    if (!got) fail("is not MessagePack: " + llvm::toString(got.takeError()));
    if (!*got) fail("ends in the middle of a value");
    return object;
  }

  void pass_over(const Object& object, int depth) {
    if (depth > deepest) fail(fmt::format("nests deeper than {} levels", deepest));
    if (object.Kind != Type::Array && object.Kind != Type::Map) return;
    const std::size_t values = object.Length; // a map's keys and values come in turns
    for (int side = object.Kind == Type::Map ? 2 : 1; side > 0; --side)
      for (std::size_t i = 0; i < values; ++i) pass_over(next(), depth + 1);
  }

  // Calls `item` for each element; what is no array counts as missing.
  template <class Item> void each_item(const Object& array, int depth, Item item) {
    if (array.Kind != Type::Array) return pass_over(array, depth);
    for (std::size_t i = 0; i < array.Length; ++i) item(next());
  }

  // Calls `value` with each key that is a string.
  template <class Value> void each_key(const Object& map, int depth, Value value) {
    if (map.Kind != Type::Map) return pass_over(map, depth);
    for (std::size_t i = 0; i < map.Length; ++i) {
      const Object key = next();
      if (key.Kind == Type::String) {
        const std::string_view name(key.Raw.data(), key.Raw.size()); // points into the document
        value(name, next());
      } else {
        pass_over(key, depth + 1);
        pass_over(next(), depth + 1);
      }
    }
  }

  // The first of several values of one key counts, and none of the wrong kind.
  void take(const Object& value, int depth, std::string& field) {
    if (value.Kind == Type::String && field.empty()) field = value.Raw.str();
    pass_over(value, depth);
  }
  void take(const Object& value, int depth, std::optional<std::uint32_t>& field) {
    if (const auto number = number_of(value); number && !field) field = number;
    pass_over(value, depth);
  }
  void take(const Object& value, int depth, std::optional<bool>& field) {
    if (value.Kind == Type::Boolean && !field) field = value.Bool;
    pass_over(value, depth);
  }

  static std::optional<std::uint32_t> number_of(const Object& value) {
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    if (value.Kind == Type::UInt && value.UInt <= most) return static_cast<std::uint32_t>(value.UInt);
    if (value.Kind == Type::Int && value.Int >= 0 && static_cast<std::uint64_t>(value.Int) <= most)
      return static_cast<std::uint32_t>(value.Int); // a negative count means nothing here
    return std::nullopt;
  }

  void take_workgroup_size(const Object& value, KernelMetadata& kernel) {
    std::array<std::uint32_t, 3> sizes{};
    std::size_t count = 0;
    each_item(value, 3, [&](const Object& item) {
      if (count < sizes.size()) sizes[count] = number_of(item).value_or(0);
      ++count;
      pass_over(item, 4);
    });
    if (count == sizes.size() && !kernel.required_workgroup_size) kernel.required_workgroup_size = sizes;
  }

  // An argument without size or kind is none: so much memory for each takes so many bytes of the note.
  void add_argument(const Object& item, std::vector<KernelArgument>& arguments) {
    KernelArgument argument;
    std::optional<std::uint32_t> offset, size;
    each_key(item, 4, [&](std::string_view key, const Object& value) {
      if (key == ".name") return take(value, 5, argument.name);
      if (key == ".type_name") return take(value, 5, argument.type_name);
      if (key == ".offset") return take(value, 5, offset);
      if (key == ".size") return take(value, 5, size);
      if (key == ".value_kind") return take(value, 5, argument.value_kind);
      if (key == ".address_space") return take(value, 5, argument.address_space);
      pass_over(value, 5);
    });
    if (!size || argument.value_kind.empty()) return;
    argument.offset = offset.value_or(0);
    argument.size = *size;
    arguments.push_back(std::move(argument));
  }

  // A kernel without name and symbol belongs to no code.
  void add_kernel(const Object& item, std::vector<KernelMetadata>& kernels) {
    KernelMetadata k;
    const std::pair<std::string_view, std::optional<std::uint32_t>*> numbers[] = {{".vgpr_count", &k.vgpr_count},
                                                                                  {".agpr_count", &k.agpr_count},
                                                                                  {".sgpr_count", &k.sgpr_count},
                                                                                  {".vgpr_spill_count", &k.vgpr_spill_count},
                                                                                  {".sgpr_spill_count", &k.sgpr_spill_count},
                                                                                  {".group_segment_fixed_size", &k.group_segment_bytes},
                                                                                  {".private_segment_fixed_size", &k.private_segment_bytes},
                                                                                  {".kernarg_segment_size", &k.kernarg_bytes},
                                                                                  {".kernarg_segment_align", &k.kernarg_align},
                                                                                  {".wavefront_size", &k.wavefront_size},
                                                                                  {".max_flat_workgroup_size", &k.max_flat_workgroup_size},
                                                                                  {".uniform_work_group_size", &k.uniform_workgroup_size}};
    each_key(item, 2, [&](std::string_view key, const Object& value) {
      for (const auto& [name, field] : numbers)
        if (key == name) return take(value, 3, *field);
      if (key == ".name") return take(value, 3, k.name);
      if (key == ".symbol") return take(value, 3, k.symbol);
      if (key == ".uses_dynamic_stack") return take(value, 3, k.uses_dynamic_stack);
      if (key == ".reqd_workgroup_size") return take_workgroup_size(value, k);
      if (key == ".args") return each_item(value, 3, [&](const Object& argument) { add_argument(argument, k.arguments); });
      pass_over(value, 3);
    });
    if (!k.name.empty() || !k.symbol.empty()) kernels.push_back(std::move(k));
  }

  llvm::msgpack::Reader reader_;
  const std::string& subject_;
};

} // namespace

Metadata parse_metadata(std::span<const std::uint8_t> document, const std::string& subject) {
  return DocumentReader(document, subject).read();
}

} // namespace kiln::isa
