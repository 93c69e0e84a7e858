// CompilerMemo: the compiler's identity without loading the compiler.
// The note is lines of text: the identity, then "PATH\tSTAMP" for each file that it depends on.
#include "runtime/cache/compiler_memo.h"
#include "runtime/cache/digest.h"
#include "runtime/cache/files.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/dynamic_library.h"
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {
namespace {

constexpr const char* loader_cache = "/etc/ld.so.cache";

std::string stamp(const std::string& path) {
  struct stat s {};
  if (stat(path.c_str(), &s) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec,
                     s.st_ctim.tv_nsec);
}

std::filesystem::path note_path(const std::filesystem::path& folder, const Environment& environment) {
  const std::string settings = fmt::format("{}\n{}\n{}\n{}\n{}", to_string(environment.compiler), environment.hiprtc_path,
                                           environment.comgr_path, environment.library_path, stamp(loader_cache));
  return folder / ("compiler-" + sha256(settings).substr(0, 16));
}

std::string kept_identity(const std::filesystem::path& note) {
  const std::optional<std::string> text = read_whole(AT_FDCWD, note.c_str(), 65536);
  if (!text || !text->ends_with('\n')) return {};
  const std::size_t first = text->find('\n');
  std::size_t at = first + 1;
  if (at == text->size()) return {};
  while (at < text->size()) {
    const std::size_t end = text->find('\n', at), tab = text->find('\t', at);
    if (tab == std::string::npos || tab > end) return {};
    if (stamp(text->substr(at, tab - at)) != text->substr(tab + 1, end - tab - 1)) return {};
    at = end + 1;
  }
  return text->substr(0, first);
}

} // namespace

std::string CompilerMemo::identity(const Environment& environment) const {
  if (!folder_.empty())
    if (std::string kept = kept_identity(note_path(folder_, environment)); !kept.empty()) return kept;
  return refresh(environment);
}

std::string CompilerMemo::refresh(const Environment& environment) const {
  std::string identity = compiler_identity(environment);
  if (folder_.empty()) return identity;
  std::string note = identity + "\n";
  for (const char* library : {"libhiprtc.so", "libamd_comgr.so"})
    if (const std::string path = path_of_loaded(library); !path.empty()) note += fmt::format("{}\t{}\n", path, stamp(path));
  // A note that cannot be kept costs time only.
  mkdir(folder_.c_str(), 0700);
  const FileDescriptor folder(open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::string to = note_path(folder_, environment).filename().string(), beside = fmt::format("{}-{}", to, process_mark());
  if (!folder) return identity;
  if (!write_durably(folder.get(), beside.c_str(), note, 0600) ||
      renameat(folder.get(), beside.c_str(), folder.get(), to.c_str()) != 0)
    unlinkat(folder.get(), beside.c_str(), 0);
  return identity;
}

} // namespace kiln
