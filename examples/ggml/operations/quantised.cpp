// Block-quantised tensors as floats, and their products: each format's bytes are read where they lie, as tensors whose rows are the
// blocks, and become numbers in the registers of the kernel that uses them.
#include "examples/ggml/operations/operations.h"
#include <gen/spec/math.h>
#include <utility>

namespace kiln_ggml {
namespace {

using kiln::Dim;
using kiln::Expr;
using kiln::Shape;

// From the first to the last block of a tensor, with what lies between them.
std::int64_t blocks_in_span(const ggml_tensor& tensor) {
  return static_cast<std::int64_t>(ggml_nbytes(&tensor) / ggml_type_size(tensor.type));
}

// One kernel over the blocks of a tensor: y[blocks, parts, cols], of blocks with parts * cols elements.
class BlockDraft {
public:
  BlockDraft(GraphBuilder& graph, const ggml_tensor& tensor, std::int64_t parts, std::int64_t cols)
      : graph_(graph), tensor_(tensor), parts_(parts), cols_(cols), bytes_(static_cast<std::int64_t>(ggml_type_size(tensor.type))),
        data_(static_cast<std::byte*>(tensor.data)), blocks_(blocks_in_span(tensor)) {}

  // `count` elements of `type` of each part, or of the whole block, that begin at byte `first` of a block.
  Expr of_parts(kiln::DType type, std::int64_t first, std::int64_t count) { return bytes(type, first, parts_, count); }
  Expr of_block(kiln::DType type, std::int64_t first, std::int64_t count = 1) { return bytes(type, first, 1, count); }
  Expr dense(const void* data, std::int64_t parts, std::int64_t count) { return add(data, kiln::f32, blocks_, parts, count, 0); }
  Expr table(const std::vector<float>& values, std::int64_t parts) {
    return add(graph_.constant(values), kiln::f32, 1, parts, static_cast<std::int64_t>(values.size()) / parts, 0);
  }
  std::int64_t blocks() const { return blocks_; }
  GraphBuilder& graph() { return graph_; }
  const ggml_tensor& tensor() const { return tensor_; }

  void launch(const char* name, void* to, const Expr& value) { launch(name, to, value, {blocks_, parts_, cols_}); }
  // For each row of `x`, [m, k], and each part of a block: the sum of the products of what lies at the same k. to: [m, blocks, parts].
  void launch_products(void* to, const Expr& value, const TensorView& x) {
    const std::int64_t m = x.ne[1], parts_of_row = x.ne[0] / cols_;
    std::vector<std::int32_t> rows;
    for (std::int64_t row = 0; row < m; ++row)
      for (std::int64_t part = 0; part < blocks_ * parts_; ++part)
        rows.push_back(static_cast<std::int32_t>(row * parts_of_row + part % parts_of_row));
    const Shape outer = {m == 1 ? Dim(1) : kiln::dynamic("m"), blocks_dim(), parts_, 1};
    arguments_.emplace_back("x", kiln::DeviceTensor{x.data, x.dtype, {m * parts_of_row, cols_}, 0});
    arguments_.emplace_back("part", kiln::DeviceTensor{graph_.constant(rows), kiln::i32, {m, blocks_, parts_, 1}, 0});
    const Expr table = kiln::input("x", x.dtype, {kiln::dynamic("parts", 1), cols_});
    launch("block_products", to, kiln::row_sum(value * kiln::gather(table, kiln::input("part", kiln::i32, outer))),
           {m, blocks_, parts_, 1});
  }

private:
  Dim blocks_dim() const { return blocks_ == 1 ? Dim(1) : kiln::dynamic("blocks"); }
  void launch(const char* name, void* to, const Expr& value, std::vector<std::int64_t> shape) {
    arguments_.emplace_back("y", kiln::DeviceTensor{to, kiln::f32, std::move(shape), 0});
    graph_.launch(kiln::KernelSpec(name).output("y", kiln::f32, value), arguments_, {"vec=1"}); // blocks are aligned to 1 or 2 bytes
  }
  Expr bytes(kiln::DType type, std::int64_t first, std::int64_t parts, std::int64_t count) {
    return add(data_ + first, type, blocks_, parts, count, bytes_ / static_cast<std::int64_t>(bytes_of(type)));
  }
  Expr add(const void* data, kiln::DType type, std::int64_t blocks, std::int64_t parts, std::int64_t count, std::int64_t stride) {
    const std::string name = "b" + std::to_string(arguments_.size());
    const Shape shape = {blocks == 1 ? Dim(1) : blocks_dim(), parts, count};
    const bool strided = stride != 0 && blocks != 1;
    arguments_.emplace_back(name, kiln::DeviceTensor{const_cast<void*>(data), type, {blocks, parts, count}, strided ? stride : 0});
    return kiln::input(name, type, shape, strided ? kiln::Layout::strided : kiln::Layout::contiguous);
  }
  GraphBuilder& graph_;
  const ggml_tensor& tensor_;
  std::int64_t parts_, cols_, bytes_;
  std::byte* data_;
  std::int64_t blocks_;
  std::vector<kiln::Argument> arguments_;
};

Expr modulo(const Expr& x, double base) { return x - base * kiln::floor(x * (1.0 / base)); }
Expr column_below(std::int64_t cols, double limit) { return kiln::iota({cols}) < limit; }
// A byte's low four bits in the first half of the columns, its high four in the second.
Expr nibbles(const Expr& bytes, std::int64_t cols) {
  const Expr two = kiln::tile(bytes, 2), high = kiln::floor(two * 0.0625);
  return kiln::select(column_below(cols, static_cast<double>(cols) / 2), two - 16.0 * high, high);
}
// `bits` bits of `x` from that one on whose place value is 1 / `reciprocal`.
Expr field(const Expr& x, const Expr& reciprocal, double values) { return modulo(kiln::floor(x * reciprocal), values); }

// 1 / 2^(bits * (c / run)) for each column c.
std::vector<float> shifts(std::int64_t cols, std::int64_t run, int bits, std::int64_t wrap = 8) {
  std::vector<float> result;
  for (std::int64_t c = 0; c < cols; ++c) result.push_back(1.0f / static_cast<float>(1 << (bits * (c / run % wrap))));
  return result;
}

Expr mxfp4(const Expr& q, const Expr& exponent) {
  const Expr size = q - 8.0 * kiln::floor(q * 0.125);
  const Expr value = kiln::select(size < 4.0, size, kiln::select(size < 6.0, 2.0 * size - 4.0, 4.0 * size - 16.0));
  return kiln::select(q < 8.0, value, -value) * kiln::exp2(exponent - 128.0);
}

// The numbers that the 16 codes of iq4_nl stand for, from code `first` on: by halves.
Expr iq4_nl(const Expr& q, int first = 0, int count = 16) {
  constexpr int numbers[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  if (count == 1) return numbers[first];
  const int half = first + count / 2;
  return kiln::select(q < half, iq4_nl(q, first, count / 2), iq4_nl(q, half, count / 2));
}

// Blocks of 32: a scale, perhaps a minimum, perhaps a fifth bit for each element, and four bits or a byte for each.
Expr value_32(BlockDraft& b, ggml_type type) {
  if (type == GGML_TYPE_Q8_0) return b.of_block(kiln::i8, 2, 32) * b.of_block(kiln::f16, 0);
  if (type == GGML_TYPE_MXFP4) return mxfp4(nibbles(b.of_block(kiln::u8, 1, 16), 32), b.of_block(kiln::u8, 0));
  if (type == GGML_TYPE_IQ4_NL) return iq4_nl(nibbles(b.of_block(kiln::u8, 2, 16), 32)) * b.of_block(kiln::f16, 0);
  const bool minimum = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1, fifth = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
  const std::int64_t head = minimum ? 4 : 2;
  Expr q = nibbles(b.of_block(kiln::u8, head + (fifth ? 4 : 0), 16), 32);
  if (fifth) q = q + 16.0 * field(kiln::repeat(b.of_block(kiln::u8, head, 4), 8), b.table(shifts(32, 1, 1), 1), 2);
  const Expr d = b.of_block(kiln::f16, 0);
  return minimum ? q * d + b.of_block(kiln::f16, 2) : (q - (fifth ? 16.0 : 8.0)) * d;
}

// Scales and minima of the eight parts of 32 in q4_K and q5_K: six bits each, in twelve bytes.
std::pair<float*, float*> six_bit_scales(GraphBuilder& graph, const ggml_tensor& tensor) {
  BlockDraft s(graph, tensor, 1, 8), m(graph, tensor, 1, 8);
  const auto bytes = static_cast<std::size_t>(s.blocks()) * 8 * sizeof(float);
  auto *const scales = static_cast<float*>(graph.scratch(bytes)), *const minima = static_cast<float*>(graph.scratch(bytes));
  const auto part = [](BlockDraft& draft, std::int64_t first) { return kiln::tile(draft.of_block(kiln::u8, first, 4), 2); };
  const auto top = [](const Expr& x) { return 16.0 * kiln::floor(x * (1.0 / 64)); };
  const Expr low = column_below(8, 4);
  s.launch("scales_k", scales, kiln::select(low, modulo(part(s, 4), 64), modulo(part(s, 12), 16) + top(part(s, 4))));
  m.launch("minima_k", minima, kiln::select(low, modulo(part(m, 8), 64), kiln::floor(part(m, 12) * 0.0625) + top(part(m, 8))));
  return {scales, minima};
}

Expr value_q4_k(BlockDraft& b, ggml_type type) {
  const auto [scales, minima] = six_bit_scales(b.graph(), b.tensor());
  const bool fifth = type == GGML_TYPE_Q5_K;
  Expr q = nibbles(b.of_parts(kiln::u8, fifth ? 48 : 16, 32), 64);
  if (fifth) {
    std::vector<float> places;
    for (int part = 0; part < 4; ++part)
      for (int c = 0; c < 64; ++c) places.push_back(1.0f / static_cast<float>(1 << (2 * part + c / 32)));
    q = q + 16.0 * field(kiln::tile(b.of_block(kiln::u8, 16, 32), 2), b.table(places, 4), 2);
  }
  const Expr scale = kiln::repeat(b.dense(scales, 4, 2), 32), minimum = kiln::repeat(b.dense(minima, 4, 2), 32);
  return q * scale * b.of_block(kiln::f16, 0) - minimum * b.of_block(kiln::f16, 2);
}

Expr value_q2_k(BlockDraft& b, ggml_type) {
  const Expr q = field(kiln::tile(b.of_parts(kiln::u8, 16, 32), 4), b.table(shifts(128, 32, 2), 1), 4);
  const Expr both = kiln::repeat(b.of_parts(kiln::u8, 0, 8), 16), minimum = kiln::floor(both * 0.0625);
  return q * (both - 16.0 * minimum) * b.of_block(kiln::f16, 80) - minimum * b.of_block(kiln::f16, 82);
}

Expr value_q6_k(BlockDraft& b, ggml_type) {
  const Expr high = field(kiln::tile(b.of_parts(kiln::u8, 128, 32), 4), b.table(shifts(128, 32, 2), 1), 4);
  const Expr q = nibbles(b.of_parts(kiln::u8, 0, 64), 128) + 16.0 * high - 32.0;
  return q * kiln::repeat(b.of_parts(kiln::i8, 192, 8), 16) * b.of_block(kiln::f16, 208);
}

struct Format {
  ggml_type type;
  std::int64_t parts, cols; // of a block
  Expr (*value)(BlockDraft& blocks, ggml_type type);
};

const Format formats[] = {
    {GGML_TYPE_Q4_0, 1, 32, value_32},    {GGML_TYPE_Q4_1, 1, 32, value_32},   {GGML_TYPE_Q5_0, 1, 32, value_32},
    {GGML_TYPE_Q5_1, 1, 32, value_32},    {GGML_TYPE_Q8_0, 1, 32, value_32},   {GGML_TYPE_MXFP4, 1, 32, value_32},
    {GGML_TYPE_Q2_K, 2, 128, value_q2_k}, {GGML_TYPE_Q4_K, 4, 64, value_q4_k}, {GGML_TYPE_Q5_K, 4, 64, value_q4_k},
    {GGML_TYPE_Q6_K, 2, 128, value_q6_k}, {GGML_TYPE_IQ4_NL, 1, 32, value_32},
};

const Format* format_of(ggml_type type) {
  for (const Format& format : formats)
    if (format.type == type) return &format;
  return nullptr;
}

} // namespace

bool can_decode(ggml_type type) { return format_of(type) != nullptr; }

bool can_decode_view(const ggml_tensor& tensor) {
  const std::size_t block = ggml_type_size(tensor.type);
  for (std::size_t d = 1; d < 4; ++d)
    if (tensor.nb[d] % block != 0) return false;
  return can_decode(tensor.type) && tensor.nb[0] == block;
}

TensorView decoded(GraphBuilder& graph, const ggml_tensor& tensor) {
  if (dtype_of(tensor.type)) return view_of(tensor);
  const std::int64_t elements = blocks_in_span(tensor) * ggml_blck_size(tensor.type);
  Extents ne;
  for (std::size_t d = 0; d < 4; ++d) ne[d] = tensor.ne[d];
  TensorView result = dense_view(graph.scratch(static_cast<std::size_t>(elements) * sizeof(float)), kiln::f32, ne);
  for (std::size_t d = 1; d < 4; ++d)
    result.stride[d] = static_cast<std::int64_t>(tensor.nb[d] / ggml_type_size(tensor.type)) * ggml_blck_size(tensor.type);
  const Format& format = *format_of(tensor.type);
  BlockDraft blocks(graph, tensor, format.parts, format.cols);
  const Expr value = format.value(blocks, tensor.type);
  blocks.launch((std::string("decode_") + ggml_type_name(tensor.type)).c_str(), result.data, value);
  return result;
}

TensorView block_products(GraphBuilder& graph, const ggml_tensor& weights, const TensorView& x) {
  const Format& format = *format_of(weights.type);
  const std::int64_t sums = x.ne[0] / format.cols; // of a row
  const TensorView result = dense_view(graph.scratch(static_cast<std::size_t>(x.ne[1] * weights.ne[1] * sums) * sizeof(float)), kiln::f32,
                                       {sums, weights.ne[1], x.ne[1], 1});
  BlockDraft blocks(graph, weights, format.parts, format.cols);
  const Expr value = format.value(blocks, weights.type);
  blocks.launch_products(result.data, value, x);
  return result;
}

} // namespace kiln_ggml
