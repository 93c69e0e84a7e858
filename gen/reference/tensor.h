// Tensor: elements in host memory, as a kernel would find them in device memory.
#pragma once
#include "gen/spec/dtype.h"
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

class Tensor {
public:
  // Zeros. `row_stride` is the distance of two indices of the first dimension in elements, 0 for contiguous. Throws UserError
  // on a negative size and on a stride below the size of a row.
  Tensor(DType dtype, std::vector<std::int64_t> shape, std::int64_t row_stride = 0);

  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t row_stride() const { return row_stride_; }
  std::int64_t size() const { return size_; } // elements, padding between rows not included
  const std::vector<std::byte>& data() const { return data_; }
  std::vector<std::byte>& data() { return data_; }

  // The bytes of a row, one index of the first dimension; all of them if there is one dimension.
  std::span<std::byte> row(std::int64_t index);
  std::span<const std::byte> row(std::int64_t index) const { return const_cast<Tensor*>(this)->row(index); }
  // Elements by their index in row-major order, whatever the stride.
  std::uint64_t bits(std::int64_t index) const;
  void set_bits(std::int64_t index, std::uint64_t bits);
  float at(std::int64_t index) const { return to_f32(dtype_, static_cast<std::uint32_t>(bits(index))); }
  void set(std::int64_t index, float value, bool saturate = true) {
    const std::uint32_t low = from_f32(dtype_, value, saturate);
    set_bits(index, dtype_ == i64 ? static_cast<std::uint64_t>(static_cast<std::int32_t>(low)) : low);
  }
  // For i32 and i64: an index as it is.
  std::int64_t integer(std::int64_t index) const;

private:
  std::size_t offset(std::int64_t index) const; // in bytes

  DType dtype_;
  std::vector<std::int64_t> shape_;
  std::int64_t row_size_ = 1, row_stride_ = 1, size_ = 1;
  std::vector<std::byte> data_;
};

} // namespace kiln
