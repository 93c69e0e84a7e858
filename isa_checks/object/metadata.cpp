// Reading the metadata note. LLVM's msgpack::Document would do it, but asserts on hostile map keys; its Reader does
// not.
#include "isa_checks/object/metadata.h"
#include "isa_checks/error.h"
#include <fmt/format.h>
#include <limits>
#include <llvm/BinaryFormat/MsgPackReader.h>
#include <utility>
#include <variant>

namespace kiln::isa {
namespace {

struct Node {
  using Array = std::vector<Node>;
  struct Map { // only entries with a string key
    std::vector<std::string> keys;
    std::vector<Node> values;
  };
  std::variant<std::monostate, std::uint64_t, bool, std::string, Array, Map> value;

  const Node* find(std::string_view key) const {
    if (const Map* map = std::get_if<Map>(&value))
      for (std::size_t i = 0; i < map->keys.size(); ++i)
        if (map->keys[i] == key)
          return &map->values[i];
    return nullptr;
  }
};

class DocumentReader {
public:
  DocumentReader(std::span<const std::uint8_t> document, const std::string& subject)
      : reader_(llvm::StringRef(reinterpret_cast<const char*>(document.data()), document.size())), subject_(subject) {}

  Node read(int depth = 0) {
    if (depth > 32) // the real documents nest 5 deep
      fail("nests deeper than 32 levels");
    llvm::msgpack::Object object;
    llvm::Expected<bool> got = reader_.read(object);
    if (!got)
      fail("is not MessagePack: " + llvm::toString(got.takeError()));
    if (!*got)
      fail("ends in the middle of a value");
    return convert(object, depth);
  }

private:
  [[noreturn]] void fail(std::string fact) const {
    throw Error(subject_, "its metadata note " + fact, "rebuild it, or check that it was copied whole");
  }

  Node convert(const llvm::msgpack::Object& object, int depth) {
    using llvm::msgpack::Type;
    switch (object.Kind) {
    case Type::Int: // a negative count means nothing here
      return object.Int < 0 ? Node{} : Node{static_cast<std::uint64_t>(object.Int)};
    case Type::UInt:
      return Node{object.UInt};
    case Type::Boolean:
      return Node{object.Bool};
    case Type::String:
      return Node{object.Raw.str()};
    case Type::Array: {
      Node::Array array;
      for (std::size_t i = 0; i < object.Length; ++i)
        array.push_back(read(depth + 1));
      return Node{std::move(array)};
    }
    case Type::Map: {
      Node::Map map;
      for (std::size_t i = 0; i < object.Length; ++i) {
        Node key = read(depth + 1);
        Node value = read(depth + 1);
        if (auto* text = std::get_if<std::string>(&key.value)) {
          map.keys.push_back(std::move(*text));
          map.values.push_back(std::move(value));
        }
      }
      return Node{std::move(map)};
    }
    default:
      return Node{};
    }
  }

  llvm::msgpack::Reader reader_;
  const std::string& subject_;
};

std::optional<std::uint32_t> number(const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  const auto* value = node ? std::get_if<std::uint64_t>(&node->value) : nullptr;
  if (!value || *value > std::numeric_limits<std::uint32_t>::max())
    return std::nullopt;
  return static_cast<std::uint32_t>(*value);
}

std::string text(const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  const auto* value = node ? std::get_if<std::string>(&node->value) : nullptr;
  return value ? *value : std::string();
}

std::span<const Node> array(const Node& map, std::string_view key) {
  const Node* node = map.find(key);
  const auto* value = node ? std::get_if<Node::Array>(&node->value) : nullptr;
  return value ? std::span<const Node>(*value) : std::span<const Node>();
}

KernelMetadata read_kernel(const Node& node) {
  KernelMetadata kernel;
  kernel.name = text(node, ".name");
  kernel.symbol = text(node, ".symbol");
  kernel.vgpr_count = number(node, ".vgpr_count");
  kernel.agpr_count = number(node, ".agpr_count");
  kernel.sgpr_count = number(node, ".sgpr_count");
  kernel.vgpr_spill_count = number(node, ".vgpr_spill_count");
  kernel.sgpr_spill_count = number(node, ".sgpr_spill_count");
  kernel.group_segment_bytes = number(node, ".group_segment_fixed_size");
  kernel.private_segment_bytes = number(node, ".private_segment_fixed_size");
  kernel.kernarg_bytes = number(node, ".kernarg_segment_size");
  kernel.kernarg_align = number(node, ".kernarg_segment_align");
  kernel.wavefront_size = number(node, ".wavefront_size");
  kernel.max_flat_workgroup_size = number(node, ".max_flat_workgroup_size");
  kernel.uniform_workgroup_size = number(node, ".uniform_work_group_size");
  const auto required = array(node, ".reqd_workgroup_size");
  if (required.size() == 3) {
    std::array<std::uint32_t, 3> sizes{};
    for (std::size_t i = 0; i < 3; ++i)
      if (const auto* value = std::get_if<std::uint64_t>(&required[i].value); value && *value <= 0xffffffff)
        sizes[i] = static_cast<std::uint32_t>(*value);
    kernel.required_workgroup_size = sizes;
  }
  if (const Node* stack = node.find(".uses_dynamic_stack"))
    if (const bool* value = std::get_if<bool>(&stack->value))
      kernel.uses_dynamic_stack = *value;
  for (const Node& argument : array(node, ".args"))
    kernel.arguments.push_back({.name = text(argument, ".name"),
                                .type_name = text(argument, ".type_name"),
                                .offset = number(argument, ".offset").value_or(0),
                                .size = number(argument, ".size").value_or(0),
                                .value_kind = text(argument, ".value_kind"),
                                .address_space = text(argument, ".address_space")});
  return kernel;
}

} // namespace

Metadata parse_metadata(std::span<const std::uint8_t> document, const std::string& subject) {
  const Node root = DocumentReader(document, subject).read();
  Metadata metadata{.target = text(root, "amdhsa.target"), .kernels = {}};
  for (const Node& kernel : array(root, "amdhsa.kernels"))
    metadata.kernels.push_back(read_kernel(kernel));
  return metadata;
}

} // namespace kiln::isa
