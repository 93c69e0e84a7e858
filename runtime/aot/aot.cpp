// Ahead of time: a list of kernels compiled into a cache layer.
#include "runtime/aot/aot.h"
#include "gen/error.h"
#include "isa_checks/parallel.h"
#include "runtime/cache/folder/cache_folder.h"
#include "runtime/stopwatch.h"
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <mutex>
#include <optional>
#include <sstream>
#include <utility>

namespace kiln {
namespace {

class Run {
public:
  explicit Run(const AotOptions& options)
      : options_(options), events_(std::make_shared<EventLog>(options.log)),
        // A dry run makes no folder.
        cache_({.folder = options.dry_run && !std::filesystem::exists(options.output) ? std::filesystem::path() : options.output,
                .layers = {},
                .trust_shared = options.trust_shared,
                .shipped = true,
                .notes = options.notes,
                .max_bytes = std::numeric_limits<std::uint64_t>::max(),
                .remote = {}},
               events_),
        workers_(options.workers, events_) {}

  int at_once() const { return workers_.count(); }
  EventLog& events() const { return *events_; }

  AotResult make(const AotKernel& kernel) {
    AotResult result{.title = kernel.title, .arch = kernel.request.arch, .id = kernel.id, .key = {}, .error = {}};
    const Stopwatch watch;
    try {
      kernel.afresh ? look_up_tuned(kernel, result) : look_up(kernel.request, kernel.title, result);
    } catch (const RejectedError& error) {
      result.status = AotStatus::rejected;
      result.error = error.what();
    } catch (const std::exception& error) {
      result.status = AotStatus::failed;
      result.error = error.what();
    }
    result.milliseconds = watch.milliseconds();
    return result;
  }

private:
  // A table's schedule may be invalid or break its contract by now: then as if there were no table.
  void look_up_tuned(const AotKernel& kernel, AotResult& result) {
    std::string reason;
    try {
      return look_up(kernel.request, kernel.title, result);
    } catch (const UserError& error) {
      reason = error.what();
    } catch (const RejectedError& error) {
      reason = error.what();
    }
    events_->note("tuning_rejected", fmt::format("{} with {}, as a table has it: {}; another schedule is chosen", kernel.title,
                                                 fmt::join(kernel.request.overrides, " "), reason.substr(0, reason.find('\n'))));
    look_up(*kernel.afresh, kernel.title, result);
  }

  void look_up(const KernelRequest& request, const std::string& title, AotResult& result) {
    if (options_.dry_run) {
      const auto found = cache_.find(request);
      result.status = found ? AotStatus::cached : AotStatus::missing;
      if (found) result.key = found->kernel.key.hex;
      return;
    }
    const Found found = cache_.find_or_make(request, [&] { return workers_.compile(request); });
    result.key = found.kernel.key.hex;
    result.status = found.origin == Origin::compiled ? AotStatus::compiled : AotStatus::cached;
    // A kernel that could not be stored was logged by the cache; here it is a failure, because to store it is the point.
    if (cache_.folder() == nullptr || !cache_.folder()->has(found.kernel.key))
      throw EnvironmentError("kernel cache", fmt::format("{} could not be stored in {}", title, options_.output.string()),
                             "look at what the log says, free space, and run the same command again");
    const std::string compiler = field_of(found.kernel.key, "compiler");
    const std::lock_guard lock(mutex_);
    if (std::exchange(noted_, compiler) != compiler) cache_.folder()->add_compiler(compiler);
  }

  const AotOptions& options_;
  std::shared_ptr<EventLog> events_;
  KernelCache cache_;
  WorkerPool workers_;
  std::mutex mutex_;
  std::string noted_;
};

} // namespace

Shard parse_shard(const std::string& text) {
  Shard shard;
  char slash = 0, more = 0;
  std::istringstream stream(text);
  if (!(stream >> shard.index >> slash >> shard.count) || slash != '/' || (stream >> more) || shard.index < 1 || shard.index > shard.count)
    throw UserError("--shard", fmt::format("\"{}\" is no shard", text), "write I/N with I from 1 to N, for example 3/8");
  return shard;
}

std::vector<AotKernel> shard_of(std::vector<AotKernel> kernels, const Shard& shard) {
  std::erase_if(kernels, [&](const AotKernel& kernel) {
    return std::stoul(kernel.id.substr(0, 8), nullptr, 16) % static_cast<unsigned long>(shard.count) !=
           static_cast<unsigned long>(shard.index - 1);
  });
  return kernels;
}

std::string_view to_string(AotStatus status) {
  switch (status) {
  case AotStatus::cached: return "cached";
  case AotStatus::compiled: return "compiled";
  case AotStatus::rejected: return "rejected";
  case AotStatus::missing: return "missing";
  case AotStatus::failed: break;
  }
  return "failed";
}

std::size_t AotReport::count(AotStatus status) const {
  return static_cast<std::size_t>(std::ranges::count(results, status, &AotResult::status));
}

bool AotReport::complete() const { return count(AotStatus::cached) + count(AotStatus::compiled) == results.size(); }

AotReport run_aot(const std::vector<AotKernel>& kernels, const AotOptions& options) {
  const Stopwatch watch;
  // Fails early, and with one message, where nothing can be stored.
  std::optional<CacheFolder> folder;
  if (!options.dry_run)
    folder.emplace(options.output,
                   CacheFolderOptions{.writable = true, .trust = options.trust_shared ? Trust::anyone : Trust::self, .shipped = true});
  AotReport report;
  report.results.resize(kernels.size());
  Run run(options);
  std::size_t done = 0;
  std::mutex progress_mutex;
  in_parallel(kernels.size(), static_cast<std::size_t>(run.at_once()), [&](std::size_t k) {
    report.results[k] = run.make(kernels[k]);
    const std::lock_guard lock(progress_mutex);
    ++done;
    if (options.progress) run.events().guard("progress_threw", [&] { options.progress(done, report.results[k]); });
  });
  if (folder) folder->tidy();
  report.events = run.events().counts();
  report.seconds = watch.milliseconds() / 1000;
  return report;
}

} // namespace kiln
