// Floats to blocks of 32: one launch for each field of the blocks, for those lie between each other.
#include "examples/ggml/operations/operations.h"
#include <gen/spec/math.h>
#include <set>
#include <string>
#include <utility>

namespace kiln_ggml {
namespace {

using kiln::Dim;
using kiln::Expr;

constexpr std::int64_t encoded_block = 32; // elements

// Kernels over the blocks of dense floats: each makes one field of all blocks.
class BlockWriter {
public:
  BlockWriter(GraphBuilder& graph, const TensorView& x, ggml_type type, void* to)
      : graph_(graph), x_(x), to_(static_cast<std::byte*>(to)), blocks_(x.count() / encoded_block),
        bytes_(static_cast<std::int64_t>(ggml_type_size(type))) {}

  Expr whole() const { return kiln::input("x", x_.dtype, {blocks_dim(), encoded_block}); }
  Expr low_half() const { return half("low"); }
  Expr high_half() const { return half("high"); }

  // `value`, a number a block, in memory of its own, as a tensor for further kernels.
  Expr number_of_block(const char* name, const Expr& value) {
    number_ = {graph_.scratch(static_cast<std::size_t>(blocks_) * sizeof(float)), kiln::f32, {blocks_, 1}, 0};
    std::vector<kiln::Argument> arguments = inputs_of(value);
    arguments.emplace_back("y", number_);
    graph_.launch(kiln::KernelSpec(name).output("y", kiln::f32, value), std::move(arguments));
    return kiln::input("number", kiln::f32, {blocks_dim(), 1});
  }

  // `value`, a number a column of the result, at byte `first` of each block.
  void write(const char* name, std::int64_t first, kiln::DType type, const Expr& value) {
    const std::int64_t columns = value.shape().back().size(), stride = bytes_ / static_cast<std::int64_t>(bytes_of(type));
    std::vector<kiln::Argument> arguments = inputs_of(value);
    arguments.emplace_back("y", kiln::DeviceTensor{to_ + first, type, {blocks_, columns}, blocks_ == 1 ? 0 : stride});
    graph_.launch(kiln::KernelSpec(name).output("y", type, value, {.layout = layout()}), std::move(arguments), {"vec=1"});
  }

private:
  Dim blocks_dim() const { return blocks_ == 1 ? Dim(1) : kiln::dynamic("blocks"); }
  kiln::Layout layout() const { return blocks_ == 1 ? kiln::Layout::contiguous : kiln::Layout::strided; }
  Expr half(const char* name) const { return kiln::input(name, x_.dtype, {blocks_dim(), encoded_block / 2}, layout()); }
  std::vector<kiln::Argument> inputs_of(const Expr& value) const {
    std::set<std::string> names;
    collect(value, names);
    auto* const second = static_cast<std::byte*>(x_.data) + encoded_block / 2 * static_cast<std::int64_t>(bytes_of(x_.dtype));
    const std::int64_t gap = blocks_ == 1 ? 0 : encoded_block;
    std::vector<kiln::Argument> arguments;
    if (names.contains("x")) arguments.emplace_back("x", kiln::DeviceTensor{x_.data, x_.dtype, {blocks_, encoded_block}, 0});
    if (names.contains("low")) arguments.emplace_back("low", kiln::DeviceTensor{x_.data, x_.dtype, {blocks_, encoded_block / 2}, gap});
    if (names.contains("high")) arguments.emplace_back("high", kiln::DeviceTensor{second, x_.dtype, {blocks_, encoded_block / 2}, gap});
    if (names.contains("number")) arguments.emplace_back("number", number_);
    return arguments;
  }
  static void collect(const Expr& value, std::set<std::string>& names) {
    if (value.op() == kiln::Op::input) names.insert(value->name);
    for (const Expr& operand : value.operands()) collect(operand, names);
  }
  GraphBuilder& graph_;
  const TensorView& x_;
  std::byte* to_;
  std::int64_t blocks_, bytes_;
  kiln::DeviceTensor number_ = {};
};

Expr over(double number, const Expr& x) { return kiln::select(kiln::abs(x) > 0.0, kiln::div_exact(Expr(number), x), 0.0); }
// The product as a number in f32, as ggml rounds it: a sum behind it would become one with it otherwise.
Expr rounded_product(const Expr& x, const Expr& y) { return kiln::max(x * y, -3e38); }

void encode_q8_0(BlockWriter& blocks) {
  const Expr x = blocks.whole(), top = kiln::row_max(kiln::abs(x));
  blocks.write("q8_0_scale", 0, kiln::f16, kiln::div_exact(top, Expr(127.0)));
  blocks.write("q8_0_codes", 2, kiln::i8, kiln::round(x * over(127, top)));
}

// A byte of two codes from 0 to 15, the first in its low half.
Expr packed(const Expr& low, const Expr& high) {
  const Expr byte = low + 16.0 * high;
  return kiln::select(byte > 127.0, byte - 256.0, byte);
}

// The scale goes by the first of the largest numbers, whose sign gets the one code more that there is.
void encode_q4_0(BlockWriter& blocks) {
  const Expr x = blocks.whole(), first = kiln::eq(kiln::iota({encoded_block}), kiln::row_argmax(kiln::abs(x)));
  const Expr scale = blocks.number_of_block("q4_0_number", kiln::row_sum(kiln::select(first, x, 0.0)) * -0.125);
  blocks.write("q4_0_scale", 0, kiln::f16, scale);
  const Expr inverse = over(1, scale);
  const auto code = [&](const Expr& half) { return kiln::min(kiln::floor(rounded_product(half, inverse) + 8.5), 15.0); };
  blocks.write("q4_0_codes", 2, kiln::i8, packed(code(blocks.low_half()), code(blocks.high_half())));
}

void encode_q4_1(BlockWriter& blocks) {
  const Expr low = blocks.low_half(), high = blocks.high_half();
  const Expr top = kiln::max(kiln::row_max(low), kiln::row_max(high)), bottom = kiln::min(row_min(low), row_min(high));
  const Expr scale = kiln::div_exact(top - bottom, Expr(15.0)), inverse = over(1, scale);
  const auto code = [&](const Expr& x) { return kiln::min(kiln::floor(rounded_product(x - bottom, inverse) + 0.5), 15.0); };
  blocks.write("q4_1_scale", 0, kiln::f16, scale);
  blocks.write("q4_1_minimum", 2, kiln::f16, bottom);
  blocks.write("q4_1_codes", 4, kiln::i8, packed(code(low), code(high)));
}

struct Encoder {
  ggml_type type;
  void (*encode)(BlockWriter& blocks);
};
constexpr Encoder encoders[] = {{GGML_TYPE_Q8_0, encode_q8_0}, {GGML_TYPE_Q4_0, encode_q4_0}, {GGML_TYPE_Q4_1, encode_q4_1}};

} // namespace

bool can_encode(ggml_type type) {
  for (const Encoder& encoder : encoders)
    if (encoder.type == type) return true;
  return false;
}

void encode(GraphBuilder& graph, const TensorView& x, ggml_type type, void* to) {
  BlockWriter blocks(graph, x, type, to);
  for (const Encoder& encoder : encoders)
    if (encoder.type == type) encoder.encode(blocks);
}

} // namespace kiln_ggml
