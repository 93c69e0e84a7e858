// ArgumentBlock: the bytes that a kernel reads its arguments from. Launches on devices and emulate() fill the same one.
#pragma once
#include "gen/emit/kernel_source.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace kiln {

class ArgumentBlock {
public:
  // Zeroes, to the end of the last argument. Throws InternalError when an argument lies before the block's begin.
  explicit ArgumentBlock(std::span<const KernelArgument> arguments);

  // The low argument.size bytes of `bits` at argument.offset. Throws InternalError for bytes outside of the block.
  void put(const KernelArgument& argument, std::uint64_t bits);
  std::vector<std::byte> take() { return std::move(bytes_); }

private:
  std::vector<std::byte> bytes_;
};

// A scalar as the kernel reads it. Throws UserError: a finite number beyond f32, or no whole number of i32.
std::uint64_t scalar_bits(const std::string& kernel, const KernelArgument& argument, double number);

// Workgroups of a launch; 0 when a size is 0. Throws UserError when they are more than HIP takes: 2^32 - 1 threads.
std::uint32_t workgroups(const std::string& kernel, const Launch& launch,
                         const std::function<std::int64_t(const std::string& dim)>& size_of);

} // namespace kiln
