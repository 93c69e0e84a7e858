// LDS banks: how many passes one access of a wave takes, by the architecture's service groups and banks.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace kiln::isa {

struct BankPasses {
  std::uint32_t needed = 0; // passes (cycles of the LDS's data path)
  std::uint32_t ideal = 0;  // passes without a conflict: one for each service group with an active lane
  int worst = 0;            // passes of the worst group: 2 is a two-way conflict
};

// `addresses`: of the 64 lanes, in bytes; `active`: the lanes that access. `bytes` a lane: 1, 2, 4, 8, 12 or 16; for read2
// and write2 call this once for each half. `read_banks` is TargetFacts::lds_read_banks. Atomics count as reads.
// Lanes that touch the same dword share it.
BankPasses lds_bank_passes(int read_banks, bool store, int bytes, std::span<const std::uint64_t, 64> addresses, std::uint64_t active);

// Says where the groups and banks of an access come from: "documented" (AMD), "measured" (HipKittens, on gfx950), or "assumed" from
// older parts, for widths that nobody has published.
std::string_view lds_bank_source(int read_banks, bool store, int bytes);

} // namespace kiln::isa
