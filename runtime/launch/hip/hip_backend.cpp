// HipBackend: modules, memory, events. The caller's current device is the same after every call as before it.
#include "runtime/launch/hip/hip_backend.h"
#include "gen/error.h"
#include <fmt/format.h>
#include <mutex>
#include <utility>
#include <vector>

namespace kiln {
namespace {

// hipStreamLegacy is 1 and hipStreamPerThread 2: like null, they mean a stream of the thread's current device.
bool of_current_device(Stream stream) { return reinterpret_cast<std::uintptr_t>(stream) <= 2; }

// Modules that nobody uses any more. Unloading one waits for the device, and must not happen while a stream is captured, which a
// destructor cannot know: they are unloaded when the program allocates (which HIP refuses during a capture anyhow), and when the device
// goes.
class UnusedModules {
public:
  UnusedModules(std::shared_ptr<const Hip> hip, int ordinal) : hip_(std::move(hip)), ordinal_(ordinal) {}
  ~UnusedModules() { unload(); }
  UnusedModules(const UnusedModules&) = delete;
  UnusedModules& operator=(const UnusedModules&) = delete;

  void add(void* module) {
    const std::lock_guard lock(mutex_);
    modules_.push_back(module);
  }
  void unload() noexcept {
    std::vector<void*> modules;
    {
      const std::lock_guard lock(mutex_);
      modules.swap(modules_);
    }
    if (modules.empty()) return;
    try {
      const HipDeviceScope scope(*hip_, ordinal_);
      const HipRelaxedCapture relaxed(*hip_);
      for (void* module : modules) hip_->note(hip_->functions().module_unload(module), "hipModuleUnload");
    } catch (const Error&) { // HIP is being torn down, and the modules with it
    }
  }

private:
  std::shared_ptr<const Hip> hip_;
  int ordinal_;
  std::mutex mutex_;
  std::vector<void*> modules_;
};

class HipCode : public LoadedCode {
public:
  HipCode(std::shared_ptr<const Hip> hip, std::shared_ptr<UnusedModules> unused, int ordinal, bool only_device, const Kernel& kernel)
      : hip_(std::move(hip)), unused_(std::move(unused)), launch_(hip_->functions().module_launch_kernel), ordinal_(ordinal),
        only_device_(only_device), kernel_(kernel) {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(hip_->functions().module_load_data(&module_, kernel_.code_object().data()), "hipModuleLoadData");
    const int found = hip_->functions().module_get_function(&function_, module_, kernel_.name().c_str());
    if (found != 0) unused_->add(module_);
    hip_->check(found, "hipModuleGetFunction");
  }
  ~HipCode() override { unused_->add(module_); }
  HipCode(const HipCode&) = delete;
  HipCode& operator=(const HipCode&) = delete;

  void launch(const LaunchPacket& packet, Stream stream) const override {
    if (!only_device_ && of_current_device(stream)) return launch_on_default_stream(packet, stream);
    hip_->check(call(packet, stream), "hipModuleLaunchKernel");
  }

private:
  int call(const LaunchPacket& packet, Stream stream) const {
    return launch_(function_, packet.blocks, 1, 1, packet.threads, 1, 1, 0, stream, packet.parameters, nullptr);
  }
  void launch_on_default_stream(const LaunchPacket& packet, Stream stream) const {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(call(packet, stream), "hipModuleLaunchKernel");
  }

  std::shared_ptr<const Hip> hip_;
  std::shared_ptr<UnusedModules> unused_;
  decltype(HipFunctions::module_launch_kernel) launch_;
  int ordinal_;
  bool only_device_;
  Kernel kernel_; // HIP may read the image again
  void *module_ = nullptr, *function_ = nullptr;
};

class HipEvent {
public:
  HipEvent(std::shared_ptr<const Hip> hip, int ordinal) : hip_(std::move(hip)), ordinal_(ordinal) {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(hip_->functions().event_create(&event_), "hipEventCreate");
  }
  ~HipEvent() { hip_->note(hip_->functions().event_destroy(event_), "hipEventDestroy"); }
  HipEvent(const HipEvent&) = delete;
  HipEvent& operator=(const HipEvent&) = delete;

  void record(Stream stream) {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(hip_->functions().event_record(event_, stream), "hipEventRecord");
  }
  bool reached() const noexcept { return hip_->functions().event_query(event_) == 0; }
  int wait() const noexcept { return hip_->functions().event_synchronize(event_); }
  const Hip& hip() const { return *hip_; }
  void* get() const { return event_; }

private:
  std::shared_ptr<const Hip> hip_;
  int ordinal_;
  void* event_ = nullptr;
};

class HipMark : public StreamMark {
public:
  HipMark(std::shared_ptr<const Hip> hip, int ordinal, Stream stream) : event_(std::move(hip), ordinal) { event_.record(stream); }
  bool passed() const noexcept override { return event_.reached(); }
  void wait() const noexcept override { event_.hip().note(event_.wait(), "hipEventSynchronize"); }

private:
  HipEvent event_;
};

class HipClock : public DeviceClock {
public:
  HipClock(const std::shared_ptr<const Hip>& hip, int ordinal) : begin_(hip, ordinal), end_(hip, ordinal) {}

  void start(Stream stream) override { begin_.record(stream); }
  void stop(Stream stream) override { end_.record(stream); }
  double milliseconds() override {
    const Hip& hip = end_.hip();
    hip.check(end_.wait(), "hipEventSynchronize");
    float time = 0;
    hip.check(hip.functions().event_elapsed_time(&time, begin_.get(), end_.get()), "hipEventElapsedTime");
    return static_cast<double>(time);
  }

private:
  HipEvent begin_, end_;
};

class HipBackend : public DeviceBackend {
public:
  HipBackend(std::shared_ptr<const Hip> hip, int ordinal, int count)
      : hip_(std::move(hip)), ordinal_(ordinal), count_(count), facts_(hip_->device(ordinal)),
        unused_(std::make_shared<UnusedModules>(hip_, ordinal)) {}

  std::string arch() const override { return facts_.arch; }
  std::string product() const override { return facts_.name; }
  std::string description() const override {
    return fmt::format("{} ({}), HIP device {} of {}", facts_.name, facts_.arch, ordinal_, count_);
  }
  bool is_emulated() const override { return false; }

  void* allocate(std::size_t bytes, const std::string&) override {
    unused_->unload();
    const HipDeviceScope scope(*hip_, ordinal_);
    void* address = nullptr;
    if (bytes != 0) hip_->check(hip_->functions().malloc(&address, bytes), "hipMalloc");
    return address;
  }
  void release(void* address) noexcept override {
    if (address == nullptr) return;
    const HipRelaxedCapture relaxed(*hip_);
    hip_->note(hip_->functions().free(address), "hipFree"); // finds the device by the address
  }
  void copy_to_device(void* to, std::span<const std::byte> from, Stream stream) override {
    start_copy_to_device(to, from, stream);
    synchronize(stream);
  }
  void copy_to_host(std::span<std::byte> to, const void* from, Stream stream) override {
    start_copy_to_host(to, from, stream);
    synchronize(stream);
  }
  void start_copy_to_device(void* to, std::span<const std::byte> from, Stream stream) override {
    start_copy(to, from.data(), from.size(), hip_to_device, stream);
  }
  void start_copy_to_host(std::span<std::byte> to, const void* from, Stream stream) override {
    start_copy(to.data(), from, to.size(), hip_to_host, stream);
  }
  void start_copy_on_device(void* to, const void* from, std::size_t bytes, Stream stream) override {
    start_copy(to, from, bytes, hip_on_device, stream);
  }
  void zero(void* to, std::size_t bytes, Stream stream) override {
    const HipDeviceScope scope(*hip_, ordinal_);
    if (bytes == 0) return;
    hip_->check(hip_->functions().memset_async(to, 0, bytes, stream), "hipMemsetAsync");
    hip_->check(hip_->functions().stream_synchronize(stream), "hipStreamSynchronize");
  }
  void synchronize(Stream stream) override {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(hip_->functions().stream_synchronize(stream), "hipStreamSynchronize");
  }
  void wait_until_idle() override {
    const HipDeviceScope scope(*hip_, ordinal_);
    hip_->check(hip_->functions().device_synchronize(), "hipDeviceSynchronize");
  }
  // Not asked: memory may be of a pool, of another process or mapped piecewise, and HIP's answer about such is not to be relied
  // on.
  std::string why_no_memory(const void*, std::size_t) const override { return {}; }

  std::unique_ptr<StreamMark> mark(Stream stream) override { return std::make_unique<HipMark>(hip_, ordinal_, stream); }
  std::unique_ptr<LoadedCode> load(const Kernel& kernel) override {
    return std::make_unique<HipCode>(hip_, unused_, ordinal_, count_ == 1, kernel);
  }
  std::unique_ptr<DeviceClock> clock() override { return std::make_unique<HipClock>(hip_, ordinal_); }

private:
  void start_copy(void* to, const void* from, std::size_t bytes, int kind, Stream stream) {
    const HipDeviceScope scope(*hip_, ordinal_);
    if (bytes != 0) hip_->check(hip_->functions().memcpy_async(to, from, bytes, kind, stream), "hipMemcpyAsync");
  }

  std::shared_ptr<const Hip> hip_;
  int ordinal_, count_;
  HipDeviceFacts facts_;
  std::shared_ptr<UnusedModules> unused_;
};

} // namespace

std::shared_ptr<DeviceBackend> make_hip_backend(std::shared_ptr<const Hip> hip, int ordinal) {
  const int count = hip->device_count();
  if (ordinal < 0 || ordinal >= count)
    throw EnvironmentError("HIP device " + std::to_string(ordinal), fmt::format("HIP has {} device{}", count, count == 1 ? "" : "s"),
                           count == 0 ? "check that rocminfo lists a GPU, or use an emulated device (KILN_DEVICE=emulated:gfx942)"
                                      : fmt::format("choose one from 0 to {}; HIP_VISIBLE_DEVICES hides others", count - 1));
  return std::make_shared<HipBackend>(std::move(hip), ordinal, count);
}

} // namespace kiln
