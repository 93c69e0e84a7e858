// comgr's own cache: the folder that its variables choose, and whose it is.
#include "runtime/compile/comgr_cache.h"
#include "gen/error.h"
#include "runtime/folder.h"
#include <filesystem>
#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

namespace kiln {
namespace {

std::filesystem::path home(const VariableLookup& lookup) {
  if (const auto home = lookup("HOME")) return *home;
  passwd entry{}, *found = nullptr;
  std::string room(4096, '\0');
  return getpwuid_r(getuid(), &entry, room.data(), room.size(), &found) == 0 && found != nullptr ? found->pw_dir : "";
}

std::filesystem::path folder_of(const VariableLookup& lookup) {
  if (const auto given = lookup("AMD_COMGR_CACHE_DIR"); given && !given->empty()) return *given;
  if (const auto caches = lookup("XDG_CACHE_HOME")) return std::filesystem::path(*caches) / "comgr";
  return home(lookup) / ".cache" / "comgr";
}

} // namespace

std::string comgr_cache_problem(const VariableLookup& lookup) {
  if (lookup(comgr_cache_variable) == comgr_cache_off) return {};
  const std::filesystem::path folder = folder_of(lookup);
  if (folder.is_relative())
    return fmt::format("it would lie in {}, of whatever folder is current", (std::filesystem::path(".") / folder).string());
  try {
    Folder::open(folder, Trust::self); // one that is not there yet will be this user's
  } catch (const Untrusted& error) {
    return error.what();
  }
  return {};
}

void require_safe_comgr_cache() {
  if (const std::string problem = comgr_cache_problem(process_lookup()); !problem.empty())
    throw EnvironmentError("comgr's own cache", fmt::format("{}: others could put in other kernels", problem),
                           "set AMD_COMGR_CACHE=0, or AMD_COMGR_CACHE_DIR to a folder that only you may write to");
}

} // namespace kiln
