// Specs of attention and inputs for them.
#include "tests/attention/attention_cases.h"
#include "gen/error.h"
#include "gen/reference/evaluate_bounds.h"
#include "gen/reference/random_spec.h"
#include "runtime/launch/emulated/emulate.h"
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

} // namespace

KernelSpec attention_spec(const AttentionCase& c) {
  const Dim sequences = dynamic("sequences");
  Shape rows = {sequences, c.heads, c.d}, one_a_sequence = {sequences, 1, 1};
  if (c.tokens > 1) rows.insert(rows.begin() + 1, c.tokens), one_a_sequence.insert(one_a_sequence.begin() + 1, 1);
  const Expr q = input("q", c.type, rows), lengths = input("lengths", i32, one_a_sequence);
  const Shape cache = c.page ? Shape{dynamic("pages_of_all"), c.page, c.kv_heads, c.d} : Shape{sequences, c.keys, c.kv_heads, c.d};
  const Expr k = input("k", c.cache, cache), v = input("v", c.cache, cache);
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
  spec.output("o", c.type, attention(scores, v, lengths));
  if (c.log_sum_exp) spec.output("lse", f32, log_sum_exp(scores, lengths));
  return spec;
}

Inputs attention_inputs(const KernelSpec& spec, const AttentionCase& c, const std::vector<std::int64_t>& lengths, std::uint64_t seed) {
  const auto sequences = std::ssize(lengths);
  const std::int64_t pages_of_one = c.page ? c.keys / c.page : 0, pages = sequences * pages_of_one + 3;
  Inputs inputs = random_inputs(spec, seed, {.dynamic_size = sequences, .sizes = {{"pages_of_all", pages}}});
  for (std::int64_t s = 0; s < sequences; ++s)
    inputs.tensors.at("lengths").set_bits(s, static_cast<std::uint64_t>(lengths[static_cast<std::size_t>(s)]));
  const std::int64_t key = c.kv_heads * c.d;
  std::set<std::int64_t> used; // pages
  for (std::int64_t s = 0; s < sequences; ++s) {
    const std::int64_t length = lengths[static_cast<std::size_t>(s)];
    if (!c.page) {
      for (const char* name : {"k", "v"}) poison(inputs.tensors.at(name), (s * c.keys + length) * key, (c.keys - length) * key);
      continue;
    }
    Tensor& table = inputs.tensors.at("pages");
    for (std::int64_t p = 0; p < pages_of_one; ++p) { // from the last to the first, so that no order helps
      const std::int64_t page = p * c.page < length ? pages - 1 - (s * pages_of_one + p) : -1;
      table.set_bits(s * pages_of_one + p, static_cast<std::uint64_t>(page));
      if (page < 0) continue;
      used.insert(page);
      const std::int64_t there = std::min(c.page, length - p * c.page);
      for (const char* name : {"k", "v"}) poison(inputs.tensors.at(name), (page * c.page + there) * key, (c.page - there) * key);
    }
  }
  for (std::int64_t page = 0; c.page && page < pages; ++page)
    if (!used.contains(page))
      for (const char* name : {"k", "v"}) poison(inputs.tensors.at(name), page * c.page * key, c.page * key);
  return inputs;
}

BuiltKernel build_attention(const KernelSpec& spec, const Target& to, const std::vector<std::string>& settings) {
  CompileOptions compile;
  compile.environment = process_environment();
  compile.warnings_as_errors = true;
  return build_kernel(spec, to, compile, settings);
}

std::string wrong_attention(const KernelSpec& spec, const BuiltKernel& built, const Inputs& inputs, int interleavings) {
  const auto bounds = evaluate_bounds(spec, inputs, bounds_options(built.schedule));
  std::optional<Outputs> first;
  for (int seed = 1; seed <= interleavings; ++seed) {
    const EmulatedRun done =
        emulate(spec, built.source, built.object, inputs, {.seed = static_cast<std::uint64_t>(seed)}, seed == 1 ? 2 : 1);
    if (!done.result.defects.empty()) return exec::to_text(done.result.defects.front());
    if (!done.result.completed) return "did not complete";
    if (const auto mismatch = find_mismatch(done.outputs, bounds)) return to_text(*mismatch);
    if (!first) first = done.outputs;
    for (const auto& [name, tensor] : done.outputs)
      if (tensor.data() != first->at(name).data()) return fmt::format("output '{}' has other bits in interleaving {}", name, seed);
  }
  return "";
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
