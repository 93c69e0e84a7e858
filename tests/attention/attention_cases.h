// Specs of attention and inputs for them, built and executed on the CPU model and compared with the reference.
#pragma once
#include "gen/plan/target.h"
#include "gen/reference/evaluate.h"
#include "gen/spec/attention.h"
#include "gen/spec/math.h"
#include "gen/spec/spec.h"
#include "runtime/build/build_kernel.h"
#include "templates/attention_config.h"
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace kiln::testing {

// What a score expression is made of.
struct ScoreTerms {
  Expr product, key, head, sequence, query, lengths; // products of q and k times 1 / sqrt(d); positions
};
using Score = std::function<Expr(const ScoreTerms&)>;

// d of 576: one latent head, whose first 512 elements are the values.
struct AttentionCase {
  std::int64_t heads = 8, kv_heads = 2, tokens = 1, d = 128;
  DType type = f16, cache = f16;
  std::int64_t page = 0, keys = 160; // of a sequence, room
  Score score = [](const ScoreTerms& t) { return t.product; };
  bool log_sum_exp = false;
  KeyScale::Of k_scale = KeyScale::none, v_scale = KeyScale::none; // of the cache
  bool heads_first = false;                                        // outputs
};

KernelSpec attention_spec(const AttentionCase& c);

// Random numbers; keys and values that no length reaches are NaN, and so are pages that no sequence has.
Inputs attention_inputs(const KernelSpec& spec, const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed);

BuiltKernel build_attention(const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings = {"workgroups=7"});

// What is wrong: findings of the sanitisers, a result outside of its bounds, or in one of several interleavings other bits than in the
// first. Empty when all is right.
std::string wrong_attention(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs, int interleavings = 1);

Outputs outputs_of(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs);

// KILN_LINT_ALL is set: everything is tried on both architectures, else a slice.
bool compares_all();

// Build and run the case, and check that nothing is wrong: on one architecture, on both, and on one that `seed` chooses, or all.
void check_on(std::string_view arch, const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed = 1,
              const std::vector<std::string>& settings = {"workgroups=7"});
void check_everywhere(const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed = 1);
void check_somewhere(const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed,
                     const std::vector<std::string>& settings = {"workgroups=7"});

} // namespace kiln::testing
