// Proves that includes follow the layers: who may know whom, in which order the rooms of a folder stand, and no cycles.
#include "tests/house/sources.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <regex>
#include <set>

namespace kiln::house {
namespace {

struct Layer {
  std::string folder;
  std::vector<std::string> may_use; // other top-level folders
  std::vector<std::string> rooms;   // each may include those before it; files of the folder itself come before all
};

// CONTRIBUTING.md opens with the same order.
const std::vector<Layer> layers{
    {"machine", {}, {}},
    {"templates", {"machine"}, {"common"}},
    {"gen", {"machine", "templates"}, {"spec", "plan", "emit", "families", "reference", "catalog"}},
    {"isa_checks", {"machine"}, {"target", "object", "decode", "input", "analysis", "verdict", "exec", "timing", "cli"}},
    {"isa_checks/exec", {}, {"numbers", "machine", "sanitisers", "instructions", "run"}},
    {"runtime",
     {"machine", "gen", "isa_checks"},
     {"compile", "build", "cache", "workers", "launch", "tune", "proof", "jit", "aot", "c", "tvm_ffi", "cli"}}};

struct Include {
  std::string from, to; // files
};

std::vector<Include> find_includes() {
  const std::map<std::string, std::string> sources = read_sources({"machine", "gen", "isa_checks", "runtime", "templates"});
  static const std::regex directive("(^|\n)#include \"([^\"]+)\"");
  std::vector<Include> includes;
  for (const auto& [path, text] : sources)
    for (std::sregex_iterator at(text.begin(), text.end(), directive), end; at != end; ++at) {
      std::string to = (*at)[2];
      if (!sources.contains(to)) to = "templates/" + to; // device headers name each other without their folder
      if (sources.contains(to)) includes.push_back({path, to});
    }
  return includes;
}
const std::vector<Include>& all_includes() {
  static const std::vector<Include> includes = find_includes();
  return includes;
}

// The room of `layer` that a file stands in: its first folder below the layer's, empty for a file of the layer itself.
std::string room_of(const Layer& layer, const std::string& file) {
  const std::string rest = file.substr(layer.folder.size() + 1);
  const std::size_t slash = rest.find('/');
  return slash == std::string::npos ? "" : rest.substr(0, slash);
}

// 0 for files of the layer itself, else 1 + place in its order. Templates' parts of a family follow their header.
std::size_t rank_of(const Layer& layer, const std::string& room) {
  const auto found = std::ranges::find(layer.rooms, room);
  return room.empty() ? 0 : 1 + static_cast<std::size_t>(found - layer.rooms.begin());
}

// The arrows between folders, with how many includes each stands for: what the picture of the structure is.
std::string drawn(const std::vector<Include>& includes) {
  std::map<std::pair<std::string, std::string>, int> arrows;
  for (const Include& include : includes)
    if (folder_of(include.from) != folder_of(include.to)) ++arrows[{folder_of(include.from), folder_of(include.to)}];
  std::string text;
  for (const auto& [ends, count] : arrows) text += fmt::format("{:<32} -> {:<32} {}\n", ends.first, ends.second, count);
  return text;
}

TEST_CASE("top-level folders include only those below them") {
  for (const Include& include : all_includes()) {
    const std::string from = include.from.substr(0, include.from.find('/')), to = include.to.substr(0, include.to.find('/'));
    const auto layer = std::ranges::find(layers, from, &Layer::folder);
    REQUIRE(layer != layers.end());
    CHECK_MESSAGE((from == to || std::ranges::find(layer->may_use, to) != layer->may_use.end()), include.from, " includes ", include.to,
                  ", and ", from, " may not know ", to);
  }
}

TEST_CASE("the rooms of a folder include only those before them") {
  const std::vector<Include> includes = all_includes();
  std::size_t inside = 0;
  for (const Layer& layer : layers) {
    if (layer.folder == "templates") continue;
    for (const Include& include : includes) {
      if (!include.from.starts_with(layer.folder + "/") || !include.to.starts_with(layer.folder + "/")) continue;
      const std::string from = room_of(layer, include.from), to = room_of(layer, include.to);
      if (from == "include") continue; // <kiln/kiln.h> names all of the public parts
      CHECK_MESSAGE(rank_of(layer, from) <= layer.rooms.size(), layer.folder, "/", from, " has no place in the order of this test");
      CHECK_MESSAGE(rank_of(layer, to) <= rank_of(layer, from), include.from, " includes ", include.to, ": an arrow up");
      ++inside;
    }
  }
  CHECK(inside > 500); // the includes were read
  MESSAGE("arrows between folders:\n", drawn(includes));
}

TEST_CASE("device headers include each other without a cycle") {
  std::map<std::string, std::set<std::string>> uses;
  for (const Include& include : all_includes())
    if (include.from.starts_with("templates/")) uses[include.from].insert(include.to);
  std::set<std::string> done;
  while (true) { // takes away what includes nothing that is left
    const auto free = std::ranges::find_if(uses, [&](const auto& entry) {
      return !done.contains(entry.first) &&
             std::ranges::all_of(entry.second, [&](const std::string& to) { return done.contains(to) || !uses.contains(to); });
    });
    if (free == uses.end()) break;
    done.insert(free->first);
  }
  CHECK_MESSAGE(done.size() == uses.size(), "some of templates/ include each other in a circle");
}

} // namespace
} // namespace kiln::house
