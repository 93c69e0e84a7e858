// kiln cache: looking into kernel caches and keeping them in order. Each subcommand of it is one function here.
#include "runtime/cache/cache.h"
#include "gen/error.h"
#include "gen/spec/spec.h"
#include "runtime/cache/folder/transfer.h"
#include "runtime/cli/cache_report.h"
#include "runtime/cli/command.h"
#include "runtime/environment.h"
#include "runtime/table.h"
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <grp.h>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheRequest {
  std::string folder, key, file, other, group; // folder: KILN_CACHE_DIR when it is empty
  std::vector<std::string> sources;
  std::uint64_t max_mb = 0;
  std::int64_t rows = 4;
  bool json = false, exit_code = false, fail_on_regression = false, quick = false, quarantine = false, is_signed = false;
};

// What is only looked at may belong to anybody. What is written to, removed from, or taken over is trusted as the cache of a Jit is.
enum class Use { look, take, write };

CacheFolder open_folder(const std::string& given, Use use) {
  const Environment environment = process_environment();
  const std::filesystem::path folder = given.empty() ? environment.cache_dir : std::filesystem::path(given);
  if (folder.empty()) throw UserError("kiln cache", "there is no cache folder", "name one, or set KILN_CACHE_DIR");
  const bool own = given.empty();
  return {folder,
          {.writable = use == Use::write,
           .trust = use == Use::look || environment.cache_trust_shared ? Trust::anyone : Trust::self,
           .shipped = !own}};
}

// Null: no signatures are asked for.
std::shared_ptr<const PublicKeys> signers() {
  const std::filesystem::path file = process_environment().cache_public_key;
  return file.empty() ? nullptr : PublicKeys::read(file);
}

std::string when(std::int64_t seconds) { return fmt::format("{:%Y-%m-%d %H:%M}", fmt::gmtime(static_cast<std::time_t>(seconds))); }

// Types and shapes of the inputs, equal neighbours once: "f16[rows, 4096], f16[4096]". Another version's text is left out.
std::string inputs_of(const CachedKernel& kernel) {
  try {
    std::vector<std::string> inputs;
    for (const Expr& input : parse_spec(field_of(kernel.key, "spec")).inputs())
      if (std::string text = fmt::format("{}{}", to_string(input->dtype), to_text(input->shape)); inputs.empty() || inputs.back() != text)
        inputs.push_back(std::move(text));
    return fmt::format("{}", fmt::join(inputs, ", "));
  } catch (const UserError&) {
    return {};
  }
}

int list(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::look);
  Table table{
      .header = {"KEY", "KERNEL", "ARCH", "BYTES", "USED (UTC)", "INPUTS"}, .rows = {}, .right = {false, false, false, true, false}};
  Json json = Json::array();
  for (const EntryInfo& entry : cache.list()) {
    std::string kernel = "(corrupt)", arch, inputs;
    try {
      const CachedKernel found = cache.verify(entry);
      kernel = found.name;
      arch = found.arch;
      inputs = inputs_of(found);
    } catch (const EntryProblem&) { // `verify` says what is wrong
    }
    table.rows.push_back({entry.key.substr(0, 16), kernel, arch, std::to_string(entry.bytes), when(entry.used), inputs});
    json.push_back(
        {{"key", entry.key}, {"kernel", kernel}, {"arch", arch}, {"bytes", entry.bytes}, {"used", entry.used}, {"inputs", inputs}});
  }
  if (request.json) fmt::print("{}\n", json.dump(2));
  else fmt::print("{}", to_text(table));
  return ok;
}

EntryInfo entry_named(const CacheFolder& cache, const std::string& key) {
  std::vector<EntryInfo> entries = cache.list();
  std::erase_if(entries, [&](const EntryInfo& entry) { return !entry.key.starts_with(key); });
  if (entries.size() != 1)
    throw UserError(fmt::format("key '{}'", key), fmt::format("{} entries of {} begin with it", entries.size(), cache.path().string()),
                    "take enough digits of a key that kiln cache ls prints");
  return entries.front();
}

int show(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::look);
  const EntryInfo entry = entry_named(cache, request.key);
  const CachedKernel kernel = cache.verify(entry);
  if (request.json) {
    fmt::print("{}", kernel.meta);
    return ok;
  }
  const Json meta = Json::parse(kernel.meta);
  fmt::print("{} for {}\npath      {}\nkey       {}\ncompiler  {}\n{}\n\n{}\n", kernel.name, kernel.arch, entry.path.string(), entry.key,
             field_of(kernel.key, "compiler"), meta.at("schedule").get<std::string>(), field_of(kernel.key, "spec"));
  fmt::print("facts {}\ncontract {}\n", meta.at("facts").dump(2), meta.at("contract").dump(2));
  return ok;
}

int verify(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, request.quarantine ? Use::write : Use::look);
  const auto keys = request.is_signed ? signers() : nullptr;
  if (request.is_signed && !keys) throw UserError("kiln cache verify --signed", "no key is given", "set KILN_CACHE_PUBLIC_KEY");
  int corrupt = 0, intact = 0, other = 0;
  for (const EntryInfo& entry : cache.list()) {
    try {
      const EntryFiles files = cache.read(entry.key);
      cache.verify(files, entry.key);
      if (keys) keys->check(files);
      ++intact;
    } catch (const CorruptEntry& error) {
      ++corrupt;
      fmt::print("{}: {}\n", entry.path.string(), error.what());
      if (request.quarantine) cache.quarantine(entry.key, error.what());
    } catch (const EntryProblem& error) { // unreadable now, or not signed: no reason to move it away
      ++other;
      fmt::print("{}: {}\n", entry.path.string(), error.what());
    }
  }
  fmt::print("{} intact, {} corrupt{}{}\n", intact, corrupt, corrupt > 0 && request.quarantine ? ", moved to quarantine" : "",
             other == 0 ? "" : fmt::format(", {} unreadable or not signed", other));
  return corrupt + other == 0 ? ok : kernel_failed;
}

int prune(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::write);
  std::uint64_t removed = cache.sweep(request.quarantine);
  removed += cache.prune(request.max_mb << 20);
  fmt::print("{} bytes removed\n", removed);
  return ok;
}

int report(const TransferReport& transfer, const char* did) {
  for (const std::string& entry : transfer.left_out) fmt::print(stderr, "left out: {}\n", entry);
  fmt::print(stderr, "{} {}, {} were there, {} left out\n", transfer.taken, did, transfer.there, transfer.left_out.size());
  return transfer.left_out.empty() ? ok : kernel_failed;
}

int export_to(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::look);
  const auto written = [&](std::ostream& stream) {
    const TransferReport transfer = export_folder(cache, stream);
    if (!stream.flush())
      throw EnvironmentError("kiln cache export",
                             fmt::format("{} could not be written", request.file == "-" ? "standard output" : request.file),
                             "name another file, or free space");
    return transfer;
  };
  if (request.file == "-") return report(written(std::cout), "exported");
  std::error_code none;
  const std::filesystem::path file(request.file), beside = request.file + ".partial";
  if (std::filesystem::exists(file, none) && !std::filesystem::is_regular_file(file, none)) { // a device or a pipe: written as it is
    std::ofstream stream(file, std::ios::binary);
    return report(written(stream), "exported");
  }
  try { // the file is there when all of it is
    std::ofstream stream(beside, std::ios::binary);
    const TransferReport transfer = written(stream);
    std::filesystem::rename(beside, file);
    return report(transfer, "exported");
  } catch (...) {
    std::filesystem::remove(beside, none);
    throw;
  }
}

int import_from(const CacheRequest& request) {
  std::ifstream file(request.file, std::ios::binary);
  if (!file && request.file != "-") throw UserError(request.file, "it cannot be read", "give a file that kiln cache export made");
  return report(
      import_archive(request.file == "-" ? std::cin : file, request.file, open_folder(request.folder, Use::write), signers().get()),
      "imported");
}

int merge(const CacheRequest& request) {
  const CacheFolder to = open_folder(request.folder, Use::write);
  const auto keys = signers();
  TransferReport sum;
  for (const std::string& source : request.sources) {
    const TransferReport one = merge_folder(open_folder(source, Use::take), to, keys.get());
    sum.taken += one.taken;
    sum.there += one.there;
    sum.left_out.insert(sum.left_out.end(), one.left_out.begin(), one.left_out.end());
  }
  return report(sum, "taken");
}

int sign(const CacheRequest& request) {
  return report(sign_folder(open_folder(request.folder, Use::write), SigningKey::read(request.file)), "signed");
}

int push(const CacheRequest& request) {
  const auto events = std::make_shared<EventLog>(log_to_stderr());
  RemoteOptions options = cache_options(process_environment()).remote;
  if (options.url.empty()) throw UserError("kiln cache push", "there is no remote", "set KILN_CACHE_URL");
  options.write = true;
  RemoteCache remote(std::move(options), events);
  const int result = report(push_folder(open_folder(request.folder, Use::take), remote), "sent");
  return events->counts().empty() ? result : kernel_failed;
}

// For one user, or for all of a group: then new files are the group's by the setgid bit, whoever makes them.
int init(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::write);
  if (!request.group.empty()) {
    const group* found = getgrnam(request.group.c_str());
    if (found == nullptr) throw UserError("group " + request.group, "there is none of that name", "name one that getent group lists");
    if (!cache.root().names().empty())
      throw UserError("kiln cache init", fmt::format("{} is in use, and what is in it is open to its owner alone", cache.path().string()),
                      "name a new folder, and fill it with kiln cache merge");
    if (fchown(cache.root().descriptor(), static_cast<uid_t>(-1), found->gr_gid) != 0 ||
        fchmod(cache.root().descriptor(), S_ISGID | 0770) != 0)
      throw EnvironmentError("kiln cache init", fmt::format("{}: {}", cache.path().string(), std::strerror(errno)),
                             "give a folder of your own, and a group that you are a member of");
    fmt::print("{} is for the group {}; its members set KILN_CACHE_DIR={} and KILN_CACHE_TRUST_SHARED=1\n", cache.path().string(),
               request.group, cache.path().string());
  }
  return ok;
}

int stats(const CacheRequest& request) {
  const CacheFolder cache = open_folder(request.folder, Use::look);
  std::map<std::string, std::size_t> archs, compilers, kernels;
  std::uint64_t bytes = 0, corrupt = 0;
  const std::vector<EntryInfo> entries = cache.list();
  for (const EntryInfo& entry : entries) {
    bytes += entry.bytes;
    try {
      const CachedKernel kernel = cache.verify(entry);
      ++archs[kernel.arch];
      ++kernels[kernel.name];
      ++compilers[field_of(kernel.key, "compiler")];
    } catch (const EntryProblem&) {
      ++corrupt;
    }
  }
  const std::size_t quarantined = cache.quarantined();
  if (request.json) {
    fmt::print("{}\n", Json{{"folder", cache.path().string()},
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
  fmt::print("{}: {} entries, {} bytes, {} corrupt, {} in quarantine\n", cache.path().string(), entries.size(), bytes, corrupt,
             quarantined);
  for (const auto* counts : {&archs, &compilers, &kernels})
    for (const auto& [name, count] : *counts) fmt::print("  {:>6}  {}\n", count, name);
  return ok;
}

int diff(const CacheRequest& request) {
  const std::vector<KernelReport> kernels = report_changes(open_folder(request.folder, Use::look), open_folder(request.other, Use::look),
                                                           {.rows = request.rows, .times = !request.quick});
  const auto changed = std::ranges::count_if(kernels, &KernelReport::changed),
             worse = std::ranges::count_if(kernels, &KernelReport::regression);
  Json json = Json::array();
  for (const KernelReport& kernel : kernels)
    if (request.json) json.push_back(to_json(kernel));
    else fmt::print("{}", to_text(kernel));
  if (request.json) fmt::print("{}\n", json.dump(2, ' ', false, Json::error_handler_t::replace));
  else fmt::print("{} kernels, {} changed{}\n", kernels.size(), changed, worse > 0 ? fmt::format(", {} got worse", worse) : "");
  return (request.exit_code && changed > 0) || (request.fail_on_regression && worse > 0) ? kernel_failed : ok;
}

} // namespace

Command make_cache(CLI::App& root) {
  CLI::App* app = root.add_subcommand("cache", "Look into a kernel cache, and keep it in order");
  app->require_subcommand(1);
  const auto request = std::make_shared<CacheRequest>();
  const auto chosen = std::make_shared<int (*)(const CacheRequest&)>(nullptr);
  const auto add = [&](const char* name, const char* doc, int (*run)(const CacheRequest&)) {
    CLI::App* sub = app->add_subcommand(name, doc);
    sub->callback([chosen, run] { *chosen = run; });
    return sub;
  };
  const auto add_folder = [&](CLI::App* sub) { sub->add_option("folder,-c,--cache", request->folder, "The cache (KILN_CACHE_DIR)"); };
  const auto add_json = [&](CLI::App* sub) { sub->add_flag("--json", request->json, "Print one JSON document"); };

  CLI::App* sub = add("ls", "List the entries", list);
  add_folder(sub), add_json(sub);
  sub = add("show", "Show one entry: request, schedule, ISA facts, verdict", show);
  sub->add_option("key", request->key, "The first digits of its key")->required();
  add_folder(sub), add_json(sub);
  sub = add("verify", "Check every byte of every entry against its checksums; exit code 1 if one is corrupt", verify);
  sub->add_flag("--quarantine", request->quarantine, "Move corrupt entries away");
  sub->add_flag("--signed", request->is_signed, "Ask for a signature of KILN_CACHE_PUBLIC_KEY too");
  add_folder(sub);
  sub = add("prune", "Remove what was used longest ago, and what crashed processes left", prune);
  sub->add_option("--max-mb", request->max_mb, "Size to keep, in MiB")->required();
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
  sub = add("init", "Make a cache, for yourself or for a group", init);
  sub->add_option("--shared", request->group, "The group whose members may read and write it");
  add_folder(sub);
  sub = add("sign", "Sign every entry that is intact", sign);
  sub->add_option("--key", request->file, "An Ed25519 private key in PEM (openssl genpkey -algorithm ed25519)")->required();
  add_folder(sub);
  sub = add("push", "Send all entries to KILN_CACHE_URL, with their signatures", push);
  add_folder(sub);
  sub = add("stats", "Count entries by kernel, architecture and compiler", stats);
  add_folder(sub), add_json(sub);
  sub = add("diff", "What another compiler made of the same kernels: errata, predicted time, lint, registers; regressions first", diff);
  sub->add_option("before", request->folder, "A cache")->required();
  sub->add_option("after", request->other, "Another")->required();
  sub->add_flag("--exit-code", request->exit_code, "End with 1 if anything differs");
  sub->add_flag("--fail-on-regression", request->fail_on_regression, "End with 1 if something got worse");
  sub->add_flag("--quick", request->quick, "Leave out the predicted times");
  sub->add_option("--rows", request->rows, "Predict for this size of every run-time dimension, clamped to its bounds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  add_json(sub);
  return {app, [request, chosen] { return (*chosen)(*request); }};
}

} // namespace kiln::cli
