// YAML through LLVM's parser.
#include "isa_checks/object/yaml.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/Support/Casting.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/YAMLParser.h>

namespace kiln::isa {
namespace {

namespace yaml = llvm::yaml;
constexpr int deepest_nesting = 32;

class Converter {
public:
  Converter(std::string_view text, const std::string& name)
      : name_(name), stream_(llvm::StringRef(text.data(), text.size()), sources_, false) {
    sources_.setDiagHandler(
        [](const llvm::SMDiagnostic& diagnostic, void* self) {
          auto& log = static_cast<Converter*>(self)->log_;
          if (log.empty()) log = fmt::format("line {}: {}", diagnostic.getLineNo(), diagnostic.getMessage().str());
        },
        this);
  }

  YamlNode run() {
    YamlNode result;
    auto document = stream_.begin();
    if (document != stream_.end())
      if (yaml::Node* const root = document->getRoot()) result = convert(*root, 0);
    if (stream_.failed() || !log_.empty()) fail(log_.empty() ? "it does not parse" : log_);
    return result;
  }

private:
  [[noreturn]] void fail(std::string fact) const { throw Error(name_, "it is no valid YAML: " + std::move(fact), "mend the line"); }

  int line_of(const yaml::Node& node) { return static_cast<int>(sources_.getLineAndColumn(node.getSourceRange().Start).first); }

  std::string text_of(yaml::ScalarNode& node) {
    llvm::SmallString<64> storage;
    return node.getValue(storage).str();
  }

  YamlNode convert(yaml::Node& node, int depth) {
    if (depth > deepest_nesting) fail(fmt::format("it nests deeper than {} levels", deepest_nesting));
    YamlNode result;
    result.line = line_of(node);
    if (auto* const scalar = llvm::dyn_cast<yaml::ScalarNode>(&node)) {
      result.kind = YamlNode::Kind::scalar;
      result.text = text_of(*scalar);
    } else if (auto* const block = llvm::dyn_cast<yaml::BlockScalarNode>(&node)) {
      result.kind = YamlNode::Kind::scalar;
      result.text = block->getValue().str();
    } else if (auto* const list = llvm::dyn_cast<yaml::SequenceNode>(&node)) {
      result.kind = YamlNode::Kind::list;
      for (yaml::Node& item : *list) {
        if (stream_.failed()) break;
        result.items.push_back(convert(item, depth + 1));
      }
    } else if (auto* const map = llvm::dyn_cast<yaml::MappingNode>(&node)) {
      result.kind = YamlNode::Kind::map;
      for (yaml::KeyValueNode& entry : *map) {
        if (stream_.failed()) break;
        add_key(result, entry, depth);
      }
    } else if (llvm::isa<yaml::AliasNode>(&node)) {
      fail(fmt::format("line {}: aliases are not read", result.line));
    }
    return result;
  }

  void add_key(YamlNode& map, yaml::KeyValueNode& entry, int depth) {
    auto* const key = llvm::dyn_cast_or_null<yaml::ScalarNode>(entry.getKey());
    if (!key) fail(fmt::format("line {}: a key is not plain text", map.line));
    std::string name = text_of(*key);
    if (map.find(name)) fail(fmt::format("line {}: the key '{}' comes twice", line_of(*key), name));
    yaml::Node* const value = entry.getValue();
    YamlNode empty;
    empty.line = line_of(*key);
    map.keys.push_back({std::move(name), value ? convert(*value, depth + 1) : std::move(empty)});
  }

  const std::string& name_;
  std::string log_; // the first message
  llvm::SourceMgr sources_;
  yaml::Stream stream_;
};

std::string_view to_string(YamlNode::Kind kind) {
  return std::array<std::string_view, 4>{"empty", "a value", "a list", "a map"}[static_cast<std::size_t>(kind)];
}

} // namespace

const YamlNode* YamlNode::find(std::string_view key) const {
  const auto at = std::ranges::find(keys, key, &YamlKey::name);
  return at == keys.end() ? nullptr : &at->value;
}

YamlNode parse_yaml(std::string_view text, const std::string& name) { return Converter(text, name).run(); }

void YamlReader::fail(const YamlNode& at, std::string fact, std::string remedy) const {
  throw Error(fmt::format("{}:{}", file_, at.line), std::move(fact), std::move(remedy));
}

void YamlReader::expect(const YamlNode& node, YamlNode::Kind kind, std::string_view what) const {
  if (node.kind != kind) fail(node, fmt::format("'{}' is {}", what, to_string(node.kind)), fmt::format("write {} there", to_string(kind)));
}

bool YamlReader::boolean(const YamlNode& node, std::string_view what) const {
  if (node.text == "true" || node.text == "false") return node.text == "true";
  fail(node, fmt::format("'{}' is '{}'", what, node.text), "write true or false");
}

std::uint32_t YamlReader::count(const YamlNode& node, std::string_view what) const {
  std::int32_t value = -1;
  const char* const end = node.text.data() + node.text.size();
  const auto [at, error] = std::from_chars(node.text.data(), end, value);
  if (error != std::errc() || at != end || value < 0)
    fail(node, fmt::format("'{}' is '{}'", what, node.text), "write a whole number from 0 to 2147483647");
  return static_cast<std::uint32_t>(value);
}

double YamlReader::number(const YamlNode& node, std::string_view what) const {
  double value = -1;
  const char* const end = node.text.data() + node.text.size();
  const auto [at, error] = std::from_chars(node.text.data(), end, value);
  if (error != std::errc() || at != end || !(value >= 0))
    fail(node, fmt::format("'{}' is '{}'", what, node.text), "write a number of at least 0");
  return value;
}

std::string YamlReader::text(const YamlNode& node, std::string_view what) const {
  expect(node, YamlNode::Kind::scalar, what);
  if (node.text.empty()) fail(node, fmt::format("'{}' is empty", what), "write a text, or leave the key out");
  return node.text;
}

std::vector<std::string> YamlReader::texts(const YamlNode& node, std::string_view what) const {
  if (node.kind == YamlNode::Kind::scalar) return {text(node, what)};
  expect(node, YamlNode::Kind::list, what);
  std::vector<std::string> result;
  for (const YamlNode& item : node.items) result.push_back(text(item, what));
  return result;
}

void YamlReader::unknown_key(const YamlNode& node, std::string_view key, std::string_view known) const {
  fail(node, fmt::format("there is no setting '{}'", key), fmt::format("use {}", known));
}

} // namespace kiln::isa
