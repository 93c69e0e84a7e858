// CacheLayer: one folder of compiled kernels, read-only or writable. docs/cache.md draws it.
#pragma once
#include "runtime/cache/entry.h"
#include "runtime/cache/files.h"
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

struct LayerOptions {
  bool writable = false; // made when it is not there
  bool trust = false;    // although it belongs to others, or others may write to it
  bool shipped = false;  // made for others to read: modes 0755 and 0644 instead of 0700 and 0600
};

struct EntryInfo {
  std::string key;            // 64 digits, the folder's name
  std::filesystem::path path; // of the entry
  std::uint64_t bytes = 0;
  std::int64_t used = 0; // seconds since 1970, of the last use, within an hour
};

// Thread-safe, and safe against other processes that do the same to the same folder.
class CacheLayer {
public:
  // Throws EnvironmentError when the folder is not there, cannot be made, or must not be trusted.
  CacheLayer(std::filesystem::path folder, LayerOptions options);

  // The intact entry, or nothing. One that is not intact is moved to quarantine/ (with its reason; in a read-only layer it
  // stays), is reported to `corrupt`, and counts as none.
  std::optional<CachedKernel> find(const CacheKey& key, const std::function<void(const std::string& reason)>& corrupt) const;
  bool has(const CacheKey& key) const; // something of that name; a glance

  // Written beside, synced, renamed. False: somebody else had published it before. Throws EnvironmentError when the disk says no.
  bool publish(const std::string& key, const EntryFiles& files) const;

  std::vector<EntryInfo> list() const;           // by key
  EntryFiles read(const EntryInfo& entry) const; // unchecked; throws EnvironmentError
  // The intact entry with all its files. Throws CorruptEntry.
  CachedKernel verify(const EntryInfo& entry) const;
  void quarantine(const std::string& key, const std::string& reason) const;
  bool remove(const std::string& key) const; // in one step for others

  // Removes the entries that were used longest ago until at most `max_bytes` are left, and what crashed processes left behind.
  // Returns the bytes that were removed.
  std::uint64_t prune(std::uint64_t max_bytes) const;
  // Removes what crashed publishers left in staging/ and, with `all`, everything in quarantine/. Returns its bytes.
  std::uint64_t sweep(bool all) const;

  void tidy() const; // removes the folders for work in progress if there is none, so that only what is to be shipped is left

  // The compilers that the layer was made with, when it says so: a shipped layer is used whatever compiler is installed.
  std::vector<std::string> compilers() const;
  void add_compiler(const std::string& identity) const;

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path part(const char* name) const { return folder_ / name; } // "claims", "quarantine", ...
  bool writable() const { return options_.writable; }

private:
  std::filesystem::path entry_path(const std::string& key) const;
  [[noreturn]] void fail(const std::filesystem::path& path, const char* what) const;
  void make_folder(const std::filesystem::path& path) const;

  std::filesystem::path folder_;
  LayerOptions options_;
};

} // namespace kiln
