// Target: the architecture that code is generated for, asked by capability and never by name.
#pragma once
#include "gen/spec/dtype.h"
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

// Capabilities have the names of templates/common/platform.h and of isa_checks/target/target_table.h. A test compares the three
// tables (tests/compile/target_tables.cpp).
class Target {
public:
  const std::string& arch() const { return arch_; }                                    // "gfx942"
  int compute_units() const { return facts_.compute_units; }                           // of the largest part: MI300X, MI350X
  int lds_bytes() const { return facts_.lds_bytes; }                                   // of a CU, also the most that one workgroup may have
  DType fp8_e4m3() const { return facts_.fnuz_fp8 ? DType::e4m3fnuz : DType::e4m3fn; } // the native one
  DType fp8_e5m2() const { return facts_.fnuz_fp8 ? DType::e5m2fnuz : DType::e5m2; }
  DType fp8() const { return fp8_e4m3(); }
  bool has_native(DType type) const;                                // false for the fp8 flavour of the other architecture
  bool has_scaled_mfma() const { return facts_.scaled_mfma; }       // v_mfma_f32_16x16x128_f8f6f4
  bool has_wide_lds_dma() const { return facts_.wide_lds_dma; }     // global_load_lds_dwordx4
  bool has_scaled_convert() const { return facts_.scaled_convert; } // v_cvt_scalef32_*
  bool has_dot2_bf16() const { return facts_.dot2_bf16; }           // v_dot2_f32_bf16
  bool has_permlane_swap() const { return facts_.permlane_swap; }   // v_permlane16_swap_b32, v_permlane32_swap_b32
  bool operator==(const Target&) const = default;

private:
  friend Target target(std::string_view arch);
  struct Facts {
    int compute_units, lds_bytes;
    bool fnuz_fp8, scaled_mfma, scaled_convert, wide_lds_dma, dot2_bf16, permlane_swap;
    bool operator==(const Facts&) const = default;
  };
  std::string arch_;
  Facts facts_{};
};

// "gfx942" or "gfx950", target features (":xnack-") not included. Throws UserError naming the known ones.
Target target(std::string_view arch);
std::span<const std::string_view> known_archs();

// As parse_dtype(text), and "fp8" is the target's own e4m3. What command lines and manifests take.
std::optional<DType> parse_dtype(std::string_view text, const Target& target);

} // namespace kiln
