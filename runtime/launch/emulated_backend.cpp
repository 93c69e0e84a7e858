// EmulatedBackend: exec::Memory as device memory, exec::execute as a launch that is over when it returns.
#include "runtime/launch/emulated_backend.h"
#include "gen/plan/target.h"
#include "isa_checks/object/code_object.h"
#include "isa_checks/exec/run/execute.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <mutex>
#include <utility>

namespace kiln {
namespace {

std::uint64_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

// Device memory of one emulated device, and the lock that makes its launches and copies happen one after the other.
struct Sandbox {
  std::mutex mutex;
  exec::Memory memory;
  EmulatorOptions options;

  // Call with the mutex held.
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
    object_ = isa::load_code_object(std::move(bytes), name_);
  }

  void launch(const LaunchPacket& packet, Stream) const override {
    const std::lock_guard lock(sandbox_->mutex);
    exec::ExecOptions options;
    options.seed = sandbox_->options.seed;
    options.threads = sandbox_->options.threads;
    options.max_instructions = sandbox_->options.max_instructions;
    options.measure = false;
    const exec::Grid grid{.workgroups = {packet.blocks, 1, 1}, .workgroup_size = {packet.threads, 1, 1}};
    const exec::ExecResult result = exec::execute(object_, name_, grid, packet.block, sandbox_->memory, options);
    if (result.completed && result.defects.empty()) return;
    std::vector<std::string> findings;
    for (const exec::Defect& finding : result.defects) findings.push_back(exec::to_text(finding));
    throw ExecutionError(name_, std::move(findings));
  }

private:
  std::shared_ptr<Sandbox> sandbox_;
  std::string name_;
  isa::CodeObject object_;
};

class EmulatedBackend : public DeviceBackend {
public:
  EmulatedBackend(std::string_view arch, EmulatorOptions options) : arch_(target(arch).arch()) { sandbox_->options = options; }

  std::string arch() const override { return arch_; }
  std::string product() const override { return "CPU model"; }
  std::string description() const override { return fmt::format("{}, emulated on the CPU", arch_); }
  bool is_emulated() const override { return true; }

  void* allocate(std::size_t bytes, const std::string& name) override {
    const std::lock_guard lock(sandbox_->mutex);
    const std::uint64_t address = sandbox_->memory.allocate(name, bytes);
    // hipMalloc promises nothing about the contents; NaN in every floating type shows who relies on zeros.
    std::ranges::fill(sandbox_->memory.bytes(address), std::byte{0xff});
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
  }
  void release(void* address) noexcept override {
    const std::lock_guard lock(sandbox_->mutex);
    exec::Memory& memory = sandbox_->memory;
    if (exec::Allocation* found = memory.find(number(address))) {
      found->bytes = {}; // its addresses stay unused, so that a later access is out of bounds
      found->name += " (released)";
    }
    while (!memory.allocations().empty() && memory.allocations().back().bytes.empty())
      memory.release_after(memory.allocations().size() - 1);
  }
  void copy_to_device(void* to, std::span<const std::byte> from, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    std::ranges::copy(from, sandbox_->bytes("copy to the device", to, from.size()).begin());
  }
  void copy_to_host(std::span<std::byte> to, const void* from, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    std::ranges::copy(sandbox_->bytes("copy from the device", from, to.size()), to.begin());
  }
  void zero(void* to, std::size_t bytes, Stream) override {
    const std::lock_guard lock(sandbox_->mutex);
    std::ranges::fill(sandbox_->bytes("zero", to, bytes), std::byte{0});
  }
  void synchronize(Stream) override {} // every launch is over when it returns
  std::string why_no_memory(const void* address, std::size_t bytes) const override {
    const std::lock_guard lock(sandbox_->mutex);
    return sandbox_->why_no_memory(address, bytes);
  }
  std::unique_ptr<LoadedCode> load(const Kernel& kernel) override { return std::make_unique<EmulatedCode>(sandbox_, kernel); }
  std::unique_ptr<DeviceClock> clock() override {
    throw UserError("benchmark", fmt::format("{} has no clock: the CPU model executes, it does not time", description()),
                    "run it on a machine with the GPU");
  }

private:
  std::string arch_;
  std::shared_ptr<Sandbox> sandbox_ = std::make_shared<Sandbox>();
};

std::string message(const std::string& kernel, const std::vector<std::string>& findings) {
  std::string text = fmt::format("kernel {}: its launch on the CPU model has {} finding{}", kernel, findings.size(),
                                 findings.size() == 1 ? "" : "s");
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
