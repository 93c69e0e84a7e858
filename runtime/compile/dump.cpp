// Dumps: files left for a person to look at, in a private folder.
#include "runtime/compile/dump.h"
#include "gen/error.h"
#include "runtime/folder.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln {
namespace {

[[noreturn]] void fail(const std::string& fact) {
  throw EnvironmentError("dump folder", fact, "set KILN_DUMP_DIR to a folder that is yours alone");
}
[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  fail(fmt::format("{}: {}", path.string(), error == ENOTDIR ? "is not a folder" : std::strerror(error)));
}

std::string number_after_last_dash(std::string& text) {
  const std::size_t dash = text.rfind('-');
  if (dash == std::string::npos) return {};
  std::string number = text.substr(dash + 1);
  text.resize(dash);
  return std::ranges::all_of(number, [](char c) { return c >= '0' && c <= '9'; }) ? number : std::string();
}

// "KERNEL-gfx942-PID-N".
bool is_dump(std::string name) {
  return !number_after_last_dash(name).empty() && !number_after_last_dash(name).empty() && name.find("-gfx") != std::string::npos;
}

bool is_dumped_file(const std::string& name) {
  constexpr std::string_view extensions[] = {".hip", ".h", ".co", ".txt", ".kiln"};
  return std::ranges::find(extensions, std::filesystem::path(name).extension().string()) != std::end(extensions);
}

// By names of Kiln's own form; a dump in which somebody keeps other files stays.
void remove_dump(const Folder& parent, const std::string& name) {
  const Folder folder = parent.child(name);
  if (!folder) return;
  for (const std::string& file : folder.names()) {
    const auto info = folder.look(file);
    if (info && S_ISDIR(info->st_mode)) remove_dump(folder, file); // headers: "common"
    else if (is_dumped_file(file)) folder.remove_file(file);
  }
  parent.remove_folder(name);
}

void prune(const Folder& root) {
  std::vector<std::pair<std::int64_t, std::string>> dumps;
  for (const std::string& name : root.names()) {
    const auto info = is_dump(name) ? root.look(name) : std::nullopt;
    if (info && S_ISDIR(info->st_mode) && info->st_uid == geteuid()) dumps.emplace_back(info->st_mtime, name);
  }
  if (dumps.size() < max_dumps) return;
  std::ranges::sort(dumps);
  for (std::size_t i = 0; i + max_dumps <= dumps.size(); ++i) remove_dump(root, dumps[i].second);
}

// The first name of `base`-PID-0, -1, ... that nobody has.
Folder make_new(const Folder& root, const std::string& base) {
  for (int n = 0; n < 100000; ++n) {
    const std::string name = fmt::format("{}-{}-{}", base, getpid(), n);
    if (mkdirat(root.descriptor(), name.c_str(), S_IRWXU) == 0) {
      Folder made = root.child(name);
      if (!made) fail(root.path() / name, errno);
      return made;
    }
    if (errno != EEXIST) fail(root.path() / name, errno);
  }
  fail(fmt::format("{} holds 100000 dumps of this process", root.path().string()));
}

void write_file(const Folder& dump, const DumpFile& file) {
  Folder nested;
  const Folder* folder = &dump;
  const std::filesystem::path path(file.name);
  for (const std::filesystem::path& part : path.parent_path()) {
    nested = folder->make_child(part.string());
    if (!nested) fail(dump.path() / path, errno);
    folder = &nested;
  }
  if (!folder->write(path.filename().string(), file.bytes)) fail(dump.path() / path, errno);
}

} // namespace

std::filesystem::path write_dump(const std::filesystem::path& root, const std::string& name, std::span<const DumpFile> files) {
  try {
    const Folder all = Folder::make(root, Trust::sticky, 0700);
    if (!all) fail(root, errno);
    prune(all);
    const Folder folder = make_new(all, name);
    for (const DumpFile& file : files) write_file(folder, file);
    return folder.path();
  } catch (const Untrusted& error) {
    fail(error.what());
  }
}

} // namespace kiln
