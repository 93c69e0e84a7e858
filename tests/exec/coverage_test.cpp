// Which instructions of the two architectures the executor has: every opcode of every encoding format is decoded by LLVM and
// looked up in the tables.
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/exec/instructions/tables.h"
#include "isa_checks/target/target_table.h"
#include <cstring>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>

namespace coverage_test {
using namespace kiln;

namespace {

using u32 = std::uint32_t;

// An encoding format: the fixed top bits, where the opcode lies, and settings of the other fields with which some opcode
// decodes (vector or scalar sources, register pairs, segments).
struct EncodingFormat {
  u32 fixed;
  int shift, bits;
  std::vector<std::array<u32, 2>> others;
};
const std::vector<EncodingFormat>& encoding_formats() {
  static const std::vector<EncodingFormat> all = {
      {0x80000000, 23, 7, {{0, 0}}},                                                                                  // SOP2
      {0xb0000000, 23, 5, {{0, 0}, {1, 0}}},                                                                          // SOPK
      {0xbe800000, 8, 8, {{0, 0}}},                                                                                   // SOP1
      {0xbf000000, 16, 7, {{0, 0}}},                                                                                  // SOPC
      {0xbf800000, 16, 7, {{0, 0}}},                                                                                  // SOPP
      {0xc0000000, 18, 8, {{0x20000, 0}, {0x20002, 0}}},                                                              // SMEM
      {0x7e000000, 9, 8, {{0x100, 0}, {0, 0}}},                                                                       // VOP1
      {0x00000000, 25, 6, {{0x100, 0}, {0, 0}}},                                                                      // VOP2
      {0x7c000000, 17, 8, {{0x100, 0}}},                                                                              // VOPC
      {0xd0000000, 16, 10, {{0, 0x04020100}, {0, 0}, {0, 0x00020100}, {0, 0x100}, {0, 0x04000100}, {0, 0x02820100}}}, // VOP3, VOP3P, matrix
      {0xd8000000, 17, 8, {{0, 0}}},                                                                                  // DS
      {0xdc000000, 18, 7, {{0, 0x007f0000}, {0x8000, 0x007f0000}, {0x4000, 0x007f0000}, {0x6000, 0x007f0000}}}, // FLAT, global, scratch
      {0xe0000000, 18, 7, {{0, 0x80000000}, {0x10000, 0x80000000}}},                                            // MUBUF
      {0xe8000000, 15, 4, {{0x00780000, 0x80000000}}},                                                          // MTBUF
  };
  return all;
}

std::set<std::string> mnemonics_of(const isa::TargetFacts& target) {
  std::set<std::string> found;
  isa::Disassembler disassembler(target);
  for (const EncodingFormat& f : encoding_formats())
    for (u32 op = 0; op < 1U << f.bits; ++op)
      for (const auto& others : f.others) {
        const u32 words[4] = {f.fixed | op << f.shift | others[0], others[1], 0, 0};
        std::uint8_t bytes[16];
        std::memcpy(bytes, words, sizeof bytes);
        const std::vector<isa::Instruction> decoded = disassembler.decode(std::span(bytes), 0);
        if (!decoded.empty() && decoded[0].valid) found.emplace(isa::base_mnemonic(decoded[0].mnemonic));
      }
  return found;
}

// What the executor does not have, as beginnings of mnemonics. docs/execution.md says why.
constexpr std::string_view not_modelled[] = {
    "buffer_load_format_",
    "buffer_store_format_",
    "tbuffer_", // typed buffer accesses
    "s_buffer_store_",
    "s_scratch_",
    "s_atomic_",
    "s_buffer_atomic_",
    "s_dcache_discard",
    "s_atc_probe", // no compiler emits these for gfx942 or gfx950
    "s_cbranch_cdbg",
    "s_cbranch_g_fork",
    "s_cbranch_i_fork",
    "s_cbranch_join",
    "s_setvskip",
    "s_setkill",
    "s_rfe_",
    "s_ttracedata",
    "s_endpgm_ordered_ps_done",
    "v_clrexcp", // debuggers, traps, graphics
    "s_sendmsg",
    "s_wakeup",
    "scratch_load_lds_",
    "ds_condxchg32_rtn_b64",
    "v_mfma_ld_scale_b32",
    "v_screen_partition_4se_b32",
};
bool listed(std::string_view mnemonic) {
  for (const std::string_view start : not_modelled)
    if (mnemonic.starts_with(start)) return true;
  return false;
}

} // namespace

TEST_CASE("every instruction that LLVM decodes is modelled or listed as not modelled") {
  for (const char* arch : {"gfx942", "gfx950"}) {
    const isa::TargetFacts& target = isa::target_facts(arch);
    const std::set<std::string> all = mnemonics_of(target);
    CHECK(all.size() > 1000);
    std::size_t modelled = 0;
    for (const std::string& m : all) {
      CAPTURE(m);
      const bool known = exec::find_semantics(m, false, target.fp8 == isa::Fp8Format::fnuz) != nullptr;
      CHECK(known != listed(m));
      if (known) ++modelled;
    }
    MESSAGE(fmt::format("{}: {} of {} instructions modelled", arch, modelled, all.size()));
  }
}

} // namespace coverage_test
