// Target: the architecture that code is generated for, asked by capability and never by name, the chip that schedules are made
// for, and whether they are to be batch-invariant.
#pragma once
#include "gen/spec/dtype.h"
#include "machine/chip.h"
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// A row of machine/arch.h and one of machine/chip.h.
class Target {
public:
  Target(const machine::Arch& arch, const machine::Chip& chip) : name_(arch.name), arch_(arch), chip_(chip) {}
  const std::string& arch() const { return name_; } // "gfx942"
  const machine::Chip& chip() const { return chip_; }
  // "mi308x", if schedules are made for it and not for the largest chip of the architecture; else empty.
  std::string own_chip() const;
  int compute_units() const { return chip_.cus; }
  // Whether the bits of a row are to depend on its own inputs alone, whatever else is in the batch: docs/batch_invariance.md.
  bool batch_invariant() const { return batch_invariant_; }
  Target with_batch_invariance(bool wanted = true) const;
  int lds_bytes() const { return arch_.lds_bytes; }                                   // of a CU, also the most that one workgroup may have
  DType fp8_e4m3() const { return has_fnuz_fp8() ? DType::e4m3fnuz : DType::e4m3fn; } // the native one
  DType fp8_e5m2() const { return has_fnuz_fp8() ? DType::e5m2fnuz : DType::e5m2; }
  DType fp8() const { return fp8_e4m3(); }
  bool has_native(DType type) const; // false for the fp8 flavour of the other architecture
  bool has_scaled_mfma() const { return arch_.scaled_mfma; }
  bool has_wide_lds_dma() const { return arch_.wide_lds_dma; }
  bool has_scaled_convert() const { return arch_.scaled_convert; }
  bool has_dot2_bf16() const { return arch_.dot2_bf16; }
  bool has_permlane_swap() const { return arch_.permlane_swap; }
  bool operator==(const Target& other) const {
    return name_ == other.name_ && chip_.name == other.chip_.name && batch_invariant_ == other.batch_invariant_;
  }

private:
  bool has_fnuz_fp8() const { return arch_.fp8 == machine::Fp8Format::fnuz; }
  std::string name_;
  machine::Arch arch_;
  machine::Chip chip_;
  bool batch_invariant_ = false;
};

// "gfx942" or "gfx950", target features (":xnack-") not included: schedules are made for its largest chip. Or a chip, "mi308x". One with
// as many CUs as the largest is taken for that one, so that both share cache entries. Throws UserError naming the known ones.
Target target(std::string_view arch_or_chip);
std::span<const std::string_view> known_archs();

// As parse_dtype(text), and "fp8" is the target's own e4m3. What command lines and manifests take.
std::optional<DType> parse_dtype(std::string_view text, const Target& target);

} // namespace kiln
