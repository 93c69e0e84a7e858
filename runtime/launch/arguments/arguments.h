// Argument: what a program gives a kernel, by name: tensors in device memory, and numbers.
#pragma once
#include "gen/spec/dtype.h"
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace kiln {

// Elements in device memory. Dims after the first are contiguous.
struct DeviceTensor {
  void* data = nullptr; // a device address; also of inputs, which are not written
  DType dtype = f32;
  std::vector<std::int64_t> shape = {}; // [] is one element
  std::int64_t row_stride = 0;          // elements from one index of the first dim to the next; 0: contiguous

  std::int64_t row() const;    // elements of one index of the first dim; all of them when there is one dim or none
  std::int64_t stride() const; // row_stride, or row() when that is 0
  // From the first element to the last, padding between rows included; 0 when a size is 0. Throws UserError when a size or the
  // stride is negative, or the bytes do not fit 63 bits.
  std::int64_t bytes() const;
};
// With strides in elements, as C and DLPack have them; none: contiguous. Throws UserError for gaps between elements of a row.
DeviceTensor strided_tensor(void* data, DType dtype, std::span<const std::int64_t> shape, std::span<const std::int64_t> strides,
                            const std::string& subject);
std::string to_text(const DeviceTensor& tensor); // "f16[4, 8192] at 0x7e0000000000"

// How errors name an argument: "kernel norm, argument x". Text only when an error needs it: bind counts nanoseconds.
struct ArgumentSubject {
  const std::string &kernel, &argument;
  std::string text() const { return "kernel " + kernel + ", argument " + argument; }
};

struct Argument {
  std::string name;
  std::variant<DeviceTensor, double> value; // a number is a scalar or a run-time size
  Argument(std::string name_, DeviceTensor tensor) : name(std::move(name_)), value(std::move(tensor)) {}
  template <class Number>
    requires std::integral<Number> || std::floating_point<Number>
  Argument(std::string name_, Number number) : name(std::move(name_)), value(static_cast<double>(number)) {}
};

} // namespace kiln
