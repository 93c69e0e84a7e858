// YAML (and so JSON) text as a tree of nodes that know their lines; for settings that people write.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct YamlKey;
struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  Kind kind = Kind::null;
  int line = 0;                                     // where it begins, from 1
  std::string text;                                 // of a scalar
  std::vector<YamlNode> items;                      // of a list
  std::vector<YamlKey> keys;                        // of a map, in their order
  const YamlNode* find(std::string_view key) const; // null when this is no map or lacks it
};

struct YamlKey {
  std::string name;
  YamlNode value;
};

// One document, without aliases, at most 32 levels deep; a key that comes twice is refused. `name` is the file's name in
// errors. Throws Error, with the line.
YamlNode parse_yaml(std::string_view text, const std::string& name);

// Reads typed values, and says file, line and what was expected where one does not fit.
class YamlReader {
public:
  explicit YamlReader(std::string file) : file_(std::move(file)) {}
  [[noreturn]] void fail(const YamlNode& at, std::string fact, std::string remedy) const;
  void expect(const YamlNode& node, YamlNode::Kind kind, std::string_view what) const;
  bool boolean(const YamlNode& node, std::string_view what) const;                   // true or false
  std::uint32_t count(const YamlNode& node, std::string_view what) const;            // a whole number, at most 2^31 - 1
  double number(const YamlNode& node, std::string_view what) const;                  // at least 0
  std::string text(const YamlNode& node, std::string_view what) const;               // not empty
  std::vector<std::string> texts(const YamlNode& node, std::string_view what) const; // a list of them, or one
  [[noreturn]] void unknown_key(const YamlNode& node, std::string_view key, std::string_view known) const;

private:
  std::string file_;
};

} // namespace kiln::isa
