// CacheFolder: one folder of compiled kernels, read-only or writable. docs/cache.md draws it.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/cache/sign.h"
#include "runtime/folder.h"
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct CacheFolderOptions {
  bool writable = false; // made when it is not there
  Trust trust = Trust::self;
  bool shipped = false;                           // a new folder is made for others to read: mode 0755 instead of 0700
  std::shared_ptr<const PublicKeys> signers = {}; // null: entries need no signature
  bool own_unsigned = false;                      // what this user compiled into it needs none either
};

struct EntryInfo {
  std::string key;            // 64 digits, the folder's name
  std::filesystem::path path; // of the entry, for messages
  std::uint64_t bytes = 0;
  std::int64_t used = 0; // seconds since 1970, of the last use, within an hour
};

// Thread-safe, and safe against other processes that do the same to the same folder. What is removed is removed by names of
// Kiln's own form, from held folders: no link leads out of it.
class CacheFolder {
public:
  // Throws EnvironmentError when the folder is not there, cannot be made, or must not be trusted, or a folder in it is a link.
  CacheFolder(const std::filesystem::path& folder, CacheFolderOptions options);

  // The entry, if it is intact and may be taken. What is there and is not taken is told to `problem`; only bytes that were read
  // and are wrong are moved to quarantine/ (not in a read-only folder).
  std::optional<CachedKernel> find(const CacheKey& key, const std::function<void(const EntryProblem&)>& problem) const;
  bool has(const CacheKey& key) const; // something of that name; a glance

  // Written beside, synced, renamed. False: somebody else had published it before. An entry in the way that must not be taken is
  // replaced. Throws EnvironmentError when the disk says no.
  bool publish(const std::string& key, const EntryFiles& files) const;
  void sign(const std::string& key, const std::string& signature) const; // adds or replaces it; throws EnvironmentError

  std::vector<EntryInfo> list() const;                                        // by key; without those that are not to be trusted
  EntryFiles read(const std::string& key) const;                              // unchecked; throws EntryProblem
  CachedKernel verify(const EntryFiles& files, const std::string& key) const; // with source and signature; throws EntryProblem
  CachedKernel verify(const EntryInfo& entry) const { return verify(read(entry.key), entry.key); }
  void quarantine(const std::string& key, const std::string& reason) const;
  bool remove(const std::string& key) const; // in one step for others

  // Removes the entries that were used longest ago until at most `max_bytes` are left, and what crashed processes left behind.
  // Returns the bytes that were removed.
  std::uint64_t prune(std::uint64_t max_bytes) const;
  // Removes what crashed publishers left in staging/ and, with `all`, everything in quarantine/. Returns its bytes.
  std::uint64_t sweep(bool all) const;
  std::size_t quarantined() const; // entries in quarantine/

  void tidy() const; // removes the folders for work in progress if there is none, so that only what is to be shipped is left

  // The compilers that the folder was made with, when it says so: a shipped layer is used whatever compiler is installed.
  std::vector<std::string> compilers() const;
  void add_compiler(const std::string& identity) const;

  const std::filesystem::path& path() const { return root_.path(); }
  const Folder& root() const { return root_; }
  bool writable() const { return options_.writable; }

private:
  Folder entry_folder(const std::string& key) const;                 // none: there is none; throws EntryProblem
  Folder part(const char* name) const;                               // "staging", ...: made when it is not there; throws EnvironmentError
  Folder existing_part(const char* name) const;                      // none when it is not there
  bool place(const std::string& key, const EntryFiles& files) const; // publish; throws Untrusted too
  bool is_at(const std::string& key, const Folder& entry) const;
  EntryFiles read_files(const Folder& entry, bool with_source) const;
  void check_signature(const EntryFiles& files) const;
  bool must_be_replaced(const std::string& key) const;
  [[noreturn]] void fail(const std::filesystem::path& path, const std::string& fact) const;

  CacheFolderOptions options_;
  Folder root_;
};

std::uint64_t bytes_of_entry(const Folder& entry);
// Removes the entry `name` in `folder` by the names of its files; what has other files in it stays. Returns its bytes.
std::uint64_t remove_known(const Folder& folder, const std::string& name);

// The folders of a cache, and of an entry in it: "v1", "ab".
std::string format_folder();
inline std::string group_of(const std::string& key) { return key.substr(0, 2); }

} // namespace kiln
