// CompilerMemo: the compiler's identity without loading the compiler.
// The note is lines of text: the identity, then "PATH\tSTAMP" for each file that it depends on.
#include "runtime/cache/compiler_memo.h"
#include "runtime/cache/folder/process_mark.h"
#include "runtime/digest.h"
#include <fmt/format.h>
#include <sys/stat.h>

namespace kiln {
namespace {

constexpr const char* loader_cache = "/etc/ld.so.cache";

std::string stamp(const std::string& path) {
  struct stat s{};
  if (stat(path.c_str(), &s) != 0) return "none";
  return fmt::format("{}:{}:{}:{}.{}:{}.{}", s.st_dev, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec, s.st_ctim.tv_sec,
                     s.st_ctim.tv_nsec);
}

std::string note_name(const Environment& environment) {
  const std::string settings =
      fmt::format("{}\n{}\n{}\n{}\n{}", to_string(environment.compiler), environment.hiprtc_path, environment.comgr_path,
                  environment.library_path + "\n" + environment.preload, stamp(loader_cache));
  return "compiler-" + sha256(settings).substr(0, 16);
}

} // namespace

std::string CompilerMemo::kept(const std::string& note) const {
  std::optional<std::string> text;
  try {
    text = folder_.read(note, 65536);
  } catch (const Untrusted&) { // somebody else's word
  }
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

std::string CompilerMemo::identity(const Environment& environment) const {
  if (folder_)
    if (std::string known = kept(note_name(environment)); !known.empty()) return known;
  return refresh(environment);
}

std::string CompilerMemo::refresh(const Environment& environment) const {
  const CompilerParts parts = read_(environment);
  if (!folder_) return parts.identity;
  std::string note = parts.identity + "\n";
  for (const std::string& file : parts.files) note += fmt::format("{}\t{}\n", file, stamp(file));
  // A note that cannot be kept costs time only.
  const std::string beside = unique_mark();
  if (!folder_.write(beside, note) || !folder_.move(beside, folder_, note_name(environment))) folder_.remove_file(beside);
  return parts.identity;
}

} // namespace kiln
