// Assembling and disassembling: text, sizes, branch targets, bytes that are no instruction.
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/error.h"
#include "tests/isa/snippet.h"
#include <algorithm>
#include <array>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <random>
#include <span>
#include <thread>

namespace disassembler_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

namespace {

std::vector<Instruction> round_trip(std::string_view body, std::string_view arch) {
  const CodeObject object = assemble_kernel(body, arch);
  return Disassembler(object.target()).decode(object.kernel("k"));
}

} // namespace

TEST_CASE("instructions keep text, mnemonic, size and bytes") {
  const auto code =
      round_trip("  global_load_dwordx4 v[2:5], v1, s[2:3] offset:16\n  s_waitcnt vmcnt(0)\n  v_add_f32_e32 v0, v2, v3", "gfx942");
  REQUIRE(code.size() == 4);
  CHECK(code[0].mnemonic == "global_load_dwordx4");
  CHECK(code[0].text == "global_load_dwordx4 v[2:5], v1, s[2:3] offset:16");
  CHECK(code[0].operands() == "v[2:5], v1, s[2:3] offset:16");
  CHECK(code[0].mc_name == "GLOBAL_LOAD_DWORDX4_SADDR_vi");
  CHECK(code[0].size == 8);
  CHECK(code[1].address == code[0].address + 8);
  CHECK(code[1].text == "s_waitcnt vmcnt(0)");
  CHECK(code[1].bytes[0] == 0x70); // 0xbf8c0f70
  CHECK(code[1].bytes[3] == 0xbf);
  CHECK(code[2].mnemonic == "v_add_f32_e32");
  CHECK(code[3].flow == Flow::end);
  CHECK(code[3].operands().empty());
  for (const Instruction& instruction : code) CHECK(instruction.valid);
}

TEST_CASE("branch targets and flow") {
  const auto code = round_trip(R"(
top:
  s_nop 0
  s_cbranch_scc1 top
  s_branch done
  s_setpc_b64 s[0:1]
  s_swappc_b64 s[2:3], s[4:5]
done:
)",
                               "gfx950");
  REQUIRE(code.size() == 6);
  CHECK(code[1].flow == Flow::branch);
  CHECK(code[1].branch_target == code[0].address);
  CHECK(code[2].flow == Flow::jump);
  CHECK(code[2].branch_target == code[5].address);
  CHECK(code[3].flow == Flow::indirect);
  CHECK(code[4].flow == Flow::call);
  CHECK_FALSE(code[4].branch_target);
}

TEST_CASE("gfx950 has instructions that gfx942 lacks, and the other way round") {
  CHECK(round_trip("  v_cvt_pk_bf16_f32 v0, v1, v2", "gfx950")[0].mnemonic == "v_cvt_pk_bf16_f32");
  CHECK_THROWS_AS(round_trip("  v_cvt_pk_bf16_f32 v0, v1, v2", "gfx942"), Error);
  CHECK(round_trip("  v_mfma_f32_16x16x8_xf32 v[0:3], v[0:1], v[2:3], v[0:3]", "gfx942")[0].size == 8);
  CHECK_THROWS_AS(round_trip("  v_mfma_f32_16x16x8_xf32 v[0:3], v[0:1], v[2:3], v[0:3]", "gfx950"), Error);
  const auto scaled = round_trip("  v_mfma_scale_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3], v20, v21", "gfx950");
  CHECK(scaled[0].valid);
  CHECK(scaled[0].size == 16);
}

// LLVM encodes them and does not decode them.
TEST_CASE("matrix instructions of narrow formats have sources up to the last register") {
  const auto scaled = [](std::string_view sources) {
    return fmt::format("v_mfma_scale_f32_16x16x128_f8f6f4 a[36:39], {}, a[36:39], v36, v37 op_sel_hi:[0,0,0]", sources);
  };
  const std::string fp4 = scaled("v[238:241], v[252:255]") + " cbsz:4 blgp:4", fp6 = scaled("v[250:255], a[250:255]") + " cbsz:2 blgp:2";
  const std::string plain = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], a[250:253], v[16:19], v[0:15] cbsz:4 blgp:4";
  for (const std::string& text : {fp4, fp6, plain}) {
    const auto code = round_trip("  " + text, "gfx950");
    REQUIRE(code[0].valid);
    CHECK(code[0].text == text);
    CHECK(code[0].size == (text == plain ? 8 : 16));
  }
  const auto read = round_trip("  " + fp4, "gfx950")[0].use.reads();
  CHECK(std::ranges::count(read, RegisterRange{reg::vgpr + 252, 4}) == 1);
  // v[250:257] does not exist: FP8 in the encoding of FP4.
  const std::vector<std::uint8_t> fp8{0x24, 0x80, 0xad, 0xd3, 0xee, 0xf5, 0x93, 0x04};
  CHECK_FALSE(Disassembler(target_facts("gfx950")).decode(fp8, 0)[0].valid);
  // The same behind scales: the prefix alone is no instruction.
  const std::vector<std::uint8_t> scaled_fp8{0, 0, 0xac, 0xd3, 0x24, 0x4b, 0x02, 0, 0x24, 0x88, 0xad, 0xd3, 0xee, 0xf5, 0x93, 0x04};
  CHECK_FALSE(Disassembler(target_facts("gfx950")).decode(scaled_fp8, 0)[0].valid);
}

TEST_CASE("assembler errors carry the file, line and message") {
  try {
    assemble("s_nop 0\n  v_nonsense v0\n", target_facts("gfx942"), "bad.s");
    FAIL("expected an error");
  } catch (const Error& error) {
    CHECK(error.subject == "bad.s");
    CHECK(error.fact.find("bad.s:2:3") != std::string::npos);
    CHECK(error.fact.find("invalid instruction") != std::string::npos);
  }
}

TEST_CASE("bytes that are no instruction are kept as data") {
  const std::vector<std::uint8_t> bytes{0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x80, 0xbf, 0x01, 0x02, 0x03};
  const auto code = Disassembler(target_facts("gfx942")).decode(bytes, 0x100);
  REQUIRE(code.size() == 3);
  CHECK_FALSE(code[0].valid);
  CHECK(code[0].text == ".long 0xffffffff");
  CHECK(code[1].text == "s_nop 0");
  CHECK(code[2].size == 3);
  CHECK_FALSE(code[2].valid);
}

TEST_CASE("a literal that is cut off, and 200,000 random words") {
  const std::vector<std::uint8_t> cut{0xff, 0x67, 0x31, 0x9a}; // s_lshr_b64 with a literal operand, which does not follow
  for (const TargetFacts& target : kiln::machine::archs) {
    Disassembler disassembler(target);
    const auto code = disassembler.decode(cut, 0);
    REQUIRE(code.size() == 1);
    CHECK(code[0].size == 4);
    std::mt19937 random(7);
    std::vector<std::uint8_t> bytes(4 * 200'000 / 3);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::size_t total = 0;
    for (std::size_t begin = 0; begin < bytes.size(); begin += 64) // many ends, at each of which something is cut off
      for (const Instruction& instruction :
           disassembler.decode(std::span(bytes).subspan(begin, std::min<std::size_t>(64, bytes.size() - begin)), begin))
        total += instruction.size;
    CHECK(total == bytes.size());
  }
}

TEST_CASE("encodings on which LLVM crashes are refused, their neighbours are not") {
  struct Case {
    std::vector<std::uint8_t> bytes;
    std::string_view text; // "" when refused
  };
  const Case cases[] = {
      {{0xf9, 0x66, 0x9f, 0x17, 0x1b, 0x0f, 0x35, 0x04}, ""}, // SDWA with destination selector 7
      {{0xf9, 0x02, 0x00, 0x02, 0x01, 0x06, 0x06, 0x07}, ""}, // SDWA with source selector 7
      {{0xf9, 0x04, 0x00, 0x02, 0x01, 0x06, 0x06, 0x06},
       "v_add_f32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:DWORD"},
      {{0xc5, 0x00, 0x60, 0xd2, 0x00, 0x00, 0x00, 0x00}, ""}, // six scalar registers
      {{0xc4, 0x00, 0x60, 0xd2, 0x00, 0x05, 0x00, 0x00}, "v_cvt_scalef32_pk32_f16_fp6 v[196:211], v[0:5], s2"},
      {{0x00, 0x00, 0x03, 0xd1, 0xff, 0x00, 0x00, 0x00}, ""}, // VOP3 with a literal
  };
  Disassembler disassembler(target_facts("gfx950"));
  for (const Case& c : cases) {
    const auto code = disassembler.decode(c.bytes, 0);
    REQUIRE(!code.empty());
    CHECK(code[0].valid == !c.text.empty());
    if (code[0].valid) CHECK(code[0].text == c.text);
  }
}

TEST_CASE("disassemblers of several threads do not disturb each other") {
  const CodeObject object = assemble_kernel("  v_fma_f32 v0, v1, v2, v3\n  ds_read_b128 v[0:3], v4", "gfx950");
  std::vector<std::thread> threads;
  std::array<std::size_t, 4> counts{};
  for (std::size_t& count : counts)
    threads.emplace_back([&object, &count] {
      for (int i = 0; i < 20; ++i) count += Disassembler(object.target()).decode(object.kernels()[0]).size();
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t count : counts) CHECK(count == 60);
}

TEST_CASE("what was decoded before decodes to the same again, whatever follows it") {
  // Words that begin instructions of 4 and of 8 bytes, second halves that are zeros, ones and such words again, and a cut-off
  // tail.
  constexpr std::array<std::uint32_t, 12> words{0xbf8c0f70, 0x7e000301, 0xdc5c8010, 0x02000000, 0xd1000000, 0x00020501,
                                                0x00000000, 0xffffffff, 0x7e0002ff, 0x3f800000, 0xbf82fffe, 0xd8ec0000};
  std::mt19937 random(7);
  std::vector<std::uint8_t> code;
  for (int i = 0; i < 400; ++i) {
    const std::uint32_t word = words[random() % words.size()];
    for (unsigned byte = 0; byte < 4; ++byte) code.push_back(static_cast<std::uint8_t>(word >> (8 * byte)));
  }
  for (std::string_view arch : {"gfx90a", "gfx942", "gfx950"}) {
    Disassembler practised(target_facts(arch));
    practised.decode(code, 0);
    std::size_t sizes[2] = {};
    for (const Instruction& again : practised.decode(code, 0x1000)) {
      const auto rest = std::span(code).subspan(again.address - 0x1000);
      const Instruction fresh =
          Disassembler(target_facts(arch)).decode(rest.first(std::min<std::size_t>(rest.size(), 16)), again.address)[0];
      CAPTURE(again.address);
      CHECK(again.text == fresh.text);
      CHECK(again.size == fresh.size);
      CHECK(again.valid == fresh.valid);
      CHECK(again.branch_target == fresh.branch_target);
      if (again.valid) ++sizes[again.size == 8];
    }
    CHECK(sizes[0] > 20);
    CHECK(sizes[1] > 20);
  }
}

} // namespace disassembler_test
