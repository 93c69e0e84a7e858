// DeviceTensor: sizes.
#include "runtime/launch/arguments/arguments.h"
#include "gen/error.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln {
namespace {

[[noreturn]] void too_large(const DeviceTensor& tensor) {
  throw UserError(to_text(tensor), "its bytes do not fit a 63-bit number", "give the sizes that the tensor has");
}

std::int64_t product(const DeviceTensor& tensor, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) too_large(tensor);
  return result;
}

} // namespace

std::int64_t DeviceTensor::row() const {
  std::int64_t count = 1;
  for (std::size_t i = shape.size() > 1 ? 1 : 0; i < shape.size(); ++i) count = product(*this, count, shape[i]);
  return count;
}

std::int64_t DeviceTensor::stride() const { return row_stride == 0 ? row() : row_stride; }

std::int64_t DeviceTensor::bytes() const {
  for (const std::int64_t size : shape)
    if (size < 0) throw UserError(to_text(*this), fmt::format("{} is no size", size), "give 0 or more");
  if (row_stride < 0) throw UserError(to_text(*this), fmt::format("a stride of {} elements", row_stride), "give 0 (contiguous) or more");
  const std::int64_t rows = shape.size() > 1 ? shape.front() : 1;
  if (rows == 0 || row() == 0) return 0;
  std::int64_t elements = 0;
  if (__builtin_add_overflow(product(*this, rows - 1, stride()), row(), &elements)) too_large(*this);
  return storage_bytes(dtype, product(*this, elements, size_bits(dtype)) / size_bits(dtype));
}

DeviceTensor strided_tensor(void* data, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                            const std::string& subject) {
  DeviceTensor tensor{.data = data, .dtype = dtype, .shape = {shape.begin(), shape.end()}, .row_stride = 0};
  if (strides.empty()) return tensor;
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i > std::min<std::size_t>(shape.size() - 1, 1); --i) {
    if (shape[i - 1] > 1 && strides[i - 1] != expected)
      throw UserError(subject, fmt::format("its strides are [{}] for the shape [{}]", fmt::join(strides, ", "), fmt::join(shape, ", ")),
                      "all dimensions after the first have to be contiguous: copy it");
    expected *= shape[i - 1];
  }
  if (shape.size() > 1 && shape[0] > 1 && strides[0] != tensor.row()) tensor.row_stride = strides[0];
  return tensor;
}

std::string to_text(const DeviceTensor& tensor) {
  return fmt::format("{}[{}] at {}", to_string(tensor.dtype), fmt::join(tensor.shape, ", "), fmt::ptr(tensor.data));
}

} // namespace kiln
