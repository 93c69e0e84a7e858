// Reading expectation files.
#include "isa_checks/verdict/expectations_file.h"
#include "isa_checks/object/yaml.h"
#include <fnmatch.h>
#include <functional>

namespace kiln::isa {
namespace {

constexpr std::string_view known_keys = "kernel, arch"
#define KILN_PROMISE(type, name, together) ", " #name
#include "machine/promises.def"
    ;

class Reader {
public:
  explicit Reader(const std::string& name) : read_(name) {}

  std::vector<KernelExpectations> run(const YamlNode& root) {
    std::vector<KernelExpectations> result;
    read_.expect(root, YamlNode::Kind::map, "the file");
    const YamlNode* const list = root.find("kernels");
    if (!list) return {entry(root)};
    for (const auto& [key, value] : root.keys)
      if (key != "kernels") read_.fail(value, "'" + key + "' stands beside 'kernels'", "put it into the entries of the list");
    read_.expect(*list, YamlNode::Kind::list, "kernels");
    for (const YamlNode& item : list->items) {
      read_.expect(item, YamlNode::Kind::map, "an entry of kernels");
      result.push_back(entry(item));
    }
    return result;
  }

private:
  void read(bool& field, const YamlNode& node, const std::string& key) const { field = read_.boolean(node, key); }
  void read(int& field, const YamlNode& node, const std::string& key) const { field = static_cast<int>(read_.count(node, key)); }
  void read(std::uint32_t& field, const YamlNode& node, const std::string& key) const { field = read_.count(node, key); }
  void read(double& field, const YamlNode& node, const std::string& key) const { field = read_.number(node, key); }
  void read(std::string& field, const YamlNode& node, const std::string& key) const { field = read_.text(node, key); }
  void read(std::vector<std::string>& field, const YamlNode& node, const std::string& key) const { field = read_.texts(node, key); }
  template <class T> void read(std::optional<T>& field, const YamlNode& node, const std::string& key) const {
    read(field.emplace(), node, key);
  }
  void read(Widths& field, const YamlNode& node, const std::string& name) const {
    read_.expect(node, YamlNode::Kind::map, name);
    for (const auto& [key, value] : node.keys) {
      if (key == "min_bytes") read(field.min_bytes, value, key);
      else if (key == "exceptions") read(field.exceptions, value, key);
      else if (key == "at_least") read(field.at_least, value, key);
      else if (key == "excepted") read(field.excepted, value, key);
      else read_.unknown_key(value, key, "min_bytes, exceptions, excepted or at_least");
    }
  }

  KernelExpectations entry(const YamlNode& node) const {
    KernelExpectations result;
    Expectations& e = result.expectations;
    for (const auto& [key, value] : node.keys) {
      if (key == "kernel") read(result.kernel, value, key);
      else if (key == "arch") read(result.arch, value, key);
#define KILN_PROMISE(type, name, together) else if (key == #name) read(e.name, value, key);
#include "machine/promises.def"
      else read_.unknown_key(value, key, known_keys);
    }
    if (e == Expectations{}) read_.fail(node, "an entry expects nothing", "give at least one of " + std::string(known_keys));
    return result;
  }

  YamlReader read_;
};

} // namespace

std::vector<KernelExpectations> parse_expectations(std::string_view text, const std::string& name) {
  return Reader(name).run(parse_yaml(text, name));
}

std::vector<const KernelExpectations*> expectations_for(const std::vector<KernelExpectations>& all, const std::string& kernel,
                                                        const std::string& arch) {
  std::vector<const KernelExpectations*> result;
  for (const KernelExpectations& entry : all)
    if (matches_glob(entry.kernel, kernel) && matches_glob(entry.arch, arch)) result.push_back(&entry);
  return result;
}

bool matches_glob(const std::string& glob, const std::string& text) { return fnmatch(glob.c_str(), text.c_str(), 0) == 0; }

} // namespace kiln::isa
