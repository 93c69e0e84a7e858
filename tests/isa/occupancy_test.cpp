// Occupancy: every boundary of the table in docs/hardware.md, on both architectures.
#include "isa_checks/analysis/occupancy.h"
#include <doctest/doctest.h>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace occupancy_test {
using namespace kiln::isa;

namespace {

Occupancy of(std::string_view arch, OccupancyInput input) { return occupancy(target_facts(arch), input); }

} // namespace

TEST_CASE("VGPR boundaries: the last count of each level and the first of the next") {
  const std::vector<std::pair<int, int>> last{{64, 8}, {72, 7}, {80, 6}, {96, 5}, {128, 4}, {168, 3}, {256, 2}, {512, 1}};
  for (std::string_view arch : {"gfx90a", "gfx942", "gfx950"}) {
    int count = 1;
    for (const auto& [limit, waves] : last)
      for (; count <= limit; ++count) {
        CAPTURE(arch);
        CAPTURE(count);
        const Occupancy result = of(arch, {.vgprs = count, .sgprs = 16, .workgroup_size = 256});
        CHECK(result.waves_per_simd == waves);
        CHECK(result.limit == (waves == 8 ? OccupancyLimit::wave_slots : OccupancyLimit::vgprs));
      }
    CHECK(count == 513);
    CHECK(of(arch, {.vgprs = 513}).workgroups_per_cu == 0);
  }
}

TEST_CASE("the next boundary of VGPRs") {
  CHECK(of("gfx942", {.vgprs = 133}).next_vgprs == 128);
  CHECK(of("gfx942", {.vgprs = 128}).next_vgprs == 96);
  CHECK(of("gfx942", {.vgprs = 65}).next_vgprs == 64);
  CHECK(of("gfx942", {.vgprs = 64}).next_vgprs == 0);
  CHECK(of("gfx942", {.vgprs = 133, .lds_bytes = 60000}).next_vgprs == 0); // LDS limits
  // A workgroup of 1024 lanes needs 4 waves on each SIMD at once: 8 waves need 64 registers, nothing lies between.
  CHECK(of("gfx942", {.vgprs = 100, .workgroup_size = 1024}).waves_per_simd == 4);
  CHECK(of("gfx942", {.vgprs = 100, .workgroup_size = 1024}).next_vgprs == 64);
  CHECK(of("gfx942", {.vgprs = 129, .workgroup_size = 1024}).workgroups_per_cu == 0);
}

TEST_CASE("LDS: waves per SIMD at 256 lanes") {
  struct Row {
    int bytes, waves;
  };
  // 20481 and not 21504 is gfx950's true first count of 7: 163840 / 21760 (17 granules).
  const std::vector<Row> gfx942{{0, 8},     {8192, 8},  {8193, 7},  {8704, 7},  {9216, 7},  {10240, 6}, {12800, 5}, {13056, 4},
                                {16384, 4}, {16896, 3}, {21760, 2}, {24576, 2}, {32768, 2}, {33280, 1}, {65536, 1}, {65537, 0}};
  const std::vector<Row> gfx950{{0, 8},     {4096, 8},  {20480, 8}, {20481, 7}, {21504, 7},  {23040, 7},
                                {24576, 6}, {26880, 6}, {28160, 5}, {32000, 5}, {32768, 4},  {40960, 4},
                                {49152, 3}, {65536, 2}, {81920, 2}, {98304, 1}, {163840, 1}, {163841, 0}};
  for (const Row& row : gfx942) {
    CAPTURE(row.bytes);
    CHECK(of("gfx942", {.vgprs = 32, .lds_bytes = row.bytes}).waves_per_simd == row.waves);
  }
  for (const Row& row : gfx950) {
    CAPTURE(row.bytes);
    const Occupancy result = of("gfx950", {.vgprs = 32, .lds_bytes = row.bytes});
    CHECK(result.waves_per_simd == row.waves);
    CHECK(result.limit == (row.waves == 8 ? OccupancyLimit::wave_slots : OccupancyLimit::lds));
  }
}

TEST_CASE("LDS is rounded to the granule, unlike in the compiler's remark") {
  CHECK(of("gfx950", {.lds_bytes = 4096}).lds_workgroups == 32);
  CHECK(of("gfx950", {.lds_bytes = 8192}).lds_workgroups == 18);
  CHECK(of("gfx950", {.lds_bytes = 16384}).lds_workgroups == 9);
  CHECK(of("gfx950", {.lds_bytes = 32768}).lds_workgroups == 4);
  CHECK(of("gfx942", {.lds_bytes = 13056}).lds_workgroups == 4);
  CHECK(of("gfx942", {.lds_bytes = 21760}).lds_workgroups == 2); // 43 granules of 512: 3 would need 66048 bytes
  CHECK(of("gfx942", {.lds_bytes = 1}).allocated_lds_bytes == 512);
  CHECK(of("gfx950", {.lds_bytes = 1}).allocated_lds_bytes == 1280);
}

TEST_CASE("workgroup slots, barriers and scalar registers") {
  const Occupancy one_wave = of("gfx942", {.vgprs = 32, .workgroup_size = 64});
  CHECK(one_wave.workgroups_per_cu == 32);
  CHECK(one_wave.waves_per_simd == 8);
  const Occupancy two_waves = of("gfx942", {.vgprs = 32, .workgroup_size = 128});
  CHECK(two_waves.workgroups_per_cu == 16);
  CHECK(two_waves.waves_per_simd == 8);
  const Occupancy three_waves = of("gfx942", {.vgprs = 32, .workgroup_size = 192});
  CHECK(three_waves.workgroups_per_cu == 10);
  CHECK(three_waves.waves_per_simd == 7.5);
  CHECK(of("gfx942", {.vgprs = 32, .workgroup_size = 1024}).workgroups_per_cu == 2);
  CHECK(of("gfx942", {.vgprs = 32, .sgprs = 100}).waves_per_simd == 8);
  CHECK(of("gfx942", {.vgprs = 32, .sgprs = 101}).waves_per_simd == 7);
  CHECK(of("gfx942", {.vgprs = 32, .sgprs = 101}).limit == OccupancyLimit::sgprs);
}

TEST_CASE("absurd sizes do not overflow") {
  const Occupancy result = of("gfx950", {.vgprs = 0x7fffffff, .sgprs = 0x7fffffff, .lds_bytes = 0x7fffffff, .workgroup_size = 0x7fffffff});
  CHECK(result.workgroups_per_cu == 0);
  CHECK(of("gfx950", {.vgprs = -5, .sgprs = -5, .lds_bytes = -5, .workgroup_size = -5}).waves_per_simd == 8);
}

TEST_CASE("the compiler's remark, on every combination that clang was asked about") {
  std::ifstream file(KILN_SOURCE_DIR "/tests/isa/occupancy_remarks.txt");
  REQUIRE(file);
  int rows = 0, lower = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#")) continue;
    CAPTURE(line);
    std::istringstream columns(line);
    std::string arch;
    OccupancyInput input;
    int expected = 0;
    columns >> arch >> input.workgroup_size >> input.vgprs >> input.lds_bytes >> expected;
    REQUIRE(columns);
    const Occupancy result = of(arch, input);
    CHECK(result.compiler_waves_per_simd == expected);
    CHECK(result.waves_per_simd <= expected); // what rounding takes away is never given back
    lower += result.waves_per_simd < expected;
    ++rows;
  }
  CHECK(rows == 569);
  CHECK(lower > 0);
}

TEST_CASE("where the compiler's remark is too high") {
  CHECK(of("gfx950", {.lds_bytes = 32768}).waves_per_simd == 4); // 26 granules
  CHECK(of("gfx950", {.lds_bytes = 32768}).compiler_waves_per_simd == 5);
  CHECK(of("gfx942", {.vgprs = 96, .workgroup_size = 1024}).waves_per_simd == 4); // one workgroup, not one and a quarter
  CHECK(of("gfx942", {.vgprs = 96, .workgroup_size = 1024}).compiler_waves_per_simd == 5);
}

} // namespace occupancy_test
