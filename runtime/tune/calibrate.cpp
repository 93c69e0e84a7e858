// calibrate: the micro-benchmarks, their sizes, and what their times say.
#include "runtime/tune/calibrate.h"
#include "gen/error.h"
#include "isa_checks/timing/chip_fields.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

namespace kiln {
namespace {

constexpr std::uint32_t cache_line = 128; // bytes: two elements of a ring never share one

// What a launch told, and how long it took by the device's clock.
struct Launched {
  std::uint64_t clocks = 0, result = 0;
  std::optional<double> ns;
};

class Bench {
public:
  Bench(const Device& device, const CompileOptions& options) : device_(device), out_(device.allocate(256, "results")) {
    const KernelSource source{
        .name = "calibrate", .arch = device.target().arch(), .text = "#include \"calibrate_instructions.h\"\n", .launch = {}};
    object_ = compile(source, device.target(), options);
    if (!device.is_emulated()) clock_ = device.backend().clock();
  }

  // The quickest of a few launches, after one that warms up.
  Launched run(const char* kernel, const DeviceMemory& data, std::uint32_t steps, std::uint32_t blocks = 1, std::uint32_t threads = 64) {
    const LoadedCode& code = loaded(kernel);
    Launched best;
    for (int i = 0; i < (clock_ ? 4 : 1); ++i) {
      const Launched one = launch(code, data, steps, blocks, threads);
      if (i != 1 && best.ns && (!one.ns || *one.ns >= *best.ns)) continue;
      best = one;
    }
    return best;
  }
  bool timed() const { return clock_ != nullptr; }
  const Device& device() const { return device_; }

private:
  const LoadedCode& loaded(const char* kernel) {
    std::unique_ptr<LoadedCode>& code = codes_[kernel];
    if (!code) {
      CachedKernel one{.key = {}, .name = kernel, .arch = object_.arch, .arguments = {}, .launch = {}, .object = {}, .meta = {}};
      one.object.assign(object_.bytes.begin(), object_.bytes.end());
      code = device_.backend().load(Kernel(std::move(one), Origin::compiled));
    }
    return *code;
  }
  Launched launch(const LoadedCode& code, const DeviceMemory& data, std::uint32_t steps, std::uint32_t blocks, std::uint32_t threads) {
    alignas(8) std::array<std::byte, 20> block{}; // two addresses and a number
    const void *from = data.data(), *to = out_.data();
    std::memcpy(&block[0], &from, 8), std::memcpy(&block[8], &to, 8), std::memcpy(&block[16], &steps, 4);
    std::array<void*, 3> parameters{&block[0], &block[8], &block[16]};
    device_.zero(out_.data(), out_.bytes());
    if (clock_) clock_->start(nullptr);
    code.launch({.blocks = blocks, .threads = threads, .block = block, .parameters = parameters.data()}, nullptr);
    if (clock_) clock_->stop(nullptr);
    Launched done;
    if (clock_) done.ns = clock_->milliseconds() * 1e6;
    std::array<std::uint64_t, 2> told{};
    device_.copy_to_host(std::as_writable_bytes(std::span(told)), out_.data());
    done.clocks = told[0], done.result = told[1];
    return done;
  }

  const Device& device_;
  DeviceMemory out_;
  CodeObject object_;
  std::unique_ptr<DeviceClock> clock_;
  std::map<std::string, std::unique_ptr<LoadedCode>> codes_;
};

// A walk over all lines of `bytes` bytes in random order, as byte offsets; and where it is after some steps.
struct Ring {
  std::vector<std::uint32_t> words;
  std::uint32_t stride = cache_line;

  explicit Ring(std::uint64_t bytes, std::uint32_t stride_ = cache_line) : words(bytes / 4), stride(stride_) {
    std::vector<std::uint32_t> order(bytes / stride);
    std::iota(order.begin(), order.end(), 0U);
    std::shuffle(order.begin() + 1, order.end(), std::mt19937(1));
    for (std::size_t i = 0; i < order.size(); ++i) words[order[i] * std::uint64_t{stride} / 4] = order[(i + 1) % order.size()] * stride;
  }
  std::uint32_t after(std::uint32_t steps) const {
    std::uint32_t at = 0;
    for (std::uint32_t i = 0; i < steps; ++i) at = words[at / 4];
    return at;
  }
};

class Calibrator {
public:
  Calibrator(const Device& device, const timing::Chip& chip, const CompileOptions& options) : chip_(chip), bench_(device, options) {
    result_ = {
        .chip = std::string(chip.name), .arch = std::string(chip.arch), .device = device.description(), .constants = {}, .rates = {}};
  }

  Calibration run() {
    instructions();
    latencies();
    others();
    rates();
    launches();
    return std::move(result_);
  }

private:
  bool tiny() const { return !bench_.timed(); }
  std::uint64_t sized(std::uint64_t bytes, std::uint64_t small) const { return tiny() ? small : bytes; }

  void add(std::string_view name, std::optional<double> measured) {
    const auto fields = timing::chip_fields();
    const auto field = std::ranges::find(fields, name, &timing::ChipField::name);
    if (field == fields.end()) throw InternalError(fmt::format("no chip constant {}", name));
    result_.constants.push_back({std::string(name), chip_.*(field->place), measured});
  }
  void expect(const char* kernel, const Launched& l, std::uint64_t wanted) const {
    if (l.result != wanted)
      throw EnvironmentError(
          fmt::format("{} on {}", kernel, bench_.device().description()), fmt::format("it computed {}, not {}", l.result, wanted),
          "its time is worth nothing: kiln run --device compares kernels with the reference, kiln doctor checks the machine");
  }
  // Clocks of a step; nothing on the CPU model.
  std::optional<double> per(const Launched& l, double steps) const {
    return tiny() ? std::nullopt : std::optional(static_cast<double>(l.clocks) / steps);
  }
  std::optional<double> ns_per(const Launched& l, double steps) const {
    return tiny() ? std::nullopt : std::optional(static_cast<double>(l.clocks) / steps / ghz_);
  }

  DeviceMemory upload(const Ring& ring) const {
    DeviceMemory memory = bench_.device().allocate(ring.words.size() * 4, "ring");
    bench_.device().copy_to_device(memory.data(), std::as_bytes(std::span(ring.words)));
    return memory;
  }
  Launched chase(const char* kernel, const Ring& ring) {
    const DeviceMemory memory = upload(ring);
    const auto steps = static_cast<std::uint32_t>(tiny() ? 8 : std::clamp<std::size_t>(ring.words.size() * 4 / ring.stride, 1024, 65536));
    steps_ = steps;
    const Launched l = bench_.run(kernel, memory, steps);
    expect(kernel, l, ring.after(steps));
    return l;
  }

  void instructions() {
    const DeviceMemory none = bench_.device().allocate(4096, "data");
    const std::uint32_t steps = tiny() ? 2 : 65536;
    const Launched adds = bench_.run("calibrate_dependent", none, steps);
    expect("calibrate_dependent", adds, 16ULL * steps);
    // A long kernel: its launch is a small part of its time.
    if (adds.ns) ghz_ = static_cast<double>(adds.clocks) / *adds.ns;
    add("clock_ghz", adds.ns ? std::optional(ghz_) : std::nullopt);
    add("dependent_cycles", per(adds, 16.0 * steps));
    const Launched branches = bench_.run("calibrate_branch", none, steps);
    expect("calibrate_branch", branches, steps);
    add("taken_branch_cycles", per(branches, 16.0 * steps));
    const Launched barriers = bench_.run("calibrate_barrier", none, steps, 1, 256);
    expect("calibrate_barrier", barriers, steps);
    add("barrier_cycles", per(barriers, steps));
  }

  void latencies() {
    const Launched scalar = chase("calibrate_scalar_chase", Ring(4096, 64));
    add("scalar_load_cycles", per(scalar, steps_));
    const Launched lds = chase("calibrate_lds_chase", Ring(256, 4));
    add("lds_latency_cycles", per(lds, steps_));
    // In the vector cache (32 KiB), in an XCD's L2 (4 MiB), in the last-level cache (256 MiB), in HBM.
    add("l1_latency_cycles", per(chase("calibrate_global_chase", Ring(sized(8 << 10, 1 << 10))), steps_));
    add("l2_latency_cycles", per(chase("calibrate_global_chase", Ring(sized(1 << 20, 2 << 10))), steps_));
    add("mall_latency_ns", ns_per(chase("calibrate_global_chase", Ring(sized(64 << 20, 4 << 10))), steps_));
    add("hbm_latency_ns", ns_per(chase("calibrate_global_chase", Ring(sized(1ULL << 30, 8 << 10))), steps_));
  }

  void others() {
    DeviceMemory data = bench_.device().allocate(4096, "data");
    const std::uint32_t steps = tiny() ? 2 : 4096;
    const auto checked = [&](const char* kernel, std::uint64_t wanted) {
      bench_.device().zero(data.data(), data.bytes());
      const Launched l = bench_.run(kernel, data, steps);
      if (kernel != std::string_view("calibrate_atomic")) expect(kernel, l, wanted);
      return l;
    };
    add("store_ack_cycles", per(checked("calibrate_store", steps), steps));
    add("release_ns", ns_per(checked("calibrate_release", steps), steps));
    add("acquire_ns", ns_per(checked("calibrate_acquire", steps), steps));
    add("atomic_ns", ns_per(checked("calibrate_atomic", 0), steps)); // counts on from launch to launch
  }

  // Bytes in 1e12 a second, by all CUs; `bytes` lie where they fit, from the second launch on.
  std::optional<double> tbs(const char* kernel, std::uint64_t bytes, std::uint32_t groups, std::uint32_t loads) {
    const std::uint64_t round = std::uint64_t{groups} * loads * 256 * 16;
    const auto steps = static_cast<std::uint32_t>(std::max<std::uint64_t>(1, bytes / round));
    const DeviceMemory data = bench_.device().allocate(round * steps, "stream");
    bench_.device().zero(data.data(), data.bytes());
    const Launched l = bench_.run(kernel, data, steps, groups, 256);
    expect(kernel, l, steps);
    return l.ns ? std::optional(static_cast<double>(round) * steps / *l.ns / 1e3) : std::nullopt;
  }

  void rates() {
    const auto cus = static_cast<std::uint32_t>(tiny() ? 1 : chip_.cus);
    add("l2_tbs", tbs("calibrate_read_8", sized(8 << 20, 1), 4 * cus, 8)); // of each XCD's L2 a part that fits
    add("mall_tbs", tbs("calibrate_read_8", sized(128 << 20, 1), 4 * cus, 8));
    add("hbm_tbs", tbs("calibrate_read_8", sized(2ULL << 30, 1), 4 * cus, 8));
    add("write_tbs", tbs("calibrate_write", sized(2ULL << 30, 1), 8 * cus, 1));
    const std::pair<const char*, std::uint32_t> kernels[] = {
        {"calibrate_read_1", 1}, {"calibrate_read_2", 2}, {"calibrate_read_4", 4}, {"calibrate_read_8", 8}};
    for (const auto& [kernel, loads] : kernels)
      result_.rates.push_back({256.0 * 16 * loads, tbs(kernel, sized(2ULL << 30, 1), cus, loads)}); // one workgroup a CU
  }

  void launches() {
    const DeviceMemory none = bench_.device().allocate(4096, "data");
    add("floor_ns", bench_.run("calibrate_empty", none, 0).ns);
    const auto cus = static_cast<std::uint32_t>(tiny() ? 1 : chip_.cus);
    constexpr std::uint32_t rounds = 32;
    const Launched once = bench_.run("calibrate_alone", none, 1, cus), often = bench_.run("calibrate_alone", none, 1, cus * (rounds + 1));
    expect("calibrate_alone", often, 1);
    add("slot_turnover_ns", once.ns ? std::optional((*often.ns - *once.ns) / rounds) : std::nullopt);
  }

  const timing::Chip& chip_;
  Bench bench_;
  Calibration result_;
  double ghz_ = 1;
  std::uint32_t steps_ = 0; // of the last chase
};

} // namespace

Calibration calibrate(const Device& device, const timing::Chip& chip, const CompileOptions& options) {
  return Calibrator(device, chip, options).run();
}

std::string to_json(const Calibration& calibration) {
  nlohmann::ordered_json json{{"chip", calibration.chip}, {"arch", calibration.arch}, {"device", calibration.device}};
  const auto value = [](const std::optional<double>& number) {
    return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json();
  };
  for (const CalibratedConstant& c : calibration.constants)
    json["constants"][c.name] = {{"table", c.table}, {"measured", value(c.measured)}};
  json["rates"] = nlohmann::ordered_json::array();
  for (const RatePoint& p : calibration.rates)
    json["rates"].push_back({{"bytes_in_flight_a_cu", p.bytes_in_flight}, {"tbs", value(p.tbs)}});
  return json.dump(2) + "\n";
}

} // namespace kiln
