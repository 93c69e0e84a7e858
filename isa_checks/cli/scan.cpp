// One thread reads, the others analyse; a window keeps the order.
#include "isa_checks/cli/scan.h"
#include "isa_checks/input/mapped_file.h"
#include "isa_checks/object/called_functions.h"
#include "isa_checks/parallel.h"
#include "isa_checks/plural.h"
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iostream>
#include <iterator>
#include <mutex>
#include <set>
#include <thread>

namespace kiln::isa::cli {
namespace {

constexpr std::uint64_t max_bytes_in_flight = 64 << 20;

// A code object that still has kernels to work on.
struct Job {
  CodeObject object;
  std::uint64_t number = 0;
  std::string file;
  std::shared_ptr<const Policy> policy;
  std::shared_ptr<const Baseline> baseline;
  std::vector<Kernel> functions = {};
  bool mapped = false; // the object's bytes are those of a mapped file
  void forget(std::span<const std::uint8_t> part) const {
    if (mapped) MappedFile::forget(part);
  }
};
struct Task {
  std::shared_ptr<const Job> job;
  const Kernel* kernel = nullptr;
  std::uint64_t sequence = 0;
};

// What one thread keeps from kernel to kernel.
class Worker {
public:
  Disassembler& disassembler(const TargetFacts& target) {
    const auto at = disassemblers_.find(target.name);
    return at != disassemblers_.end() ? at->second : disassemblers_.emplace(target.name, Disassembler(target)).first->second;
  }
  const SourceLines& lines(const Job& job) {
    if (!lines_ || job.number != number_) {
      lines_.emplace(job.object);
      job.forget(job.object.bytes()); // compressed tables, of which nothing is asked again
    }
    number_ = job.number;
    return *lines_;
  }

private:
  std::map<std::string_view, Disassembler> disassemblers_; // by architecture
  std::optional<SourceLines> lines_;                       // of the object `number_`
  std::uint64_t number_ = 0;
};

LoopDigest digest(const KernelAnalysis& a, std::size_t index) {
  const Loop& loop = a.program.loops[index];
  const LoopFlight& flight = a.waits.loops[index];
  LoopDigest result{.name = a.program.loop_name(index),
                    .depth = loop.depth,
                    .innermost = a.is_innermost(index),
                    .loads = flight.loads,
                    .bytes_a_trip = flight.bytes_a_trip,
                    .min_bytes_in_flight = flight.min_bytes,
                    .drains = flight.drains,
                    .back_bytes = flight.max_back_bytes};
  const LoopTraffic& traffic = a.memory.loops[index];
  result.bytes_moved = traffic.loaded + traffic.stored;
  for (const MatrixUse& use : a.matrix.uses)
    if (std::ranges::binary_search(loop.blocks, a.program.block_of(use.instruction)))
      result.matrix_operations += static_cast<std::uint64_t>(use.shape.operations());
  for (const std::size_t block : loop.blocks)
    result.instructions += static_cast<std::uint32_t>(a.program.blocks[block].end - a.program.blocks[block].begin);
  return result;
}

class Scanner {
public:
  Scanner(const ScanOptions& options, const ScanSink& sink) : options_(options), sink_(sink), policies_(options.policy) {}

  ScanTotals run() {
    const std::vector<std::string> files = expand_paths(options_.paths, [this](const Error& error) { fail(error); });
    std::vector<std::jthread> workers;
    const std::size_t count = options_.threads > 0 ? options_.threads : processors();
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { work(); });
    try {
      read_all(files);
    } catch (...) {
      finish(true);
      throw;
    }
    finish(false);
    workers.clear(); // joins
    if (failure_) std::rethrow_exception(failure_);
    warn_of_unused();
    return totals_;
  }

private:
  void read_all(const std::vector<std::string>& files) {
    std::vector<std::uint64_t> sizes(files.size());
    for (std::size_t i = 0; i < files.size(); ++i) {
      std::error_code error;
      const auto size = files[i] == standard_input ? 0 : std::filesystem::file_size(files[i], error);
      sizes[i] = error ? 0 : size;
      all_ += sizes[i];
    }
    std::uint64_t before = 0;
    for (std::size_t i = 0; i < files.size(); ++i) {
      read_file(files[i], before);
      before += sizes[i];
      show(before);
    }
  }

  void read_file(const std::string& path, std::uint64_t before) {
    ++totals_.files;
    try {
      if (path == standard_input) return read_bytes(path, SharedBytes(standard_input_bytes()), {});
      const auto file = mapped_ = std::make_shared<MappedFile>(path);
      read_bytes(path, SharedBytes(file), [&](std::uint64_t done) {
        file->done_until(done);
        show(before + done);
      });
    } catch (const Error& error) {
      fail(error);
    }
  }

  static Bytes standard_input_bytes() {
    Bytes bytes{std::istreambuf_iterator<char>(std::cin), {}};
    if (bytes.empty()) throw Error("standard input", "it is empty", "pipe a file of any kind that isa_lint reads into it");
    return bytes;
  }

  void read_bytes(const std::string& path, const SharedBytes& bytes, const std::function<void(std::uint64_t)>& done) {
    const auto policy = policies_.of(path);
    const auto baseline = policies_.baseline(*policy);
    in_use_.insert(policy);
    InputVisitor visitor;
    visitor.object = [&](SharedBytes object, const std::string& name) { enqueue(std::move(object), name, path, policy, baseline); };
    visitor.skipped = [&](const std::string& arch) { count_skipped(arch); };
    visitor.failed = [&](const Error& error) { fail(error); };
    const bool named = std::ranges::find(options_.paths, path) != options_.paths.end();
    if (!named) visitor.no_device_code = [&] { ++totals_.host_files; }; // a folder's; the workers do not touch this
    read_input(bytes, path == standard_input ? "standard input" : path, options_.input, visitor, done);
  }

  void count_skipped(const std::string& arch) {
    const std::lock_guard lock(mutex_);
    ++totals_.skipped[arch];
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    ++totals_.errors;
    sink_.failed(error);
  }

  void show(std::uint64_t done) {
    const std::lock_guard lock(mutex_);
    if (sink_.progress) sink_.progress(done, all_, totals_);
  }

  bool wanted(const Kernel& kernel) const {
    const auto matches = [&](const std::string& glob) {
      return matches_glob(glob, kernel.name) || matches_glob(glob, readable_name(kernel.name));
    };
    return options_.kernels.empty() || std::ranges::any_of(options_.kernels, matches);
  }

  void enqueue(SharedBytes bytes, const std::string& name, const std::string& path, const std::shared_ptr<const Policy>& policy,
               const std::shared_ptr<const Baseline>& baseline) {
    const std::uint64_t size = bytes->size();
    std::shared_ptr<Job> job;
    try {
      job = std::make_shared<Job>(Job{load_code_object(std::move(bytes), name), next_job_++, path, policy, baseline});
      job->mapped = mapped_ && job->object.bytes().data() == mapped_->data();
    } catch (const UnknownMachine& other) {
      return count_skipped(other.machine);
    } catch (const Error& error) {
      return fail(error);
    }
    const std::string_view arch = job->object.target().name;
    const auto& archs = options_.input.archs;
    if (!archs.empty() && std::ranges::find(archs, arch) == archs.end()) return count_skipped(std::string(arch));
    if (options_.functions) job->functions = called_functions(job->object);
    job->forget(job->object.bytes()); // all code was looked at for calls
    std::unique_lock lock(mutex_);
    ++totals_.objects;
    count_code(job->object);
    totals_.largest_object = std::max(totals_.largest_object, size);
    room_.wait(lock, [&] { return in_flight_ == 0 || in_flight_ + size <= max_bytes_in_flight; });
    in_flight_ += size;
    // The object's share is given back when its last task is gone.
    const std::shared_ptr<const Job> shared(job.get(), [this, job, size](const Job*) mutable {
      job.reset();
      const std::lock_guard guard(mutex_);
      in_flight_ -= size;
      room_.notify_all();
    });
    for (const std::span<const Kernel> list : {shared->object.kernels(), std::span<const Kernel>(shared->functions)})
      for (const Kernel& kernel : list)
        if (wanted(kernel)) tasks_.push_back({shared, &kernel, next_sequence_++});
    lock.unlock(); // before `shared` goes, which may be the last one
    ready_.notify_all();
  }

  void count_code(const CodeObject& object) {
    constexpr std::uint8_t function = 2; // STT_FUNC
    std::set<std::pair<std::uint16_t, std::uint64_t>> entries;
    for (const Kernel& kernel : object.kernels()) {
      totals_.kernel_bytes += kernel.code.size();
      entries.insert({kernel.section, kernel.entry});
    }
    for (const ElfSymbol& symbol : object.symbols())
      if (symbol.type == function && symbol.size > 0 && entries.insert({symbol.section, symbol.value}).second) {
        totals_.function_bytes += symbol.size;
        ++totals_.functions;
      }
  }

  void finish(bool drop) {
    std::deque<Task> dropped; // destroyed without the lock
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
      if (drop) dropped.swap(tasks_);
    }
    ready_.notify_all();
  }

  void work() {
    Worker worker;
    for (;;) {
      std::unique_lock lock(mutex_);
      ready_.wait(lock, [&] { return closed_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      Task task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      try {
        deliver(task.sequence, examine(task, worker));
        task.job->forget(task.kernel->code);
      } catch (const Error& error) { // hostile code that an analysis refuses
        fail(error);
        deliver(task.sequence, std::nullopt);
      } catch (...) {
        const std::lock_guard guard(mutex_);
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }

  ScannedKernel examine(const Task& task, Worker& worker) {
    const Job& job = *task.job;
    Disassembler& disassembler = worker.disassembler(job.object.target());
    ScannedKernel result{.file = job.file, .object = job.object.name(), .function = task.kernel->function};
    if (!options_.lint && !sink_.render) {
      result.facts = kernel_facts(job.object, *task.kernel, disassembler);
      return result;
    }
    const KernelAnalysis analysis =
        analyse(job.object, *task.kernel, disassembler, {.source_lines = static_cast<bool>(sink_.render), .lines = &worker.lines(job)});
    result.facts = analysis.facts;
    for (std::size_t l = 0; l < analysis.program.loops.size(); ++l) result.loops.push_back(digest(analysis, l));
    if (options_.lint) judge(job, analysis, worker.lines(job), result);
    if (sink_.render) result.rendered = sink_.render(analysis, result);
    return result;
  }

  void judge(const Job& job, const KernelAnalysis& analysis, const SourceLines& lines, ScannedKernel& result) {
    LintOptions rules = job.policy->rules;
    if (job.policy->suppressions.empty()) rules.least = job.policy->severity; // else an entry may be for what is below it
    result.findings = lint(analysis, rules);
    for (const KernelExpectations* entry : expectations_for(job.policy->expectations, analysis.facts.kernel, analysis.facts.arch)) {
      if (result.function) break; // they are of kernels
      mark_used(entry);
      result.contracts.push_back(check_isa(analysis, entry->expectations));
      for (const ExpectationResult& one : result.contracts.back().results)
        if (!one.met) result.findings.insert(result.findings.begin(), contract_finding(result.contracts.back(), one));
    }
    // Lines are looked up for findings only, and once a place: for every instruction it would take as long as all the rest.
    std::map<std::uint64_t, SourceLine> places;
    const auto line_at = [&](std::uint64_t address) -> const SourceLine& {
      const auto known = places.find(address);
      return known != places.end() ? known->second : places.emplace(address, lines.at(address, analysis.kernel.section)).first->second;
    };
    std::string kernel_file; // of findings that have no place
    for (Finding& finding : result.findings) {
      const SourceLine& line = line_at(finding.address.value_or(analysis.kernel.entry));
      if (!finding.address) {
        kernel_file = line.file;
      } else if (finding.line == 0) {
        finding.file = line.file;
        finding.line = line.line;
      }
    }
    std::erase_if(result.findings, [&](const Finding& finding) {
      bool allowed = comments_.allows(finding, kernel_file);
      for (const SuppressionEntry& entry : job.policy->suppressions)
        if (matches(entry, finding, job.file)) {
          allowed = true;
          mark_used(&entry);
        }
      result.suppressed += allowed && finding.severity >= job.policy->severity;
      return allowed || finding.severity < job.policy->severity;
    });
    result.suppressed += remove_known(result.findings, *job.baseline);
  }

  void mark_used(const void* entry) {
    const std::lock_guard lock(mutex_);
    used_.insert(entry);
  }

  // Says which suppressions and expectations of the settings did nothing. A run that leaves out kernels or rules cannot know.
  void warn_of_unused() {
    const LintOptions& rules = options_.policy.rules;
    if (!options_.lint || !options_.kernels.empty() || !options_.input.archs.empty() || !rules.only.empty() || !rules.without.empty())
      return;
    for (const auto& policy : in_use_) {
      for (const SuppressionEntry& e : policy->suppressions)
        if (!used_.contains(&e))
          totals_.warnings.push_back(
              fmt::format("a suppression matched nothing: rule {}, kernel {}, arch {}, file {}", e.rule, e.kernel, e.arch, e.file));
      for (const KernelExpectations& e : policy->expectations)
        if (!used_.contains(&e))
          totals_.warnings.push_back(fmt::format("expectations for kernel '{}', arch '{}' matched none of {}", e.kernel, e.arch,
                                                 plural(totals_.kernels, "kernel")));
    }
  }

  // Hands on what is next in order; the thread that completes the next one hands on all that waited for it.
  void deliver(std::uint64_t sequence, std::optional<ScannedKernel> kernel) {
    const std::lock_guard lock(mutex_);
    waiting_.emplace(sequence, std::move(kernel));
    while (!waiting_.empty() && waiting_.begin()->first == next_delivery_) {
      std::optional<ScannedKernel> next = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      ++next_delivery_;
      if (next) hand_on(std::move(*next));
    }
  }

  void hand_on(ScannedKernel&& kernel) {
    if (kernel.function) {
      ++totals_.reviewed_functions;
      totals_.reviewed_function_bytes += kernel.facts.code_bytes;
    } else {
      ++totals_.kernels;
      totals_.code_bytes += kernel.facts.code_bytes;
    }
    totals_.findings += kernel.findings.size();
    totals_.suppressed += kernel.suppressed;
    totals_.undecodable += kernel.facts.undecodable;
    sink_.kernel(std::move(kernel));
  }

  const ScanOptions& options_;
  const ScanSink& sink_;
  Policies policies_;                              // the reading thread's
  std::set<std::shared_ptr<const Policy>> in_use_; // the reading thread's
  SourceComments comments_;
  std::uint64_t all_ = 0;              // bytes of all files
  std::uint64_t next_job_ = 0;         // the reading thread's
  std::shared_ptr<MappedFile> mapped_; // likewise: the file that is being read

  std::mutex mutex_; // over all that follows
  std::condition_variable ready_, room_;
  std::deque<Task> tasks_;
  bool closed_ = false;
  std::uint64_t in_flight_ = 0, next_sequence_ = 0, next_delivery_ = 0;
  std::map<std::uint64_t, std::optional<ScannedKernel>> waiting_;
  std::exception_ptr failure_; // a bug or lack of memory in a worker
  std::set<const void*> used_; // suppressions and expectations that matched
  ScanTotals totals_;
};

} // namespace

ScanTotals scan(const ScanOptions& options, const ScanSink& sink) { return Scanner(options, sink).run(); }

} // namespace kiln::isa::cli
