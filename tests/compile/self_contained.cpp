// The one-file form of every catalogue kernel compiles with plain clang, with nothing of Kiln beside it.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include <cstdlib>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <random>

using namespace kiln;

namespace {

std::string find_clang() {
  for (const char* clang : {"clang++", "clang++-22", "clang++-21", "clang++-20"})
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", clang).c_str()) == 0) return clang;
  return {};
}

} // namespace

TEST_CASE("plain clang compiles what kiln compile --emit source writes") {
  const std::string clang = find_clang();
  if (clang.empty()) {
    MESSAGE("no clang++ on the PATH: not tested");
    return;
  }
  const auto folder = std::filesystem::temp_directory_path() / fmt::format("kiln-self-contained-{}", std::random_device{}());
  std::filesystem::create_directory(folder);
  const bool all = std::getenv("KILN_LINT_ALL") != nullptr; // else each entry for one architecture
  for (std::size_t place = 0; const std::string_view arch : known_archs()) {
    ++place;
    for (std::size_t turn = 0; const CatalogEntry& entry : catalog()) {
      if (++turn % known_archs().size() != place % known_archs().size() && !all) continue;
      const Target to = target(arch);
      const CatalogOptions options{.cols = 1000, .dtype = bf16, .fp8 = to.fp8(), .n = entry.is.ranked ? 256 : 4096};
      if (why_not(entry, options)) continue;
      const Plan plan = make_plan(entry.build(options), to);
      const auto file = folder / "kernel.hip";
      std::ofstream(file) << self_contained(emit_source(plan, choose_schedule(plan, to), to));
      const std::string command =
          fmt::format("{} -x hip --offload-device-only -nogpuinc -nogpulib --offload-arch={} -std=c++20 -O1 -Wall -Wextra -Werror "
                      "-fsyntax-only {}",
                      clang, arch, file.string());
      CAPTURE(entry.name);
      CHECK(std::system(command.c_str()) == 0);
    }
  }
  // One of them all the way, by the command at its head.
  const Plan plan = make_plan(catalog_spec("rmsnorm", {}), target("gfx950"));
  const std::string text = self_contained(emit_source(plan, choose_schedule(plan, target("gfx950")), target("gfx950")));
  std::ofstream(folder / "rmsnorm.gfx950.hip") << text;
  const std::size_t begin = text.find("clang++"), end = text.find('\n', begin);
  const std::string command = clang + text.substr(begin + std::string("clang++").size(), end - begin - std::string("clang++").size());
  CHECK(std::system(fmt::format("cd {} && {}", folder.string(), command).c_str()) == 0);
  CHECK(std::filesystem::exists(folder / "rmsnorm.gfx950.co"));
  std::filesystem::remove_all(folder);
}
