// The device takes its row of machine/arch.h. Nothing but platform.h, instructions.h and target.cpp tells architectures apart in gen and
// templates.
#include "gen/emit/templates.h"
#include "gen/plan/target.h"
#include "isa_checks/target/hazards.h"
#include "isa_checks/target/target_table.h"
#include "runtime/compile/compile.h"
#include "tests/compile/kernels.h"
#include <doctest/doctest.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <sstream>

using namespace kiln;

namespace {

std::string equal(std::string_view constant, int value) {
  return fmt::format("static_assert(kiln::{0} == {1}, \"{0} is not {1}\");\n", constant, value);
}

int wait_states(std::string_view mnemonic, int passes, const isa::TargetFacts& facts) {
  const auto shape = isa::matrix_shape(mnemonic, facts);
  REQUIRE(shape.has_value());
  CAPTURE(mnemonic);
  CHECK(shape->passes == passes);
  return isa::matrix_result_states(*shape, facts);
}

// What the device has to read out of machine/arch.h, and the one table that stands twice: wait states behind matrix instructions.
std::string demands(const isa::TargetFacts& facts) {
  return "#include \"common/matrix_instructions.h\"\n" + equal("machine::here.elf_machine", static_cast<int>(facts.elf_machine)) +
         equal("has_ocp_fp8", facts.fp8 == isa::Fp8Format::ocp) +
         equal("platform::matrix_wait_states(8)", wait_states("v_mfma_f32_32x32x8_f16", 8, facts)) +
         equal("platform::matrix_wait_states(16)", wait_states("v_mfma_f32_32x32x4_2b_f16", 16, facts));
}

void compile_text(std::string_view arch, const std::string& text) {
  CompileOptions options = own_process_options(process_environment());
  compile(test::with_text(test::scale_kernel("tables", std::string(arch)), text + "KILN_KERNEL(64) void tables() {}\n"), target(arch),
          options);
}

} // namespace

TEST_CASE("the device has its row, and the wait states of isa_checks' table") {
  for (const std::string_view arch : known_archs()) {
    CAPTURE(arch);
    CHECK_NOTHROW(compile_text(arch, demands(isa::target_facts(arch))));
  }
  CHECK_THROWS(compile_text("gfx942", demands(isa::target_facts("gfx950")))); // so the comparison can fail
}

// await_mfma_results<16> waits for 8 passes, await_mfma_results<32> for 16.
TEST_CASE("no matrix instruction of the templates takes longer than await_mfma_results waits") {
  const std::pair<std::string_view, int> used[] = {
      {"v_mfma_f32_16x16x16_f16", 8},           {"v_mfma_f32_16x16x16_bf16", 8},         {"v_mfma_i32_16x16x32_i8", 8},
      {"v_mfma_f32_16x16x32_fp8_fp8", 8},       {"v_mfma_f32_16x16x32_f16", 8},          {"v_mfma_i32_16x16x64_i8", 8},
      {"v_mfma_scale_f32_16x16x128_f8f6f4", 8}, {"v_smfmac_f32_16x16x32_f16", 8},        {"v_smfmac_i32_16x16x64_i8", 8},
      {"v_mfma_f32_32x32x8_f16", 16},           {"v_mfma_i32_32x32x16_i8", 16},          {"v_mfma_f32_32x32x16_fp8_fp8", 16},
      {"v_mfma_f32_32x32x16_f16", 16},          {"v_mfma_scale_f32_32x32x64_f8f6f4", 16}};
  for (const std::string_view arch : known_archs())
    for (const auto& [mnemonic, most] : used) {
      const auto shape = isa::matrix_shape(mnemonic, isa::target_facts(arch));
      CAPTURE(mnemonic);
      REQUIRE(shape.has_value());
      CHECK(shape->passes <= most);
    }
}

TEST_CASE("compiler builtins and architecture names stand in platform.h and the headers of instructions alone") {
  for (const TemplateHeader& header : template_headers())
    for (const std::string_view word : {"__builtin", "__gfx", "__hip", "asm(", "asm volatile", "__attribute__((amdgpu"}) {
      CAPTURE(header.name);
      CAPTURE(word);
      CHECK((header.text.find(word) == header.text.npos || header.name == "common/platform.h" || header.name.ends_with("instructions.h")));
    }
}

TEST_CASE("gen spells architecture names in target.cpp alone") {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(KILN_SOURCE_DIR "/gen")) {
    if (entry.path().filename() == "target.cpp" || !entry.is_regular_file()) continue;
    std::ifstream file(entry.path());
    CAPTURE(entry.path().string());
    for (std::string line; std::getline(file, line);) CHECK(line.substr(0, line.find("//")).find("gfx9") == line.npos);
  }
}
