// HighSources: sources of f8f6f4 matrix instructions in the last vector registers, which LLVM does not decode.
#pragma once
#include <array>
#include <cstdint>
#include <llvm/MC/MCInst.h>
#include <llvm/MC/MCRegisterInfo.h>
#include <optional>
#include <span>

namespace kiln::isa {

// LLVM 20 to 22 decode both sources of V_MFMA_F32_{16X16X128,32X32X64}_F8F6F4 as eight registers, and take less only afterwards: four of
// FP4, six of FP6. So v[250:253], which LLVM itself gives to FP4, does not decode. Such an instruction is decoded with its sources eight
// registers lower, which are raised again.
class HighSources {
public:
  static constexpr unsigned lower_by = 8; // registers; even, as pairs of registers begin at even ones
  static constexpr std::size_t longest = 16;

  struct Lowered {
    std::array<std::uint8_t, longest> bytes{}; // the instruction with lower sources
    std::size_t size = 0;
    std::array<bool, 2> sources{}; // which of them
  };

  explicit HighSources(const llvm::MCRegisterInfo& registers) : registers_(registers) {}
  // Nothing for what is no such instruction.
  static std::optional<Lowered> lowered(std::span<const std::uint8_t> code);
  // Puts the registers of an instruction that was decoded from `lowered` where they are. False: there are none, the encoding is wrong.
  bool raise(llvm::MCInst& inst, const Lowered& lowered) const;

private:
  const llvm::MCRegisterInfo& registers_;
};

} // namespace kiln::isa
