// Reading expectation files.
#include "isa_checks/verdict/expectations_file.h"
#include "isa_checks/object/yaml.h"
#include <fnmatch.h>
#include <functional>

namespace kiln::isa {
namespace {

constexpr std::string_view known_keys =
    "kernel, arch, no_scratch, no_spills, max_sgpr_spills, max_vgpr_spills, max_vgprs, max_lds_bytes, min_waves_per_simd, global_loads, "
    "global_stores, lds, "
    "required, forbidden, max_instructions, max_loop_drains, min_bytes_in_flight, in_loops_with, no_findings or no_errata";

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
  WidthExpectation width(const YamlNode& node, const std::string& name) const {
    read_.expect(node, YamlNode::Kind::map, name);
    WidthExpectation result;
    for (const auto& [key, value] : node.keys) {
      if (key == "min_bytes") result.min_bytes = static_cast<int>(read_.count(value, key));
      else if (key == "exceptions") result.exceptions = read_.count(value, key);
      else if (key == "at_least") result.at_least = read_.count(value, key);
      else read_.unknown_key(value, key, "min_bytes, exceptions or at_least");
    }
    return result;
  }

  KernelExpectations entry(const YamlNode& node) const {
    KernelExpectations result;
    Expectations& e = result.expectations;
    for (const auto& [key, value] : node.keys) {
      if (key == "kernel") result.kernel = read_.text(value, key);
      else if (key == "arch") result.arch = read_.text(value, key);
      else if (key == "no_scratch") e.no_scratch = read_.boolean(value, key);
      else if (key == "no_spills") e.no_spills = read_.boolean(value, key);
      else if (key == "max_sgpr_spills") e.max_sgpr_spills = static_cast<int>(read_.count(value, key));
      else if (key == "max_vgpr_spills") e.max_vgpr_spills = static_cast<int>(read_.count(value, key));
      else if (key == "max_vgprs") e.max_vgprs = static_cast<int>(read_.count(value, key));
      else if (key == "max_lds_bytes") e.max_lds_bytes = static_cast<int>(read_.count(value, key));
      else if (key == "min_waves_per_simd") e.min_waves_per_simd = read_.number(value, key);
      else if (key == "global_loads") e.global_loads = width(value, key);
      else if (key == "global_stores") e.global_stores = width(value, key);
      else if (key == "lds") e.lds = width(value, key);
      else if (key == "required") e.required = read_.texts(value, key);
      else if (key == "forbidden") e.forbidden = read_.texts(value, key);
      else if (key == "max_instructions") e.max_instructions = read_.count(value, key);
      else if (key == "max_loop_drains") e.max_loop_drains = read_.count(value, key);
      else if (key == "min_bytes_in_flight") e.min_bytes_in_flight = read_.count(value, key);
      else if (key == "in_loops_with") e.in_loops_with = read_.text(value, key);
      else if (key == "no_findings") e.no_findings = read_.texts(value, key);
      else if (key == "no_errata") e.no_errata = read_.boolean(value, key);
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
