// Block-quantised tensors as floats: each format's bytes are read where they lie, as tensors whose rows are the blocks.
#include "examples/ggml/operations/operations.h"
#include <gen/spec/math.h>
#include <utility>

namespace kiln_ggml {
namespace {

using kiln::Dim;
using kiln::Expr;
using kiln::Shape;

// One kernel over the blocks of a tensor: y[blocks, parts, cols], of blocks with parts * cols elements.
class BlockDraft {
public:
  BlockDraft(GraphBuilder& graph, const ggml_tensor& tensor, std::int64_t parts, std::int64_t cols)
      : graph_(graph), parts_(parts), cols_(cols), bytes_(static_cast<std::int64_t>(ggml_type_size(tensor.type))),
        data_(static_cast<std::byte*>(tensor.data)), blocks_(ggml_nelements(&tensor) / ggml_blck_size(tensor.type)) {}

  // `count` elements of `type` of each part, or of the whole block, that begin at byte `first` of a block.
  Expr of_parts(kiln::DType type, std::int64_t first, std::int64_t count) { return bytes(type, first, parts_, count); }
  Expr of_block(kiln::DType type, std::int64_t first, std::int64_t count = 1) { return bytes(type, first, 1, count); }
  Expr dense(const void* data, std::int64_t parts, std::int64_t count) { return add(data, kiln::f32, blocks_, parts, count, 0); }
  Expr table(const std::vector<float>& values, std::int64_t parts) {
    return add(graph_.constant(values), kiln::f32, 1, parts, static_cast<std::int64_t>(values.size()) / parts, 0);
  }
  std::int64_t blocks() const { return blocks_; }

  void launch(const char* name, void* to, const Expr& value) {
    arguments_.emplace_back("y", kiln::DeviceTensor{to, kiln::f32, {blocks_, parts_, cols_}, 0});
    graph_.launch(kiln::KernelSpec(name).output("y", kiln::f32, value), arguments_, {"vec=1"}); // blocks are aligned to 1 or 2 bytes
  }

private:
  Expr bytes(kiln::DType type, std::int64_t first, std::int64_t parts, std::int64_t count) {
    return add(data_ + first, type, blocks_, parts, count, bytes_ / static_cast<std::int64_t>(bytes_of(type)));
  }
  Expr add(const void* data, kiln::DType type, std::int64_t blocks, std::int64_t parts, std::int64_t count, std::int64_t stride) {
    const std::string name = "x" + std::to_string(arguments_.size());
    const Shape shape = {blocks == 1 ? Dim(1) : kiln::dynamic("blocks"), parts, count};
    const bool strided = stride != 0 && blocks != 1;
    arguments_.emplace_back(name, kiln::DeviceTensor{const_cast<void*>(data), type, {blocks, parts, count}, strided ? stride : 0});
    return kiln::input(name, type, shape, strided ? kiln::Layout::strided : kiln::Layout::contiguous);
  }
  GraphBuilder& graph_;
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

// Blocks of 32: a scale, perhaps a minimum, perhaps a fifth bit for each element, and four bits or a byte for each.
void decode_32(GraphBuilder& graph, const ggml_tensor& tensor, void* to) {
  BlockDraft b(graph, tensor, 1, 32);
  const ggml_type type = tensor.type;
  if (type == GGML_TYPE_Q8_0) return b.launch("decode_q8_0", to, b.of_block(kiln::i8, 2, 32) * b.of_block(kiln::f16, 0));
  if (type == GGML_TYPE_MXFP4)
    return b.launch("decode_mxfp4", to, mxfp4(nibbles(b.of_block(kiln::u8, 1, 16), 32), b.of_block(kiln::u8, 0)));
  const bool minimum = type == GGML_TYPE_Q4_1 || type == GGML_TYPE_Q5_1, fifth = type == GGML_TYPE_Q5_0 || type == GGML_TYPE_Q5_1;
  const std::int64_t head = minimum ? 4 : 2;
  Expr q = nibbles(b.of_block(kiln::u8, head + (fifth ? 4 : 0), 16), 32);
  if (fifth) q = q + 16.0 * field(kiln::repeat(b.of_block(kiln::u8, head, 4), 8), b.table(shifts(32, 1, 1), 1), 2);
  const Expr d = b.of_block(kiln::f16, 0);
  b.launch("decode_32", to, minimum ? q * d + b.of_block(kiln::f16, 2) : (q - (fifth ? 16.0 : 8.0)) * d);
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

void decode_q4_k(GraphBuilder& graph, const ggml_tensor& tensor, void* to) {
  const auto [scales, minima] = six_bit_scales(graph, tensor);
  const bool fifth = tensor.type == GGML_TYPE_Q5_K;
  BlockDraft b(graph, tensor, 4, 64);
  Expr q = nibbles(b.of_parts(kiln::u8, fifth ? 48 : 16, 32), 64);
  if (fifth) {
    std::vector<float> places;
    for (int part = 0; part < 4; ++part)
      for (int c = 0; c < 64; ++c) places.push_back(1.0f / static_cast<float>(1 << (2 * part + c / 32)));
    q = q + 16.0 * field(kiln::tile(b.of_block(kiln::u8, 16, 32), 2), b.table(places, 4), 2);
  }
  const Expr scale = kiln::repeat(b.dense(scales, 4, 2), 32), minimum = kiln::repeat(b.dense(minima, 4, 2), 32);
  b.launch("decode_k", to, q * scale * b.of_block(kiln::f16, 0) - minimum * b.of_block(kiln::f16, 2));
}

void decode_q2_k(GraphBuilder& graph, const ggml_tensor& tensor, void* to) {
  BlockDraft b(graph, tensor, 2, 128);
  const Expr q = field(kiln::tile(b.of_parts(kiln::u8, 16, 32), 4), b.table(shifts(128, 32, 2), 1), 4);
  const Expr both = kiln::repeat(b.of_parts(kiln::u8, 0, 8), 16), minimum = kiln::floor(both * 0.0625);
  b.launch("decode_q2_k", to, q * (both - 16.0 * minimum) * b.of_block(kiln::f16, 80) - minimum * b.of_block(kiln::f16, 82));
}

void decode_q6_k(GraphBuilder& graph, const ggml_tensor& tensor, void* to) {
  BlockDraft b(graph, tensor, 2, 128);
  const Expr high = field(kiln::tile(b.of_parts(kiln::u8, 128, 32), 4), b.table(shifts(128, 32, 2), 1), 4);
  const Expr q = nibbles(b.of_parts(kiln::u8, 0, 64), 128) + 16.0 * high - 32.0;
  b.launch("decode_q6_k", to, q * kiln::repeat(b.of_parts(kiln::i8, 192, 8), 16) * b.of_block(kiln::f16, 208));
}

struct Format {
  ggml_type type;
  void (*decode)(GraphBuilder& graph, const ggml_tensor& tensor, void* to);
};

const Format formats[] = {
    {GGML_TYPE_Q4_0, decode_32},   {GGML_TYPE_Q4_1, decode_32},   {GGML_TYPE_Q5_0, decode_32},   {GGML_TYPE_Q5_1, decode_32},
    {GGML_TYPE_Q8_0, decode_32},   {GGML_TYPE_MXFP4, decode_32},  {GGML_TYPE_Q2_K, decode_q2_k}, {GGML_TYPE_Q4_K, decode_q4_k},
    {GGML_TYPE_Q5_K, decode_q4_k}, {GGML_TYPE_Q6_K, decode_q6_k},
};

} // namespace

bool can_decode(ggml_type type) {
  for (const Format& format : formats)
    if (format.type == type) return true;
  return false;
}

TensorView decoded(GraphBuilder& graph, const ggml_tensor& tensor) {
  if (dtype_of(tensor.type)) return view_of(tensor);
  Extents ne;
  for (std::size_t d = 0; d < 4; ++d) ne[d] = tensor.ne[d];
  const TensorView result = dense_view(graph.scratch(static_cast<std::size_t>(ggml_nelements(&tensor)) * sizeof(float)), kiln::f32, ne);
  for (const Format& format : formats)
    if (format.type == tensor.type) format.decode(graph, tensor, result.data);
  return result;
}

} // namespace kiln_ggml
