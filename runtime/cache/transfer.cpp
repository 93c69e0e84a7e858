// Transfer: entries between caches and archives.
#include "runtime/cache/transfer.h"
#include "gen/error.h"
#include "runtime/cache/archive.h"
#include "runtime/cache/digest.h"
#include <fmt/format.h>
#include <map>
#include <sstream>

namespace kiln {
namespace {

// Publishes `files` under `key` if they are an intact entry of that key.
void take(const std::string& key, const EntryFiles& files, const CacheLayer& to, TransferReport& report) {
  try {
    check_source(files.meta, files.source);
    const CachedKernel kernel = read_entry(files.meta, files.object, nullptr);
    if (kernel.key.hex != key) throw CorruptEntry(fmt::format("it is the entry {}", kernel.key.hex));
    to.publish(key, files) ? ++report.taken : ++report.there;
    to.add_compiler(field_of(kernel.key, "compiler"));
  } catch (const CorruptEntry& error) {
    report.corrupt.push_back(fmt::format("{}: {}", key, error.what()));
  }
}

} // namespace

TransferReport merge_layer(const CacheLayer& from, const CacheLayer& to) {
  TransferReport report;
  for (const EntryInfo& entry : from.list()) {
    EntryFiles files;
    try {
      files = from.read(entry);
    } catch (const EnvironmentError& error) {
      report.corrupt.push_back(fmt::format("{}: {}", entry.key, error.fact));
      continue;
    }
    take(entry.key, files, to, report);
  }
  return report;
}

TransferReport export_layer(const CacheLayer& from, std::ostream& archive) {
  TransferReport report;
  for (const EntryInfo& entry : from.list()) {
    try {
      from.verify(entry);
    } catch (const CorruptEntry& error) {
      report.corrupt.push_back(fmt::format("{}: {}", entry.key, error.what()));
      continue;
    }
    const EntryFiles files = from.read(entry);
    const std::string folder = fmt::format("v{}/{}/{}/", cache_format, entry.key.substr(0, 2), entry.key);
    write_archive_file(archive, folder + object_file, files.object);
    write_archive_file(archive, folder + source_file, files.source);
    write_archive_file(archive, folder + meta_file, files.meta); // last: on arrival the entry is complete with it
    ++report.taken;
  }
  end_archive(archive);
  return report;
}

TransferReport import_archive(std::istream& archive, const std::string& name, const CacheLayer& to) {
  TransferReport report;
  std::map<std::string, EntryFiles> partial; // by key; entries may come in any order of files
  read_archive(archive, name, [&](const std::string& path, std::string bytes) {
    std::vector<std::string> parts;
    std::istringstream stream(path);
    for (std::string part; std::getline(stream, part, '/');)
      if (part != ".") parts.push_back(part);
    if (parts.size() != 4 || parts[0] != fmt::format("v{}", cache_format) || !is_sha256(parts[2])) return; // not an entry's
    EntryFiles& files = partial[parts[2]];
    if (parts[3] == meta_file) files.meta = std::move(bytes);
    if (parts[3] == object_file) files.object = std::move(bytes);
    if (parts[3] == source_file) files.source = std::move(bytes);
    if (files.meta.empty() || files.object.empty() || files.source.empty()) return;
    take(parts[2], files, to, report);
    partial.erase(parts[2]);
  });
  for (const auto& [key, files] : partial) report.corrupt.push_back(key + ": some of its files are not in the archive");
  return report;
}

} // namespace kiln
