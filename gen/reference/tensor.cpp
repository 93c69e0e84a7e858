// Tensor: elements in host memory.
#include "gen/reference/tensor.h"
#include "gen/error.h"
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace kiln {
namespace {

// For one index of the first dimension; of all elements if there is one dimension.
std::int64_t row_bits(const Tensor& tensor) {
  std::int64_t elements = 1;
  for (std::size_t i = tensor.shape().size() > 1 ? 1 : 0; i < tensor.shape().size(); ++i) elements *= tensor.shape()[i];
  return elements * size_bits(tensor.dtype());
}

} // namespace

Tensor::Tensor(DType dtype, std::vector<std::int64_t> shape, std::int64_t row_stride) : dtype_(dtype), shape_(std::move(shape)) {
  for (std::size_t i = 0; i < shape_.size(); ++i) {
    if (shape_[i] < 0) throw UserError("tensor", fmt::format("dimension {} has the size {}", i, shape_[i]), "use 0 or more");
    size_ *= shape_[i];
    if (i > 0) row_size_ *= shape_[i];
  }
  row_stride_ = row_stride == 0 ? row_size_ : row_stride;
  if (row_stride_ < row_size_)
    throw UserError("tensor", fmt::format("the row stride {} is below the {} elements of a row", row_stride_, row_size_),
                    "use 0 for contiguous rows, or a larger stride");
  if (is_packed(dtype) && (row_bits(*this) % 8 || (shape_.size() > 1 && row_stride_ % 2)))
    throw UserError("tensor", fmt::format("rows of {} {} begin inside of a byte", row_bits(*this) / size_bits(dtype), to_string(dtype)),
                    "use rows of an even size");
  const std::int64_t rows = shape_.empty() ? 1 : shape_[0];
  data_.resize(static_cast<std::size_t>(storage_bytes(dtype_, rows * row_stride_)));
}

std::size_t Tensor::offset(std::int64_t index) const {
  const std::int64_t element = index / row_size_ * row_stride_ + index % row_size_;
  return static_cast<std::size_t>(element * size_bits(dtype_) / 8);
}

std::uint64_t Tensor::bits(std::int64_t index) const {
  if (is_packed(dtype_)) return std::to_integer<std::uint64_t>(data_[offset(index)]) >> (index % 2 * 4) & 15; // rows are even
  std::uint64_t result = 0; // element types are little endian, and so is every host of ROCm
  std::memcpy(&result, data_.data() + offset(index), static_cast<std::size_t>(size_bytes(dtype_)));
  return result;
}

void Tensor::set_bits(std::int64_t index, std::uint64_t bits) {
  if (is_packed(dtype_)) {
    const auto shift = static_cast<unsigned>(index % 2 * 4);
    std::byte& byte = data_[offset(index)];
    byte = (byte & ~(std::byte{15} << shift)) | std::byte(bits & 15) << shift;
    return;
  }
  std::memcpy(data_.data() + offset(index), &bits, static_cast<std::size_t>(size_bytes(dtype_)));
}

std::span<std::byte> Tensor::row(std::int64_t index) {
  const auto bytes = static_cast<std::size_t>(row_bits(*this) / 8);
  return std::span(data_).subspan(static_cast<std::size_t>(storage_bytes(dtype_, index * row_stride_)), bytes);
}

std::int64_t Tensor::integer(std::int64_t index) const {
  const std::uint64_t number = bits(index);
  return dtype_ == i32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(number)) : static_cast<std::int64_t>(number);
}

} // namespace kiln
