// Caches and outputs of attention, executed: one latent head, scales of heads and keys, pages smaller than a tile, outputs by heads.
#include "gen/catalog/catalog.h"
#include "gen/families/schedule.h"
#include "gen/plan/attention_parts.h"
#include "tests/attention/attention_cases.h"
#include <doctest/doctest.h>
#include <fmt/format.h>

namespace attention_caches_tests {
using namespace kiln;
using namespace kiln::testing;

namespace {

// The seeds of a slice; all are tried with KILN_LINT_ALL.
bool is_tried(std::uint64_t seed, std::uint64_t of) { return compares_all() || seed % of == 0; }

} // namespace

TEST_CASE("one latent head of 576, whose first 512 are the values") {
  check_somewhere({.heads = 16, .kv_heads = 1, .d = 576, .type = bf16, .cache = bf16, .keys = 96}, {0, 1, 17, 96}, 60);
  if (!compares_all()) return;
  check_everywhere({.heads = 5, .kv_heads = 1, .d = 576, .page = 64, .keys = 192, .log_sum_exp = true}, {0, 64, 65, 192}, 62);
  check_everywhere({.heads = 64, .kv_heads = 1, .d = 576, .type = bf16, .cache = bf16, .page = 1, .keys = 70}, {70, 3}, 63);
  for (const std::string_view arch : known_archs())
    check_on(arch, {.heads = 16, .kv_heads = 1, .d = 576, .cache = target(arch).fp8(), .page = 16, .keys = 96, .k_scale = KeyScale::key},
             {5, 96}, 64);
}

TEST_CASE("scales of a cache: of a tensor, a head, a key, a key's head") {
  using enum KeyScale::Of;
  std::uint64_t seed = 70;
  for (const std::string_view arch : known_archs())
    for (const DType cache : {target(arch).fp8_e4m3(), target(arch).fp8_e5m2(), i8})
      for (const auto& [k, v] : {std::pair{all, key_and_head}, {head, key}, {key, head}, {key_and_head, all}, {none, key_and_head}})
        if (is_tried(++seed, 29))
          check_on(arch,
                   {.heads = 6,
                    .kv_heads = 3,
                    .d = seed % 2 ? 64 : 192,
                    .type = seed % 3 ? f16 : bf16,
                    .cache = cache,
                    .page = seed % 4 ? 0 : 16,
                    .keys = 96,
                    .k_scale = k,
                    .v_scale = v},
                   {0, 1, 70, 96}, seed);
}

TEST_CASE("pages of 1, 2, 4 and 8 keys") {
  std::uint64_t seed = 110;
  for (const std::int64_t page : {1, 2, 4, 8}) {
    CAPTURE(page);
    const AttentionCase c{.heads = 4, .kv_heads = 2, .d = 64, .page = page, .keys = 72, .log_sum_exp = true};
    if (is_tried(++seed, 4)) check_somewhere(c, {0, 1, 2, 7, 8, 9, 33, 72}, seed);
  }
  if (compares_all())
    check_everywhere({.heads = 2,
                      .kv_heads = 1,
                      .d = 128,
                      .cache = i8,
                      .page = 2,
                      .keys = 300,
                      .k_scale = KeyScale::key_and_head,
                      .v_scale = KeyScale::key},
                     {300, 31}, 120);
}

TEST_CASE("outputs by heads: [heads, sequences, d], and their log-sum-exp") {
  check_somewhere({.heads = 4, .kv_heads = 2, .d = 80, .keys = 48, .log_sum_exp = true, .heads_first = true}, {0, 48, 17}, 130);
  if (compares_all())
    check_everywhere({.heads = 6, .kv_heads = 2, .tokens = 3, .d = 64, .keys = 48, .log_sum_exp = true, .heads_first = true}, {3, 48}, 131);
}

TEST_CASE("the text of caches and orders is read back") {
  for (const AttentionCase& c : {AttentionCase{.heads = 16, .kv_heads = 1, .d = 576},
                                 AttentionCase{.cache = i8, .page = 8, .k_scale = KeyScale::key, .v_scale = KeyScale::key_and_head},
                                 AttentionCase{.tokens = 2, .log_sum_exp = true, .heads_first = true}}) {
    const KernelSpec spec = attention_spec(c);
    CHECK(parse_spec(to_text(spec)) == spec);
  }
  CHECK(to_text(attention_spec({.heads = 16, .kv_heads = 1, .d = 576})).find("columns(k, 0, 512)") != std::string::npos);
  CHECK(to_text(attention_spec({.heads_first = true})).find("= heads_first(attention(") != std::string::npos);
}

TEST_CASE("the catalogue's attention of one latent head") {
  for (const char* name : {"attention_decode", "attention_paged"})
    for (const DType cache : {bf16, e4m3fnuz}) {
      const KernelSpec spec = catalog_spec(name, {.dtype = bf16, .heads = 16, .kv_heads = 1, .d = 576, .length = 64, .cache = cache});
      const Plan plan = make_plan(spec, target("gfx942"));
      CHECK(attention_of(plan).value_d == 512);
      CHECK(spec.outputs().front().value.shape().back() == Dim(512));
    }
}

} // namespace attention_caches_tests
