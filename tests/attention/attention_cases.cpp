// Specs of attention and inputs for them.
#include "tests/attention/attention_cases.h"
#include "gen/error.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_inputs.h"
#include "runtime/launch/emulated/emulate.h"
#include "tests/numeric/check_kernel.h"
#include <cmath>
#include <cstdlib>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <limits>
#include <set>

namespace kiln::testing {
namespace {

bool may_be_nan(DType type) { return is_float(type); }

void poison(Tensor& tensor, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = first; i < first + count && may_be_nan(tensor.dtype()); ++i) tensor.set(i, std::numeric_limits<float>::quiet_NaN());
}

Expr scaled(const Expr& cache, KeyScale::Of of, const char* name) {
  const Shape& full = cache.shape();
  switch (of) {
  case KeyScale::none: return cache;
  case KeyScale::all: return cache * input(name, f32, {});
  case KeyScale::head: return cache * input(name, f32, {full[2], 1});
  case KeyScale::key: return input(name, f32, {full[0], full[1], 1, 1}) * cache;
  case KeyScale::key_and_head: return cache * input(name, f32, {full[0], full[1], full[2], 1});
  }
  throw InternalError("unknown KeyScale");
}

} // namespace

KernelSpec attention_spec(const AttentionCase& c) {
  const Dim sequences = dynamic("sequences");
  Shape rows = {sequences, c.heads, c.d}, one_a_sequence = {sequences, 1, 1};
  if (c.tokens > 1) rows.insert(rows.begin() + 1, c.tokens), one_a_sequence.insert(one_a_sequence.begin() + 1, 1);
  const Expr q = input("q", c.type, rows), lengths = input("lengths", i32, one_a_sequence);
  const Shape cache = c.page ? Shape{dynamic("pages_of_all"), c.page, c.kv_heads, c.d} : Shape{sequences, c.keys, c.kv_heads, c.d};
  const bool latent = c.d == 576;
  const Expr k = scaled(input("k", c.cache, cache), c.k_scale, "k_scale");
  const Expr v = latent ? columns(k, 0, 512) : scaled(input("v", c.cache, cache), c.v_scale, "v_scale");
  const Expr products = c.page ? attention_scores(q, k, input("pages", i32, {sequences, c.keys / c.page})) : attention_scores(q, k);
  const Expr token = c.tokens > 1 ? iota({c.tokens, 1, 1}) : Expr(0.0);
  const ScoreTerms terms{.product = products * (1 / std::sqrt(static_cast<double>(c.d))),
                         .key = c.keys > 1 ? iota({c.keys}) : Expr(0.0),
                         .head = c.heads > 1 ? iota({c.heads, 1}) : Expr(0.0),
                         .sequence = iota(one_a_sequence),
                         .query = lengths - static_cast<double>(c.tokens) + token,
                         .lengths = lengths};
  const Expr scores = c.score(terms);
  KernelSpec spec("attention_case");
  const auto ordered = [&](const Expr& x) { return c.heads_first ? heads_first(x) : x; };
  spec.output("o", c.type, ordered(attention(scores, v, lengths)));
  if (c.log_sum_exp) spec.output("lse", f32, ordered(log_sum_exp(scores, lengths)));
  return spec;
}

Inputs attention_inputs(const KernelSpec& spec, const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
  const auto sequences = std::ssize(lengths);
  const std::int64_t pages_of_one = c.page ? c.keys / c.page : 0, pages = sequences * pages_of_one + 3;
  Inputs inputs = random_inputs(spec, seed, {.dynamic_size = sequences, .sizes = {{"pages_of_all", pages}}});
  for (std::int64_t s = 0; s < sequences; ++s)
    inputs.tensors.at("lengths").set_bits(s, static_cast<std::uint64_t>(lengths[static_cast<std::size_t>(s)]));
  std::set<std::int64_t> keys_with_numbers; // counted through the cache
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t length = lengths[static_cast<std::size_t>(s)];
    for (std::int64_t key = 0; !c.page && key < length; ++key) keys_with_numbers.insert(s * c.keys + key);
    for (std::int64_t p = 0; p < pages_of_one; ++p) { // from the last to the first, so that no order helps
      const std::int64_t page = p * c.page < length ? pages - 1 - (s * pages_of_one + p) : -1;
      inputs.tensors.at("pages").set_bits(s * pages_of_one + p, static_cast<std::uint64_t>(page));
      for (std::int64_t key = p * c.page; page >= 0 && key < std::min(length, (p + 1) * c.page); ++key)
        keys_with_numbers.insert(page * c.page + key % c.page);
    }
  }
  for (const char* name : {"k", "v", "k_scale", "v_scale"}) {
    const auto found = inputs.tensors.find(name);
    if (found == inputs.tensors.end()) continue;
    Tensor& tensor = found->second;
    const bool of_keys = tensor.shape().size() == 4;
    const std::int64_t keys = of_keys ? tensor.shape()[0] * tensor.shape()[1] : 0, each = of_keys && keys ? tensor.size() / keys : 0;
    if (name[1]) // as quantisation makes them
      for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.set(i, 0.004f * (1 + std::fabs(tensor.at(i))));
    for (std::int64_t key = 0; key < keys; ++key)
      if (!keys_with_numbers.contains(key)) poison(tensor, key * each, each);
  }
  return inputs;
}

BuiltKernel build_attention(const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings) {
  CompileOptions compile = own_process_options(process_environment());
  compile.warnings_as_errors = true;
  return build_kernel(spec, to, compile, settings);
}

std::string wrong_attention(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs, int interleavings) {
  if (const auto wrong = testing::check_orders(spec, built, inputs, {.count = 1, .launches = 2})) return *wrong;
  if (interleavings == 1) return "";
  return testing::check_orders(spec, built, inputs, {.count = static_cast<std::uint64_t>(interleavings)}).value_or("");
}

Outputs outputs_of(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs) {
  return emulate(spec, built.source, built.object, inputs).outputs;
}

bool compares_all() { return std::getenv("KILN_LINT_ALL") != nullptr; }

void check_on(std::string_view arch, const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed,
              const std::vector<std::string>& settings) {
  const KernelSpec spec = attention_spec(c);
  try {
    const BuiltKernel built = build_attention(spec, target(arch), settings);
    const std::string wrong = wrong_attention(spec, built, attention_inputs(spec, c, lengths, seed));
    CHECK_MESSAGE(wrong.empty(), arch, " ", seed, ": ", wrong, "\n", to_text(built.schedule), to_text(spec));
  } catch (const Error& error) {
    FAIL_CHECK(arch, " ", seed, ": ", std::string(error.what()), "\n", to_text(spec)); // and on to the next one
  }
}

void check_everywhere(const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
  for (const std::string_view arch : known_archs()) check_on(arch, c, lengths, seed);
}

void check_somewhere(const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed,
                     const std::vector<std::string>& settings) {
  const auto archs = known_archs();
  for (std::size_t i = 0; i < archs.size(); ++i)
    if (compares_all() || seed % archs.size() == i) check_on(archs[i], c, lengths, seed, settings);
}

} // namespace kiln::testing
