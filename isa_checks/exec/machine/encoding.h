// The bit fields of one machine instruction, by its encoding format (the instruction set manual's chapter "Microcode
// Formats"). Only the mnemonic comes from LLVM; nothing here depends on LLVM's opcode numbers or operand order.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::exec {

// As the instruction set manual calls them.
using u16 = std::uint16_t;
using i16 = std::int16_t;
using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

enum class Format : std::uint8_t {
  sop1,
  sop2,
  sopk,
  sopc,
  sopp,
  smem,
  vop1,
  vop2,
  vopc,
  vop3,
  vop3p,
  mai,
  ds,
  flat,
  mubuf,
  mtbuf,
  unknown
};

// InstOperand numbers as the encoding has them: 0-127 scalar registers, 128-254 constants, 255 literal, 256-511 vector registers.
namespace code {
inline constexpr std::uint16_t scalar_registers = 128; // lower numbers are registers
inline constexpr std::uint16_t flat_scratch = 102, vcc = 106, m0 = 124, exec = 126, zero = 128;
inline constexpr std::uint16_t vccz = 251, execz = 252, scc = 253, literal = 255, vgpr = 256;
} // namespace code

struct Sdwa { // sub-dword addressing: select codes 0-3 byte, 4-5 word, 6 dword
  bool present;
  std::uint8_t dst_sel, dst_unused, src_sel[2];
  bool sext[2];
};
struct Dpp {
  bool present, bound_ctrl;
  std::uint16_t control;
  std::uint8_t bank_mask, row_mask;
};

struct Fields {
  Format format = Format::unknown;
  std::uint8_t size = 0;         // bytes
  std::uint16_t dst = 0;         // vdst or sdst, without the 256 of a vector register
  std::uint16_t sdst = 0;        // mask destination of VOP3B and of VOPC with SDWA
  std::uint16_t src[3] = {};     // operand numbers; for DS and memory formats: address, data0, data1 (vector)
  std::uint8_t source_count = 0; // sources that the format has
  std::uint32_t literal = 0;
  std::uint8_t neg = 0, abs = 0; // a bit a source; in VOP3P neg is neg_lo and abs is neg_hi
  std::uint8_t op_sel = 0, op_sel_hi = 0;
  std::uint8_t omod = 0;
  bool clamp = false;
  Sdwa sdwa{};
  Dpp dpp{};
  std::uint16_t simm16 = 0;
  // memory
  std::int32_t offset = 0;
  std::uint8_t offset0 = 0, offset1 = 0;
  std::uint16_t saddr = 0; // scalar base, 0x7f: none
  std::uint16_t soffset = 0;
  std::uint8_t segment = 0; // 0 flat, 1 scratch, 2 global
  bool acc = false;         // data registers are accumulation registers
  bool lds = false, gds = false, idxen = false, offen = false, imm = false, soe = false, sc0 = false, sc1 = false, nt = false;
  // MAI
  std::uint8_t cbsz = 0, abid = 0, blgp = 0, acc_src = 0;
  bool acc_cd = false;
  std::uint32_t prefix[2] = {}; // the scale words before an MFMA that has them (gfx950)
};

// Takes the fields from the words at an instruction; `mnemonic` only tells matrix instructions from packed ones.
// A format that this does not know comes back as Format::unknown.
Fields decode_fields(std::span<const std::uint32_t> words, std::string_view mnemonic);

} // namespace kiln::exec
