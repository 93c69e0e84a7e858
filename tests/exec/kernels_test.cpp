// Kernels compiled by clang -O3 for both architectures, compared with plain C++. Skipped, with a message, without a clang.
#include "tests/exec/agreement.h"
#include "tests/exec/lane_program.h"
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <optional>
#include <random>

namespace kernels_test {
using namespace kiln::exec;
using namespace kiln::exec::testing;

namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

std::optional<kiln::isa::CodeObject> compile(const std::string& name, const std::string& arch) {
  const std::string source = fmt::format("{}/tests/exec/kernels/{}.hip", KILN_SOURCE_DIR, name);
  const auto object = std::filesystem::temp_directory_path() / fmt::format("kiln_exec_{}_{}_{}.co", name, arch, std::random_device{}());
  for (const char* clang : {"clang-21", "clang-22", "clang-20", "clang"}) {
    if (std::system(fmt::format("{} --version > /dev/null 2>&1", clang).c_str()) != 0) continue;
    const std::string command =
        fmt::format("{} -x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib --offload-arch={} -O3 {} -o {}", clang,
                    arch, source, object.string());
    REQUIRE(std::system(command.c_str()) == 0);
    auto loaded = kiln::isa::load_code_object_file(object.string());
    std::filesystem::remove(object);
    return loaded;
  }
  MESSAGE("no clang on the PATH: kernel not tested");
  return std::nullopt;
}

void require_clean(const ExecResult& r) {
  CHECK(r.completed);
  for (const Defect& f : r.defects) FAIL_CHECK(to_text(f));
}

// The wait analysis says of the kernel what the run counted.
void check_waits(const kiln::isa::CodeObject& object, const char* kernel, const ExecResult& r) {
  const auto agreement = kiln::testing::compare_waits(object, kernel, r);
  CHECK(agreement.exact > 0);
  for (const std::string& wrong : agreement.wrong) FAIL_CHECK(wrong);
}

} // namespace

TEST_CASE("clang -O3: RMS norm over rows, with tails and several seeds") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const auto object = compile("rmsnorm", arch);
    if (!object) return;
    for (const u32 cols : {8U, 1000U, 4096U}) {
      constexpr u32 rows = 5;
      Memory memory;
      const u64 x = memory.allocate("x", rows * cols * 2), weight = memory.allocate("weight", cols * 2),
                y = memory.allocate("y", rows * cols * 2);
      auto* const xs = reinterpret_cast<Half*>(memory.bytes(x).data());
      auto* const ws = reinterpret_cast<Half*>(memory.bytes(weight).data());
      std::mt19937 random(cols);
      for (u32 i = 0; i < rows * cols; ++i) xs[i] = to_half(static_cast<float>(random() % 2001) / 500 - 2);
      for (u32 i = 0; i < cols; ++i) ws[i] = to_half(static_cast<float>(random() % 1001) / 500);
      struct {
        u64 x, weight, y;
        u32 cols;
        float eps;
      } arguments{x, weight, y, cols, 1e-5F};
      Grid grid;
      grid.workgroups = {rows, 1, 1};
      grid.workgroup_size = {256, 1, 1};
      const ExecResult r = execute(*object, "rmsnorm", grid, std::as_bytes(std::span(&arguments, 1)), memory, {.seed = cols, .threads = 2});
      require_clean(r);
      check_waits(*object, "rmsnorm", r);
      CHECK(r.waves.waves == rows * 4);
      const auto* const ys = reinterpret_cast<const Half*>(memory.bytes(y).data());
      for (u32 row = 0; row < rows; ++row) {
        double squares = 0;
        for (u32 i = 0; i < cols; ++i) squares += std::pow(to_float(xs[row * cols + i]), 2);
        const double scale = 1 / std::sqrt(squares / cols + 1e-5);
        for (u32 i = 0; i < cols; ++i) {
          const double want = to_float(xs[row * cols + i]) * scale * to_float(ws[i]);
          CHECK(std::fabs(to_float(ys[row * cols + i]) - want) <= std::fabs(want) * 0.0006 + 1e-7);
        }
      }
    }
  }
}

TEST_CASE("clang -O3: a histogram through LDS and device atomics, with 64-bit and double arithmetic") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const auto object = compile("histogram", arch);
    if (!object) return;
    constexpr u32 n = 5000, bins = 37;
    Memory memory;
    const u64 x = memory.allocate("x", n * 4), out = memory.allocate("out", bins * 4), mean = memory.allocate("mean", 768 * 8);
    auto* const xs = reinterpret_cast<u32*>(memory.bytes(x).data());
    std::mt19937 random(9);
    std::array<u32, bins> want{};
    std::vector<u64> sums(768);
    for (u32 i = 0; i < n; ++i) {
      xs[i] = static_cast<u32>(random());
      ++want[xs[i] % bins];
      sums[i % 768] += u64{xs[i]} * xs[i];
    }
    struct {
      u64 x;
      u32 n, bins;
      u64 out, mean;
    } arguments{x, n, bins, out, mean};
    Grid grid;
    grid.workgroups = {4, 1, 1};
    grid.workgroup_size = {192, 1, 1};
    const ExecResult r = execute(*object, "histogram", grid, std::as_bytes(std::span(&arguments, 1)), memory, {.threads = 2});
    require_clean(r);
    check_waits(*object, "histogram", r);
    const auto* const counts = reinterpret_cast<const u32*>(memory.bytes(out).data());
    for (u32 b = 0; b < bins; ++b) CHECK(counts[b] == want[b]);
    const auto* const means = reinterpret_cast<const double*>(memory.bytes(mean).data());
    for (std::size_t i = 0; i < 768; ++i) CHECK(means[i] == static_cast<double>(sums[i]) / n);
  }
}

} // namespace kernels_test
