// EmulatedBackend: exec::Memory as device memory, exec::execute as a launch that is over when it returns.
#include "runtime/launch/emulated/emulated_backend.h"
#include "gen/error.h"
#include "gen/plan/target.h"
#include "isa_checks/exec/run/execute.h"
#include "isa_checks/object/code_object.h"
#include "runtime/launch/emulated/index_findings.h"
#include <algorithm>
#include <cctype>
#include <cstring>
#include <deque>
#include <exception>
#include <fmt/format.h>
#include <limits>
#include <mutex>
#include <utility>

namespace kiln {
namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// A launch with all that it needs to run later.
struct EmulatedLaunch {
  std::shared_ptr<const isa::CodeObject> object;
  std::shared_ptr<const IndexFindings> indices;
  std::string kernel;
  exec::Grid grid;
  std::vector<std::byte> arguments;
};

// Device memory of one emulated device, the launches that wait, and the lock that makes launches and copies happen one after the
// other. Call its functions with the mutex held.
struct Sandbox {
  std::mutex mutex;
  exec::Memory memory;
  EmulatorOptions options;
  std::deque<EmulatedLaunch> waiting;
  std::uint64_t launched = 0; // since the device was made, those that wait among them
  std::exception_ptr failed;  // of a launch that ran in a call that throws nothing

  void run(const EmulatedLaunch& launch) {
    exec::ExecOptions how;
    how.seed = options.seed;
    how.threads = options.threads;
    how.max_instructions = options.max_instructions;
    how.measure = false;
    if (std::vector<std::string> bad = launch.indices->find(launch.arguments, memory); !bad.empty())
      throw ExecutionError(launch.kernel, std::move(bad));
    const exec::ExecResult result = exec::execute(*launch.object, launch.kernel, launch.grid, launch.arguments, memory, how);
    if (result.completed && result.defects.empty()) return;
    std::vector<std::string> findings;
    for (const exec::Defect& finding : result.defects) findings.push_back(exec::to_text(finding));
    throw ExecutionError(launch.kernel, std::move(findings));
  }
  // Runs all that wait. A launch with findings ends it: what came after may rest on its results.
  void finish_quietly() noexcept {
    try {
      for (; !waiting.empty() && !failed; waiting.pop_front()) run(waiting.front());
    } catch (...) {
      failed = std::current_exception();
    }
    if (failed) waiting.clear();
  }
  void finish() {
    finish_quietly();
    if (failed) std::rethrow_exception(std::exchange(failed, nullptr));
  }
  std::uint64_t finished() const { return launched - waiting.size(); }

  std::string why_no_memory(const void* address, std::size_t bytes) {
    if (bytes == 0) return {};
    const exec::Allocation* found = memory.find(number(address));
    if (found == nullptr) return fmt::format("{} is {}", fmt::ptr(address), memory.describe(number(address)));
    if (bytes <= found->end() - number(address)) return {};
    return fmt::format("{} bytes from {} end {} bytes past the end of {} ({} bytes)", bytes, memory.describe(number(address)),
                       number(address) + bytes - found->end(), found->name, found->bytes.size());
  }
  std::span<std::byte> bytes(const char* what, const void* address, std::size_t count) {
    if (count == 0) return {};
    if (const std::string reason = why_no_memory(address, count); !reason.empty())
      throw UserError(what, reason, "use addresses that this device's allocate() gave, with no more bytes than were asked for");
    exec::Allocation* found = memory.find(number(address));
    return std::span(found->bytes).subspan(number(address) - found->address, count);
  }
};

class EmulatedCode : public LoadedCode {
public:
  EmulatedCode(std::shared_ptr<Sandbox> sandbox, const Kernel& kernel) : sandbox_(std::move(sandbox)), name_(kernel.name()) {
    const auto image = kernel.code_object();
    isa::Bytes bytes(image.size());
    std::memcpy(bytes.data(), image.data(), image.size());
    object_ = std::make_shared<const isa::CodeObject>(isa::load_code_object(std::move(bytes), name_));
    indices_ = std::make_shared<const IndexFindings>(kernel);
  }

  void launch(const LaunchPacket& packet, Stream) const override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->waiting.push_back({.object = object_,
                                 .indices = indices_,
                                 .kernel = name_,
                                 .grid = {.workgroups = {packet.blocks, 1, 1}, .workgroup_size = {packet.threads, 1, 1}},
                                 .arguments = {packet.block.begin(), packet.block.end()}});
    ++sandbox_->launched;
    if (!sandbox_->options.deferred) sandbox_->finish();
  }

private:
  std::shared_ptr<Sandbox> sandbox_;
  std::string name_;
  std::shared_ptr<const isa::CodeObject> object_;
  std::shared_ptr<const IndexFindings> indices_;
};

class EmulatedMark : public StreamMark {
public:
  explicit EmulatedMark(std::shared_ptr<Sandbox> sandbox) : sandbox_(std::move(sandbox)) {
    const std::lock_guard lock(sandbox_->mutex);
    after_ = sandbox_->launched;
  }
  bool passed() const noexcept override {
    const std::lock_guard lock(sandbox_->mutex);
    return sandbox_->finished() >= after_;
  }
  void wait() const noexcept override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish_quietly();
  }

private:
  std::shared_ptr<Sandbox> sandbox_;
  std::uint64_t after_ = 0;
};

class EmulatedBackend : public DeviceBackend {
public:
  EmulatedBackend(std::string_view arch_or_chip, EmulatorOptions options) : arch_(target(arch_or_chip).arch()) {
    sandbox_->options = options;
    if (arch_ == arch_or_chip) return;
    product_ += " of "; // a chip, as a GPU's name has it
    for (const char c : arch_or_chip) product_ += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }

  std::string arch() const override { return arch_; }
  std::string product() const override { return product_; }
  std::string description() const override { return fmt::format("{}, emulated on the CPU", arch_); }
  bool is_emulated() const override { return true; }

  void* allocate(std::size_t bytes, const std::string& name) override {
    const std::lock_guard lock(sandbox_->mutex);
    if (bytes > static_cast<std::size_t>(std::numeric_limits<std::ptrdiff_t>::max()))
      throw EnvironmentError("emulated device", fmt::format("{} bytes for {} are more than a process can have", bytes, name),
                             "allocate less");
    const std::uint64_t address = sandbox_->memory.allocate(name, bytes);
    // hipMalloc promises nothing about the contents; NaN in every floating type shows who relies on zeros.
    std::ranges::fill(sandbox_->memory.bytes(address), std::byte{0xff});
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  void release(void* address) noexcept override {
    const std::lock_guard lock(sandbox_->mutex);
    exec::Memory& memory = sandbox_->memory;
    sandbox_->finish_quietly(); // as hipFree waits for the device
    if (exec::Allocation* found = memory.find(number(address))) {
      found->bytes = exec::ZeroedBytes(); // its addresses stay unused, so that a later access is out of bounds
      found->name += " (released)";
    }
    while (!memory.allocations().empty() && memory.allocations().back().bytes.empty())
      memory.release_after(memory.allocations().size() - 1);
  }
  void copy_to_device(void* to, std::span<const std::byte> from, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish();
    std::ranges::copy(from, sandbox_->bytes("copy to the device", to, from.size()).begin());
  }
  void copy_to_host(std::span<std::byte> to, const void* from, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish();
    std::ranges::copy(sandbox_->bytes("copy from the device", from, to.size()), to.begin());
  }
  void zero(void* to, std::size_t bytes, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish();
    std::ranges::fill(sandbox_->bytes("zero", to, bytes), std::byte{0});
  }
  void start_copy_to_device(void* to, std::span<const std::byte> from, Stream stream) override { copy_to_device(to, from, stream); }
  void start_copy_to_host(std::span<std::byte> to, const void* from, Stream stream) override { copy_to_host(to, from, stream); }
  void start_copy_on_device(void* to, const void* from, std::size_t bytes, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish();
    std::ranges::copy(sandbox_->bytes("copy on the device", from, bytes), sandbox_->bytes("copy on the device", to, bytes).begin());
  }
  void synchronize(Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    sandbox_->finish();
  }
  std::string why_no_memory(const void* address, std::size_t bytes) const override {
    const std::lock_guard lock(sandbox_->mutex);
    return sandbox_->why_no_memory(address, bytes);
  }
  void wait_until_idle() override { synchronize(nullptr); }
  std::unique_ptr<StreamMark> mark(Stream) override { return std::make_unique<EmulatedMark>(sandbox_); }
  std::unique_ptr<LoadedCode> load(const Kernel& kernel) override { return std::make_unique<EmulatedCode>(sandbox_, kernel); }
  std::unique_ptr<DeviceClock> clock() override {
    throw UserError("benchmark", fmt::format("{} has no clock: the CPU model executes, it does not time", description()),
                    "run it on a machine with the GPU");
  }

private:
  std::string arch_, product_ = "CPU model";
  std::shared_ptr<Sandbox> sandbox_ = std::make_shared<Sandbox>();
};

std::string message(const std::string& kernel, const std::vector<std::string>& findings) {
  std::string text =
      fmt::format("kernel {}: its launch on the CPU model has {} finding{}", kernel, findings.size(), findings.size() == 1 ? "" : "s");
  for (const std::string& finding : findings) text += "\n  " + finding;
  return text;
}

} // namespace

ExecutionError::ExecutionError(const std::string& kernel, std::vector<std::string> findings_)
    : Error(message(kernel, findings_)), findings(std::move(findings_)) {}

std::shared_ptr<DeviceBackend> make_emulated_backend(std::string_view arch, EmulatorOptions options) {
  return std::make_shared<EmulatedBackend>(arch, options);
}

} // namespace kiln
