// Compare: the ISA facts of two caches, kernel by kernel.
#include "runtime/cache/folder/compare.h"
#include "runtime/cache/json.h"
#include "runtime/digest.h"
#include <algorithm>
#include <map>
#include <set>

namespace kiln {
namespace {

using Json = nlohmann::ordered_json;

struct Side {
  std::string kernel, arch, key, code;
  std::map<std::string, std::string> facts; // "resources.vgprs" -> "24"
};

void flatten(const Json& json, const std::string& path, std::map<std::string, std::string>& out) {
  if (json.is_object()) {
    for (const auto& [name, value] : json.items()) flatten(value, path.empty() ? name : path + "." + name, out);
  } else if (json.is_array()) {
    for (std::size_t i = 0; i < json.size(); ++i) {
      const bool named = json[i].is_object() && json[i].contains("name");
      flatten(json[i], path + "." + (named ? json[i]["name"].get<std::string>() : std::to_string(i)), out);
    }
  } else {
    out[path] = json.is_string() ? json.get<std::string>() : json.dump();
  }
}

// The fields of the key that say what is computed, not by which compiler.
std::string identity_of(const CacheKey& key) {
  std::string text;
  for (const auto& [name, value] : key.fields)
    if (name != "compiler" && name != "generator" && name != "variables") text += name + "\n" + value + "\n";
  return text;
}

std::map<std::string, Side> sides_of(const CacheFolder& layer) {
  std::map<std::string, Side> sides;
  for (const EntryInfo& entry : layer.list()) {
    try {
      const CachedKernel kernel = layer.verify(entry);
      const Json meta = parse_json(kernel.meta);
      Side side{.kernel = kernel.name, .arch = kernel.arch, .key = entry.key, .code = sha256(kernel.object), .facts = {}};
      flatten(meta.at("facts"), "", side.facts);
      flatten(meta.at("contract"), "contract", side.facts);
      side.facts["schedule"] = meta.at("schedule").get<std::string>();
      sides[identity_of(kernel.key)] = std::move(side);
    } catch (const EntryProblem&) { // `kiln cache verify` is the place to learn of it
    }
  }
  return sides;
}

std::vector<FactChange> changes_between(const Side& before, const Side& after) {
  std::set<std::string> names;
  for (const Side* side : {&before, &after})
    for (const auto& [name, value] : side->facts) names.insert(name);
  std::vector<FactChange> changes;
  const auto value = [](const Side& side, const std::string& name) {
    const auto found = side.facts.find(name);
    return found == side.facts.end() ? std::string("-") : found->second;
  };
  for (const std::string& name : names)
    if (value(before, name) != value(after, name)) changes.push_back({name, value(before, name), value(after, name)});
  return changes;
}

} // namespace

std::vector<KernelComparison> compare_folders(const CacheFolder& before_layer, const CacheFolder& after_layer) {
  const std::map<std::string, Side> before = sides_of(before_layer), after = sides_of(after_layer);
  std::vector<KernelComparison> result;
  for (const auto& [identity, old] : before) {
    const auto found = after.find(identity);
    KernelComparison c{.kernel = old.kernel, .arch = old.arch, .before_key = old.key, .after_key = {}, .changes = {}};
    if (found != after.end()) {
      c.after_key = found->second.key;
      c.same_code = old.code == found->second.code;
      c.changes = changes_between(old, found->second);
    }
    result.push_back(std::move(c));
  }
  for (const auto& [identity, added] : after)
    if (!before.contains(identity))
      result.push_back({.kernel = added.kernel, .arch = added.arch, .before_key = {}, .after_key = added.key, .changes = {}});
  std::ranges::stable_sort(result, {}, [](const KernelComparison& c) { return std::pair(c.kernel, c.arch); });
  return result;
}

} // namespace kiln
