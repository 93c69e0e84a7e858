// Promises: what a schedule says about the ISA that the compiler makes of it. runtime/build/contract.h checks them.
#pragma once
#include "templates/common/config.h"
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kiln {

// Bytes that one lane moves with one instruction: every instruction moves `min_bytes` or more, except for `exceptions` of
// them, and `at_least` of them do. Zero fields promise nothing.
struct PromisedWidths {
  int min_bytes = 0;
  std::uint32_t exceptions = 0, at_least = 0;
};

// Every kernel also promises no scratch memory, and no spills but those that it says, which are moved outside of loops that load.
struct Promises {
  int max_vgprs = 0;       // of a wave, VGPRs and AGPRs together
  int max_lds_bytes = 0;   // of a workgroup
  int max_sgpr_spills = 0; // to lanes of VGPRs
  int max_vgpr_spills = 0; // to AGPRs
  PromisedWidths global_loads = {}, lds = {};
  std::vector<std::string> required = {}; // each is the beginning of some mnemonic
  // Each is the beginning of no mnemonic. The templates address device memory as such, and cross lanes by DPP: both cost an
  // instruction, while flat_ waits for LDS too and ds_bpermute costs the latency of LDS.
  std::vector<std::string> forbidden = {"flat_", "ds_bpermute", "ds_permute"};
  std::vector<std::string> no_findings = {}; // ids of lint rules that have nothing to say
  // In innermost loops with an instruction that begins with `in_loops_with`, as moves of spills; empty: in all that load.
  std::string in_loops_with = {};
  std::optional<std::uint32_t> max_loop_drains = {};     // waits for vmcnt(0) with something outstanding
  std::optional<std::uint32_t> min_bytes_in_flight = {}; // of a wave

  // No more than leave room for so many waves per SIMD; 0 promises nothing more.
  void limit_to_waves_per_eu(int waves) {
    if (waves > 0) max_vgprs = std::min(max_vgprs, vgprs_of_waves_per_eu(waves));
  }
};

} // namespace kiln
