// Tensor: elements in host memory.
#include "gen/reference/tensor.h"
#include "gen/error.h"
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace kiln {

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
  const std::int64_t rows = shape_.empty() ? 1 : shape_[0];
  data_.resize(static_cast<std::size_t>(rows * row_stride_ * size_bytes(dtype_)));
}

std::size_t Tensor::offset(std::int64_t index) const {
  const std::int64_t element = index / row_size_ * row_stride_ + index % row_size_;
  return static_cast<std::size_t>(element * size_bytes(dtype_));
}

std::uint64_t Tensor::bits(std::int64_t index) const {
  std::uint64_t result = 0; // element types are little endian, and so is every host of ROCm
  std::memcpy(&result, data_.data() + offset(index), static_cast<std::size_t>(size_bytes(dtype_)));
  return result;
}

void Tensor::set_bits(std::int64_t index, std::uint64_t bits) {
  std::memcpy(data_.data() + offset(index), &bits, static_cast<std::size_t>(size_bytes(dtype_)));
}

std::int64_t Tensor::integer(std::int64_t index) const {
  const std::uint64_t number = bits(index);
  return dtype_ == i32 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(number)) : static_cast<std::int64_t>(number);
}

} // namespace kiln
