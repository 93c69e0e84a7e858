// Attention: which specs it takes, its schedules, and what they promise about the ISA.
#include "gen/families/attention/attention.h"
#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

constexpr std::int64_t max_sequences = 1 << 16;

// What has a scale, of a tensor that broadcasts to the cache.
KeyScale::Of scale_of(const std::optional<Expr>& scale) {
  if (!scale) return KeyScale::none;
  const Shape& shape = scale->shape();
  const auto varies = [&](std::size_t from_last) { return shape.size() >= from_last && !same_size(shape[shape.size() - from_last], 1); };
  const bool of_key = varies(4) || varies(3), of_head = varies(2);
  return of_key ? (of_head ? KeyScale::key_and_head : KeyScale::key) : of_head ? KeyScale::head : KeyScale::all;
}

// As many rows at a time as registers hold.
int max_tiles(const AttentionConfig& c) { return std::min(c.row_tiles(), c.d <= 128 ? 4 : 2); }

AttentionConfig planned_attention(const Plan& plan, const Target& target) {
  const AttentionParts& a = attention_of(plan);
  AttentionConfig c{.heads = static_cast<int>(a.heads()),
                    .kv_heads = static_cast<int>(a.kv_heads()),
                    .tokens = static_cast<int>(a.tokens()),
                    .d = static_cast<int>(a.d()),
                    .value_d = a.value_d == a.d() ? 0 : static_cast<int>(a.value_d),
                    .q_bits = 8 * size_bytes(a.q.dtype()),
                    .cache_bits = 8 * size_bytes(a.k.dtype()),
                    .k_scale = scale_of(a.k_scale),
                    .v_scale = scale_of(a.v_scale),
                    .page = static_cast<int>(a.page())};
  c.tiles = max_tiles(c);
  if (target.batch_invariant()) c.parts = invariant_parts(c, target);
  return c;
}

std::string subject_of(const AnalysedSpec& spec) { return fmt::format("attention of kernel '{}'", spec.spec.name()); }

void require_offered(const AnalysedSpec& spec) {
  const AttentionParts& a = attention_of(spec);
  const auto subject = subject_of(spec);
  const bool latent = a.d() == attention_latent && a.value_d == attention_latent_values;
  if (!latent && a.value_d != a.d())
    throw UserError(subject, fmt::format("values are {} columns of keys of {} elements", a.value_d, a.d()),
                    fmt::format("use columns(k, 0, {}) of keys of {}", attention_latent_values, attention_latent));
  if (!latent && std::ranges::find(attention_head_sizes, a.d()) == std::end(attention_head_sizes))
    throw UserError(subject, fmt::format("heads have {} elements", a.d()),
                    fmt::format("use heads of 64, 80, 96, 128, 192 or 256, padded with zeros, or of {} with values that are their first {}",
                                attention_latent, attention_latent_values));
  const std::int64_t rows = a.heads() / a.kv_heads() * a.tokens();
  if (rows > attention_max_rows)
    throw UserError(
        subject,
        fmt::format("a head of k meets {} rows of q: {} heads of a group times {} tokens", rows, a.heads() / a.kv_heads(), a.tokens()),
        fmt::format("use at most {}: more tokens at a time are prefill, which is another kernel's work", attention_max_rows));
  if (a.heads() > attention_max_heads)
    throw UserError(subject, fmt::format("q has {} heads", a.heads()), fmt::format("use at most {}", attention_max_heads));
  const bool small = a.page() == 1 || a.page() == 2 || a.page() == 4 || a.page() == 8;
  if ((a.page() % 16 && !small) || a.page() > 1 << 16)
    throw UserError(subject, fmt::format("pages have {} keys", a.page()), "use 1, 2, 4, 8 or a multiple of 16, up to 65536");
  const Dim& sequences = a.sequences();
  if (!sequences.is_dynamic() && sequences.size() > max_sequences)
    throw UserError(subject, fmt::format("it has {} sequences", sequences.size()), fmt::format("use at most {}", max_sequences));
}

void require_pointwise(const AnalysedSpec& spec) {
  for (const Value& value : spec.body.values)
    if (const OpKind kind = info(value.expr.op()).kind; is_reduction(value.expr.op()) || kind == OpKind::ungroup || kind == OpKind::view ||
                                                        kind == OpKind::position || kind == OpKind::scatter)
      throw UserError(fmt::format("operation '{}'", info(value.expr.op()).name), "it stands in the epilogue of attention",
                      "compute it in a kernel of its own: the epilogue is pointwise");
}

std::string why(const AttentionConfig& c, const Target& target) {
  return fmt::format("{} workgroups on {} CUs share the steps of {} keys equally, {} KiB of keys and values in flight each", c.workgroups,
                     target.compute_units(), c.step_keys(), (c.k_loads() * 16 + c.v_loads() * c.value_bytes()) * c.threads() / 1024);
}

} // namespace

bool Attention::can_compute(const AnalysedSpec& spec) { return has_attention(spec); }

void Attention::lay_out(AnalysedSpec& spec) {
  require_offered(spec);
  require_pointwise(spec);
  require_some_weight(attention_of(spec));
  Shape wanted = attention_of(spec).q.shape();
  wanted.back() = attention_of(spec).value_d;
  if (spec.body.space != wanted)
    throw UserError(subject_of(spec), fmt::format("its epilogue works on {}, the result is {}", to_text(spec.body.space), to_text(wanted)),
                    "give every operand of the epilogue the shape of the result, or one that broadcasts to it");
  lay_out_rows(spec.body);
  for (TensorPlan& tensor : spec.body.tensors) tensor.heads_first = tensor.output && attention_of(spec).heads_first.contains(tensor.name);
}

std::vector<Candidate<AttentionConfig>> Attention::candidates(const Plan& plan, const Target& target) {
  // One workgroup for each CU: its loads are more than an L1 waits for at a time, so a second one adds parts to collect, and no rate. It
  // still leaves room for another if a wave needs no more than half of the registers: few rows of q, short heads, and a score expression
  // that loads nothing for each key.
  Config c = planned_attention(plan, target);
  const auto of_key = [&](const TensorPlan& t) { return !t.output && t.extent == Extent::element && t.name != attention_of(plan).product; };
  const bool loads = std::ranges::any_of(attention_of(plan).score_body.tensors, of_key);
  c.per_cu = c.tiles == 1 && c.d <= 128 && !loads && c.parts == 0 ? 2 : 1;
  c.workgroups = target.compute_units();
  return {{c, why(c, target)}};
}

std::vector<Candidate<AttentionConfig>> Attention::fallbacks(const Config& first) {
  std::vector<Candidate<Config>> result;
  Config c = first;
  if (std::exchange(c.per_cu, 1) != 1) result.push_back({c, "all registers for one workgroup a CU"});
  while (c.tiles > 1) {
    c.tiles = ceil_div(c.tiles, 2);
    result.push_back({c, "fewer rows at a time"});
  }
  return result;
}

std::optional<Refusal> Attention::why_not(const Config& c, const Plan& plan, const Target& target) {
  if (field_values(c, false) != field_values(planned_attention(plan, target), false))
    return refuse_schedule(plan, fields_text(c), "leave heads, kv_heads, tokens, d, bits and page as the plan has them");
  if (const char* const invalid = why_invalid(c)) return refuse_schedule(plan, fields_text(c), invalid);
  if (c.lds_bytes() > target.lds_bytes())
    return refuse_schedule(plan, fmt::format("it takes {} bytes of LDS, {} has {}", c.lds_bytes(), target.arch(), target.lds_bytes()),
                           "use fewer rows of q");
  return {};
}

std::optional<std::int64_t> Attention::addition_depth(const Config&) { return {}; } // MFMA's order is not public

} // namespace kiln
