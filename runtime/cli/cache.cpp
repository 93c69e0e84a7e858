// kiln cache: looking into kernel caches and keeping them in order. Each subcommand of it is one function here.
#include "gen/error.h"
#include "runtime/cache/compare.h"
#include "runtime/cache/transfer.h"
#include "runtime/cli/command.h"
#include "runtime/environment.h"
#include "runtime/table.h"
#include <algorithm>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

namespace kiln::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Request {
  std::string folder, key, file, other; // folder: KILN_CACHE_DIR when it is empty
  std::vector<std::string> sources;
  std::uint64_t max_mb = 0;
  bool json = false, exit_code = false, quarantine = false;
};

CacheLayer open_layer(const std::string& given, bool writable) {
  const Environment environment = process_environment();
  const std::filesystem::path folder = given.empty() ? environment.cache_dir : std::filesystem::path(given);
  if (folder.empty()) throw UserError("kiln cache", "there is no cache folder", "name one, or set KILN_CACHE_DIR");
  const bool own = given.empty();
  return {folder, {.writable = writable, .trust = true, .shipped = !own}}; // nothing of it is run here
}

std::string when(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

int list(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, false);
  Table table{
      .header = {"KEY", "KERNEL", "ARCH", "BYTES", "USED (UTC)"}, .rows = {}, .right = {false, false, false, true, false}};
  Json json = Json::array();
  for (const EntryInfo& entry : layer.list()) {
    std::string kernel = "(corrupt)", arch;
    try {
      const CachedKernel found = layer.verify(entry);
      kernel = found.name;
      arch = found.arch;
    } catch (const CorruptEntry&) { // `verify` says what is wrong
    }
    table.rows.push_back({entry.key.substr(0, 16), kernel, arch, std::to_string(entry.bytes), when(entry.used)});
    json.push_back({{"key", entry.key}, {"kernel", kernel}, {"arch", arch}, {"bytes", entry.bytes}, {"used", entry.used}});
  }
  if (request.json)
    fmt::print("{}\n", json.dump(2));
  else
    fmt::print("{}", to_text(table));
  return ok;
}

EntryInfo entry_named(const CacheLayer& layer, const std::string& key) {
  std::vector<EntryInfo> entries = layer.list();
  std::erase_if(entries, [&](const EntryInfo& entry) { return !entry.key.starts_with(key); });
  if (entries.size() != 1)
    throw UserError(fmt::format("key '{}'", key),
                    fmt::format("{} entries of {} begin with it", entries.size(), layer.folder().string()),
                    "take enough digits of a key that kiln cache ls prints");
  return entries.front();
}

int show(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, false);
  const EntryInfo entry = entry_named(layer, request.key);
  const CachedKernel kernel = layer.verify(entry);
  if (request.json) {
    fmt::print("{}", kernel.meta);
    return ok;
  }
  const Json meta = Json::parse(kernel.meta);
  fmt::print("{} for {}\npath      {}\nkey       {}\ncompiler  {}\n{}\n\n{}\n", kernel.name, kernel.arch, entry.path.string(),
             entry.key, field_of(kernel.key, "compiler"), meta.at("schedule").get<std::string>(), field_of(kernel.key, "spec"));
  fmt::print("facts {}\ncontract {}\n", meta.at("facts").dump(2), meta.at("contract").dump(2));
  return ok;
}

int verify(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, request.quarantine);
  int corrupt = 0, intact = 0;
  for (const EntryInfo& entry : layer.list()) {
    try {
      layer.verify(entry);
      ++intact;
    } catch (const CorruptEntry& error) {
      ++corrupt;
      fmt::print("{}: {}\n", entry.path.string(), error.what());
      if (request.quarantine) layer.quarantine(entry.key, error.what());
    }
  }
  fmt::print("{} intact, {} corrupt{}\n", intact, corrupt, corrupt > 0 && request.quarantine ? ", moved to quarantine" : "");
  return corrupt == 0 ? ok : kernel_failed;
}

int prune(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, true);
  std::uint64_t removed = layer.sweep(request.quarantine);
  removed += layer.prune(request.max_mb << 20);
  fmt::print("{} bytes removed\n", removed);
  return ok;
}

int report(const TransferReport& transfer, const char* did) {
  for (const std::string& corrupt : transfer.corrupt) fmt::print(stderr, "left out: {}\n", corrupt);
  fmt::print(stderr, "{} {}, {} were there, {} corrupt\n", transfer.taken, did, transfer.there, transfer.corrupt.size());
  return transfer.corrupt.empty() ? ok : kernel_failed;
}

int export_to(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, false);
  if (request.file == "-") return report(export_layer(layer, std::cout), "exported");
  std::ofstream file(request.file, std::ios::binary);
  const TransferReport transfer = export_layer(layer, file);
  file.close();
  if (!file)
    throw EnvironmentError("kiln cache export", fmt::format("{} could not be written", request.file),
                           "name another file, or free space");
  return report(transfer, "exported");
}

int import_from(const Request& request) {
  std::ifstream file(request.file, std::ios::binary);
  if (!file && request.file != "-") throw UserError(request.file, "it cannot be read", "give a file that kiln cache export made");
  return report(import_archive(request.file == "-" ? std::cin : file, request.file, open_layer(request.folder, true)),
                "imported");
}

int merge(const Request& request) {
  const CacheLayer to = open_layer(request.folder, true);
  TransferReport sum;
  for (const std::string& source : request.sources) {
    const TransferReport one = merge_layer(open_layer(source, false), to);
    sum.taken += one.taken;
    sum.there += one.there;
    sum.corrupt.insert(sum.corrupt.end(), one.corrupt.begin(), one.corrupt.end());
  }
  return report(sum, "taken");
}

int stats(const Request& request) {
  const CacheLayer layer = open_layer(request.folder, false);
  std::map<std::string, std::size_t> archs, compilers, kernels;
  std::uint64_t bytes = 0, corrupt = 0;
  const std::vector<EntryInfo> entries = layer.list();
  for (const EntryInfo& entry : entries) {
    bytes += entry.bytes;
    try {
      const CachedKernel kernel = layer.verify(entry);
      ++archs[kernel.arch];
      ++kernels[kernel.name];
      ++compilers[field_of(kernel.key, "compiler")];
    } catch (const CorruptEntry&) {
      ++corrupt;
    }
  }
  std::error_code error;
  std::size_t quarantined = 0;
  for (std::filesystem::directory_iterator at(layer.part("quarantine"), error), end; !error && at != end; at.increment(error))
    ++quarantined;
  if (request.json) {
    fmt::print("{}\n", Json{{"folder", layer.folder().string()},
                            {"entries", entries.size()},
                            {"bytes", bytes},
                            {"corrupt", corrupt},
                            {"quarantined", quarantined},
                            {"archs", archs},
                            {"kernels", kernels},
                            {"compilers", compilers}}
                           .dump(2));
    return ok;
  }
  fmt::print("{}: {} entries, {} bytes, {} corrupt, {} in quarantine\n", layer.folder().string(), entries.size(), bytes, corrupt,
             quarantined);
  for (const auto* counts : {&archs, &compilers, &kernels})
    for (const auto& [name, count] : *counts) fmt::print("  {:>6}  {}\n", count, name);
  return ok;
}

int diff(const Request& request) {
  const std::vector<KernelComparison> kernels =
      compare_layers(open_layer(request.folder, false), open_layer(request.other, false));
  int changed = 0;
  Json json = Json::array();
  for (const KernelComparison& kernel : kernels) {
    const bool one_only = kernel.before_key.empty() || kernel.after_key.empty();
    Json changes = Json::array();
    for (const FactChange& change : kernel.changes)
      changes.push_back({{"fact", change.fact}, {"before", change.before}, {"after", change.after}});
    json.push_back({{"kernel", kernel.kernel},
                    {"arch", kernel.arch},
                    {"before", kernel.before_key},
                    {"after", kernel.after_key},
                    {"same_code", kernel.same_code},
                    {"changes", changes}});
    if (!one_only && kernel.changes.empty()) continue;
    ++changed;
    if (request.json) continue;
    fmt::print("{} {} {}\n", kernel.kernel, kernel.arch,
               kernel.before_key.empty()  ? "only in the second"
               : kernel.after_key.empty() ? "only in the first"
                                          : "");
    for (const FactChange& change : kernel.changes) fmt::print("  {}: {} -> {}\n", change.fact, change.before, change.after);
  }
  if (request.json)
    fmt::print("{}\n", json.dump(2));
  else
    fmt::print("{} kernels, {} changed\n", kernels.size(), changed);
  return request.exit_code && changed > 0 ? kernel_failed : ok;
}

} // namespace

Command make_cache(CLI::App& root) {
  CLI::App* app = root.add_subcommand("cache", "Look into a kernel cache, and keep it in order");
  app->require_subcommand(1);
  const auto request = std::make_shared<Request>();
  const auto chosen = std::make_shared<int (*)(const Request&)>(nullptr);
  const auto add = [&](const char* name, const char* doc, int (*run)(const Request&)) {
    CLI::App* sub = app->add_subcommand(name, doc);
    sub->callback([chosen, run] { *chosen = run; });
    return sub;
  };
  const auto add_folder = [&](CLI::App* sub) { sub->add_option("-c,--cache", request->folder, "The cache (KILN_CACHE_DIR)"); };
  const auto add_json = [&](CLI::App* sub) { sub->add_flag("--json", request->json, "Print one JSON document"); };

  CLI::App* sub = add("ls", "List the entries", list);
  add_folder(sub), add_json(sub);
  sub = add("show", "Show one entry: request, schedule, ISA facts, verdict", show);
  sub->add_option("key", request->key, "The first digits of its key")->required();
  add_folder(sub), add_json(sub);
  sub = add("verify", "Check every byte of every entry; exit code 1 if one is corrupt", verify);
  sub->add_flag("--quarantine", request->quarantine, "Move corrupt entries away");
  add_folder(sub);
  sub = add("prune", "Remove what was used longest ago, and what crashed processes left", prune);
  sub->add_option("--max-mb", request->max_mb, "What may stay, in MiB")->required();
  sub->add_flag("--quarantine", request->quarantine, "Remove what is in quarantine too");
  add_folder(sub);
  sub = add("export", "Write all entries to a tar archive", export_to);
  sub->add_option("file", request->file, "The archive; - is the standard output")->required();
  add_folder(sub);
  sub = add("import", "Take the entries of an archive, each one verified", import_from);
  sub->add_option("file", request->file, "The archive; - is the standard input")->required();
  add_folder(sub);
  sub = add("merge", "Take the entries of other caches, each one verified", merge);
  sub->add_option("sources", request->sources, "The caches to take from")->required();
  sub->add_option("-o,--output,-c,--cache", request->folder, "The cache to fill (KILN_CACHE_DIR)");
  sub = add("stats", "Count entries by kernel, architecture and compiler", stats);
  add_folder(sub), add_json(sub);
  sub = add("diff", "Compare the ISA facts of the same kernels in two caches", diff);
  sub->add_option("before", request->folder, "A cache")->required();
  sub->add_option("after", request->other, "Another")->required();
  sub->add_flag("--exit-code", request->exit_code, "End with 1 if anything differs");
  add_json(sub);
  return {app, [request, chosen] { return (*chosen)(*request); }};
}

} // namespace kiln::cli
