// Field extraction for every encoding format of gfx942 and gfx950.
#include "isa_checks/exec/machine/encoding.h"
#include <array>

namespace kiln::exec {
namespace {

using Words = std::span<const std::uint32_t>;

template <class T = std::uint32_t> T bits(std::uint32_t word, int high, int low) {
  return static_cast<T>((word >> low) & ((2ULL << (high - low)) - 1));
}
bool bit(std::uint32_t word, int at) { return ((word >> at) & 1U) != 0; }
std::uint32_t word_at(Words words, std::size_t i) { return i < words.size() ? words[i] : 0; }

// Source 255 takes the word after the instruction.
void take_literal(Fields& f, Words words) {
  for (int i = 0; i < f.source_count; ++i)
    if (f.src[i] == code::literal && f.size == 4) {
      f.literal = word_at(words, 1);
      f.size = 8;
    }
}

Fields scalar_format(Words words) {
  const std::uint32_t w = words[0];
  Fields f;
  f.size = 4;
  f.dst = bits<std::uint16_t>(w, 22, 16);
  f.src[0] = bits<std::uint16_t>(w, 7, 0);
  f.src[1] = bits<std::uint16_t>(w, 15, 8);
  f.simm16 = bits<std::uint16_t>(w, 15, 0);
  switch (bits(w, 31, 23)) {
  case 0x17d:
    f.format = Format::sop1;
    f.source_count = 1;
    break;
  case 0x17e:
    f.format = Format::sopc;
    f.source_count = 2;
    break;
  case 0x17f: f.format = Format::sopp; break;
  default: f.format = bits(w, 31, 28) == 0xb ? Format::sopk : Format::sop2; f.source_count = f.format == Format::sop2 ? 2 : 0;
  }
  take_literal(f, words);
  if (f.format == Format::sopk && bits(w, 27, 23) == 20) { // s_setreg_imm32_b32
    f.literal = word_at(words, 1);
    f.size = 8;
  }
  return f;
}

void take_sdwa(Fields& f, std::uint32_t w) {
  f.sdwa.present = true;
  f.src[0] = static_cast<std::uint16_t>(bits(w, 7, 0) + (bit(w, 23) ? 0 : code::vgpr));
  if (f.source_count > 1 && bit(w, 31)) f.src[1] = static_cast<std::uint16_t>(f.src[1] - code::vgpr);
  if (f.format == Format::vopc) {
    f.sdst = bit(w, 15) ? bits<std::uint16_t>(w, 14, 8) : code::vcc;
  } else {
    f.sdwa.dst_sel = bits<std::uint8_t>(w, 10, 8);
    f.sdwa.dst_unused = bits<std::uint8_t>(w, 12, 11);
    f.clamp = bit(w, 13);
    f.omod = bits<std::uint8_t>(w, 15, 14);
  }
  f.sdwa.src_sel[0] = bits<std::uint8_t>(w, 18, 16);
  f.sdwa.src_sel[1] = bits<std::uint8_t>(w, 26, 24);
  f.sdwa.sext[0] = bit(w, 19);
  f.sdwa.sext[1] = bit(w, 27);
  f.neg = static_cast<std::uint8_t>(bits(w, 20, 20) | bits(w, 28, 28) << 1);
  f.abs = static_cast<std::uint8_t>(bits(w, 21, 21) | bits(w, 29, 29) << 1);
}

void take_dpp(Fields& f, std::uint32_t w) {
  f.dpp = {true, bit(w, 19), bits<std::uint16_t>(w, 16, 8), bits<std::uint8_t>(w, 27, 24), bits<std::uint8_t>(w, 31, 28)};
  f.src[0] = static_cast<std::uint16_t>(bits(w, 7, 0) + code::vgpr);
  f.neg = static_cast<std::uint8_t>(bits(w, 20, 20) | bits(w, 22, 22) << 1);
  f.abs = static_cast<std::uint8_t>(bits(w, 21, 21) | bits(w, 23, 23) << 1);
}

// VOP1, VOP2, VOPC and what follows them: a literal, SDWA or DPP word.
Fields vector_format(Words words, std::string_view mnemonic) {
  const std::uint32_t w = words[0];
  Fields f;
  f.size = 4;
  f.src[0] = bits<std::uint16_t>(w, 8, 0);
  f.src[1] = static_cast<std::uint16_t>(bits(w, 16, 9) + code::vgpr);
  f.dst = bits<std::uint16_t>(w, 24, 17);
  f.sdst = code::vcc;
  f.format = bits(w, 31, 25) == 0x3f ? Format::vop1 : bits(w, 31, 25) == 0x3e ? Format::vopc : Format::vop2;
  f.source_count = f.format == Format::vop1 ? 1 : 2;
  const bool madmk = mnemonic.ends_with("mk_f32") || mnemonic.ends_with("mk_f16");
  const bool madak = mnemonic.ends_with("ak_f32") || mnemonic.ends_with("ak_f16");
  if (f.src[0] == 249 || f.src[0] == 250) {
    f.size = 8;
    f.src[0] == 249 ? take_sdwa(f, word_at(words, 1)) : take_dpp(f, word_at(words, 1));
  } else if (f.format == Format::vop2 && (madmk || madak)) { // D = S0 * K + S1, D = S0 * S1 + K
    f.source_count = 3;
    f.src[2] = madak ? code::literal : f.src[1];
    if (madmk) f.src[1] = code::literal;
    f.literal = word_at(words, 1);
    f.size = 8;
  } else {
    take_literal(f, words);
  }
  return f;
}

Fields vop3_format(Words words, std::string_view mnemonic) {
  const std::uint32_t w = words[0], w1 = word_at(words, 1);
  Fields f;
  f.size = 8;
  f.dst = bits<std::uint16_t>(w, 7, 0);
  f.src[0] = bits<std::uint16_t>(w1, 8, 0);
  f.src[1] = bits<std::uint16_t>(w1, 17, 9);
  f.src[2] = bits<std::uint16_t>(w1, 26, 18);
  f.source_count = 3;
  f.neg = bits<std::uint8_t>(w1, 31, 29);
  f.abs = bits<std::uint8_t>(w, 10, 8);
  if (bits(w, 31, 26) == 0x34 && bits(w, 31, 23) != 0x1a7) {
    f.format = Format::vop3;
    f.sdst = bits<std::uint16_t>(w, 14, 8); // VOP3B only; the others have op_sel and abs there
    f.op_sel = bits<std::uint8_t>(w, 14, 11);
    f.clamp = bit(w, 15);
    f.omod = bits<std::uint8_t>(w1, 28, 27);
    return f;
  }
  const bool matrix = mnemonic.starts_with("v_mfma") || mnemonic.starts_with("v_smfmac") || mnemonic.starts_with("v_accvgpr");
  f.format = matrix ? Format::mai : Format::vop3p;
  f.op_sel = bits<std::uint8_t>(w, 13, 11);
  f.op_sel_hi = static_cast<std::uint8_t>(bits(w1, 28, 27) | bits(w, 14, 14) << 2);
  f.clamp = bit(w, 15);
  if (matrix) {
    f.acc_cd = bit(w, 15);
    f.abid = bits<std::uint8_t>(w, 14, 11);
    f.cbsz = bits<std::uint8_t>(w, 10, 8);
    f.blgp = bits<std::uint8_t>(w1, 31, 29);
    f.acc_src = bits<std::uint8_t>(w1, 28, 27);
  }
  return f;
}

// A scaled MFMA of gfx950: two words with the scales, then the MFMA itself.
Fields scaled_mfma_format(Words words, std::string_view mnemonic) {
  Fields f = vop3_format(words.size() > 2 ? words.subspan(2) : words, mnemonic);
  f.prefix[0] = words[0];
  f.prefix[1] = word_at(words, 1);
  f.size = 16;
  return f;
}

Fields smem_format(Words words) {
  const std::uint32_t w = words[0], w1 = word_at(words, 1);
  Fields f;
  f.format = Format::smem;
  f.size = 8;
  f.dst = bits<std::uint16_t>(w, 12, 6);
  f.saddr = static_cast<std::uint16_t>(bits(w, 5, 0) * 2);
  f.soe = bit(w, 14);
  f.sc0 = bit(w, 16);
  f.imm = bit(w, 17);
  f.offset = static_cast<std::int32_t>(bits(w1, 20, 0) << 11) >> 11;
  // Without an immediate the low field names the offset register; with SOE it is in the top bits.
  f.soffset = f.soe ? bits<std::uint16_t>(w1, 31, 25) : bits<std::uint16_t>(w1, 7, 0);
  return f;
}

Fields ds_format(Words words) {
  const std::uint32_t w = words[0], w1 = word_at(words, 1);
  Fields f;
  f.format = Format::ds;
  f.size = 8;
  f.acc = bit(w, 25);
  f.gds = bit(w, 16);
  f.offset0 = bits<std::uint8_t>(w, 7, 0);
  f.offset1 = bits<std::uint8_t>(w, 15, 8);
  f.offset = static_cast<std::int32_t>(bits(w, 15, 0));
  f.src[0] = bits<std::uint16_t>(w1, 7, 0);
  f.src[1] = bits<std::uint16_t>(w1, 15, 8);
  f.src[2] = bits<std::uint16_t>(w1, 23, 16);
  f.dst = bits<std::uint16_t>(w1, 31, 24);
  return f;
}

Fields flat_format(Words words) {
  const std::uint32_t w = words[0], w1 = word_at(words, 1);
  Fields f;
  f.format = Format::flat;
  f.size = 8;
  f.sc1 = bit(w, 25);
  f.nt = bit(w, 17);
  f.sc0 = bit(w, 16);
  f.segment = bits<std::uint8_t>(w, 15, 14);
  f.offen = bit(w, 13); // scratch: a vector address is added
  const std::uint32_t offset = bits(w, 12, 0);
  // Flat offsets are unsigned 12-bit, the others signed 13-bit.
  f.offset = f.segment == 0 ? static_cast<std::int32_t>(offset & 0xfffU) : static_cast<std::int32_t>(offset << 19) >> 19;
  f.src[0] = bits<std::uint16_t>(w1, 7, 0);
  f.src[1] = bits<std::uint16_t>(w1, 15, 8);
  f.saddr = bits<std::uint16_t>(w1, 22, 16);
  f.acc = bit(w1, 23);
  f.dst = bits<std::uint16_t>(w1, 31, 24);
  return f;
}

Fields mubuf_format(Words words) {
  const std::uint32_t w = words[0], w1 = word_at(words, 1);
  Fields f;
  f.format = bits(w, 31, 26) == 0x38 ? Format::mubuf : Format::mtbuf;
  f.size = 8;
  f.offset = static_cast<std::int32_t>(bits(w, 11, 0));
  f.offen = bit(w, 12);
  f.idxen = bit(w, 13);
  f.sc0 = bit(w, 14);
  f.sc1 = bit(w, 15);
  f.lds = bit(w, 16);
  f.nt = bit(w, 17);
  f.src[0] = bits<std::uint16_t>(w1, 7, 0);
  f.src[1] = bits<std::uint16_t>(w1, 15, 8);
  f.dst = f.src[1];
  f.saddr = static_cast<std::uint16_t>(bits(w1, 20, 16) * 4);
  f.acc = bit(w1, 23);
  f.soffset = bits<std::uint16_t>(w1, 31, 24);
  return f;
}

} // namespace

Fields decode_fields(Words words, std::string_view mnemonic) {
  if (words.empty()) return {};
  const std::uint32_t w = words[0];
  if (!bit(w, 31)) return vector_format(words, mnemonic);
  if (bits(w, 31, 30) == 2) return scalar_format(words);
  switch (bits(w, 31, 26)) {
  case 0x30: return smem_format(words);
  case 0x34: return mnemonic.starts_with("v_mfma_scale") ? scaled_mfma_format(words, mnemonic) : vop3_format(words, mnemonic);
  case 0x36: return ds_format(words);
  case 0x37: return flat_format(words);
  case 0x38:
  case 0x3a: return mubuf_format(words);
  default: return {};
  }
}

} // namespace kiln::exec
