// Target: the architecture that code is generated for, asked by capability and never by name.
#pragma once
#include "gen/spec/dtype.h"
#include <span>
#include <string>
#include <string_view>

namespace kiln {

class Target {
public:
  const std::string& arch() const { return arch_; } // "gfx942"
  int wave_size() const { return 64; }
  int compute_units() const { return compute_units_; } // of the largest part: MI300X, MI350X
  int xcds() const { return 8; }
  int lds_bytes() const { return lds_bytes_; }          // per CU and per workgroup
  int max_workgroup_size() const { return 1024; }
  DType fp8_e4m3() const { return fnuz_ ? DType::e4m3fnuz : DType::e4m3fn; } // the native one
  DType fp8_e5m2() const { return fnuz_ ? DType::e5m2fnuz : DType::e5m2; }
  DType fp8() const { return fp8_e4m3(); }
  bool has_native(DType type) const; // false for the fp8 flavour of the other architecture
  bool has_packed_bf16_convert() const { return !fnuz_; } // v_cvt_pk_bf16_f32
  bool has_wide_fp8_mfma() const { return !fnuz_; }       // v_mfma_f32_16x16x128_f8f6f4
  bool has_direct_to_lds() const { return !fnuz_; }       // global_load_lds_dwordx4
  bool has_dot2_bf16() const { return !fnuz_; }           // v_dot2_f32_bf16
  bool operator==(const Target&) const = default;

private:
  friend Target target(std::string_view arch);
  std::string arch_;
  int compute_units_ = 0, lds_bytes_ = 0;
  bool fnuz_ = false;
};

// "gfx942" or "gfx950", target features (":xnack-") not included. Throws UserError naming the known ones.
Target target(std::string_view arch);
std::span<const std::string_view> known_archs();

} // namespace kiln
