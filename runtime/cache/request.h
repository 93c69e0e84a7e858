// KernelRequest: all that decides which code comes out of Kiln, and CacheKey, its name in a cache.
#pragma once
#include "gen/plan/target.h"
#include "gen/spec/spec.h"
#include "runtime/compile/compile.h"
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

struct KernelRequest {
  std::string spec;                   // canonical text, to_text(KernelSpec)
  std::string arch;                   // "gfx942"
  std::string chip = {};              // Target::own_chip(): "mi308x", or empty
  bool batch_invariant = false;       // Target::batch_invariant()
  std::vector<std::string> overrides; // of the schedule, "vec=4"; sorted
  // How many of the cost model's first schedules are simulated, of which the quickest is taken; 1: the first. Not in the key: what is
  // compiled ahead of time is found by a Jit that would have taken the first.
  int simulated = 1;
  CompileOptions options;
};

KernelRequest kernel_request(const KernelSpec& spec, const Target& target, std::vector<std::string> overrides,
                             const CompileOptions& options);
Target target_of(const KernelRequest& request);
std::string kernel_name(std::string_view spec); // the second word of its text
inline std::string kernel_name(const KernelRequest& request) { return kernel_name(request.spec); }

// The canonical fields by name, and the SHA-256 of all of them. Two keys are the same only if all fields are; the digest is a
// name, never the proof. There is no path, no time and no machine in it, so that a cache can be carried elsewhere.
struct CacheKey {
  std::vector<std::pair<std::string, std::string>> fields;
  std::string hex; // 64 digits
  bool operator==(const CacheKey&) const = default;
};

// The final source is a function of the spec, the overrides and Kiln's generator; with generator_hash() in the key nothing has
// to be planned or emitted to look a kernel up. `compiler` is a compiler_identity, or empty for a key that only
// names the work (shards of `kiln aot`).
CacheKey cache_key(const KernelRequest& request, std::string_view compiler);
std::string digest_of(const std::vector<std::pair<std::string, std::string>>& fields); // CacheKey::hex
std::string field_of(const CacheKey& key, std::string_view name);                      // empty when there is none

// SHA-256 over the sources of everything between a spec and a verdict (gen/, templates/, isa_checks/, the contract, the
// compiler's driver), taken when Kiln was built. Names relative to the source tree: equal for equal trees.
std::string_view generator_hash();

// The number of the layout of entries and folders. An entry of another format is never read.
inline constexpr int cache_format = 1;

} // namespace kiln
