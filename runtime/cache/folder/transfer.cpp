// Transfer: entries between caches and archives.
#include "runtime/cache/folder/transfer.h"
#include "gen/error.h"
#include "runtime/cache/folder/archive.h"
#include "runtime/digest.h"
#include <fmt/format.h>
#include <map>
#include <sstream>
#include <utility>

namespace kiln {
namespace {

void leave_out(TransferReport& report, const std::string& key, const EntryProblem& problem) {
  report.left_out.push_back(fmt::format("{}: {}", key, problem.what()));
}

// Publishes `files` under `key` if they are an intact entry of that key, signed where `signers` ask for it.
void take(const std::string& key, const EntryFiles& files, const CacheFolder& to, const PublicKeys* signers, TransferReport& report) {
  try {
    if (signers != nullptr) signers->check(files);
    const CachedKernel kernel = to.verify(files, key);
    to.publish(key, files) ? ++report.taken : ++report.there;
    to.add_compiler(field_of(kernel.key, "compiler"));
  } catch (const EntryProblem& problem) {
    leave_out(report, key, problem);
  }
}

// Does `transfer` with the files of each entry; what has a problem is left out.
template <class Transfer> TransferReport of_each_entry(const CacheFolder& from, Transfer transfer) {
  TransferReport report;
  for (const EntryInfo& entry : from.list()) {
    try {
      transfer(entry.key, from.read(entry.key), report);
    } catch (const EntryProblem& problem) {
      leave_out(report, entry.key, problem);
    }
  }
  return report;
}

} // namespace

TransferReport merge_folder(const CacheFolder& from, const CacheFolder& to, const PublicKeys* signers) {
  return of_each_entry(
      from, [&](const std::string& key, const EntryFiles& files, TransferReport& report) { take(key, files, to, signers, report); });
}

TransferReport export_folder(const CacheFolder& from, std::ostream& archive) {
  const TransferReport result = of_each_entry(from, [&](const std::string& key, const EntryFiles& files, TransferReport& report) {
    from.verify(files, key);
    const std::string folder = fmt::format("{}/{}/{}/", format_folder(), group_of(key), key);
    if (!files.signature.empty()) write_archive_file(archive, folder + signature_file, files.signature);
    write_archive_file(archive, folder + object_file, files.object);
    write_archive_file(archive, folder + source_file, files.source);
    write_archive_file(archive, folder + meta_file, files.meta); // last: on arrival the entry is complete with it
    ++report.taken;
  });
  end_archive(archive);
  return result;
}

TransferReport push_folder(const CacheFolder& from, RemoteCache& to) {
  return of_each_entry(from, [&](const std::string& key, const EntryFiles& files, TransferReport& report) {
    from.verify(files, key);
    if (to.put(key, files)) ++report.taken;
    else report.left_out.push_back(fmt::format("{}: {} did not take it", key, to.shown()));
  });
}

TransferReport sign_folder(const CacheFolder& folder, const SigningKey& key_of_signer) {
  return of_each_entry(folder, [&](const std::string& key, const EntryFiles& files, TransferReport& report) {
    folder.verify(files, key);
    folder.sign(key, key_of_signer.sign(files));
    ++report.taken;
  });
}

TransferReport import_archive(std::istream& archive, const std::string& name, const CacheFolder& to, const PublicKeys* signers) {
  TransferReport report;
  std::map<std::string, EntryFiles> partial; // by key; files of an entry may come in any order
  std::string complete;                      // the key of an entry that waits for its signature while files of its folder come
  const auto take_complete = [&] {
    if (complete.empty()) return;
    take(complete, partial[complete], to, signers, report);
    partial.erase(std::exchange(complete, {}));
  };
  read_archive(archive, name, [&](const std::string& path, std::string bytes) {
    std::vector<std::string> parts;
    std::istringstream stream(path);
    for (std::string part; std::getline(stream, part, '/');)
      if (part != ".") parts.push_back(part);
    if (parts.size() != 4 || parts[0] != format_folder() || !is_sha256(parts[2])) return; // not an entry's
    if (parts[2] != complete) take_complete();
    EntryFiles& files = partial[parts[2]];
    if (parts[3] == meta_file) files.meta = std::move(bytes);
    else if (parts[3] == object_file) files.object = std::move(bytes);
    else if (parts[3] == source_file) files.source = std::move(bytes);
    else if (parts[3] == signature_file) files.signature = std::move(bytes);
    if (!files.meta.empty() && !files.object.empty() && !files.source.empty()) complete = parts[2];
  });
  take_complete();
  for (const auto& [key, files] : partial)
    report.left_out.push_back(key + (files.meta.empty() && files.object.empty() && files.source.empty() && !files.signature.empty()
                                         ? ": its signature lies apart from its other files in the archive"
                                         : ": some of its files are not in the archive"));
  return report;
}

} // namespace kiln
