// ArgumentBlock: sizes, scalars and the grid.
#include "runtime/launch/arguments/argument_block.h"
#include "gen/error.h"
#include "runtime/launch/arguments/arguments.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace kiln {

ArgumentBlock::ArgumentBlock(std::span<const KernelArgument> arguments) {
  std::size_t bytes = 0;
  for (const KernelArgument& a : arguments) {
    if (a.offset < 0 || a.size < 0 || a.size > static_cast<int>(sizeof(std::uint64_t)))
      throw InternalError(fmt::format("argument {} has {} bytes at {}", a.name, a.size, a.offset));
    bytes = std::max(bytes, static_cast<std::size_t>(a.offset) + static_cast<std::size_t>(a.size));
  }
  bytes_.resize(bytes);
}

void ArgumentBlock::put(const KernelArgument& argument, std::uint64_t bits) {
  const auto offset = static_cast<std::size_t>(argument.offset), size = static_cast<std::size_t>(argument.size);
  if (offset > bytes_.size() || size > bytes_.size() - offset || size > sizeof bits)
    throw InternalError(fmt::format("argument {} lies at {} in a block of {} bytes", argument.name, argument.offset, bytes_.size()));
  std::memcpy(bytes_.data() + offset, &bits, size);
}

std::uint64_t scalar_bits(const std::string& kernel, const KernelArgument& argument, double number) {
  const ArgumentSubject subject{kernel, argument.name};
  if (argument.dtype == f32) {
    if (std::isfinite(number) && std::abs(number) > max_finite(f32))
      throw UserError(subject.text(), fmt::format("{} is beyond f32", number), fmt::format("give at most {}", max_finite(f32)));
    return std::bit_cast<std::uint32_t>(static_cast<float>(number));
  }
  if (number != std::trunc(number) || number < -2147483648.0 || number > 2147483647.0) // NaN too
    throw UserError(subject.text(), fmt::format("{} is no i32", number), "give a whole number from -2^31 to 2^31 - 1");
  return static_cast<std::uint32_t>(static_cast<std::int32_t>(number));
}

static double units_of(const Launch& launch, const std::function<std::int64_t(const std::string& dim)>& size_of) {
  double units = static_cast<double>(launch.units) * static_cast<double>(launch.blocks_per_unit);
  for (const Dim& dim : launch.dims) units *= static_cast<double>(dim.is_dynamic() ? size_of(dim.name()) : dim.size());
  return units;
}

std::uint32_t workgroups(const std::string& kernel, const Launch& launch,
                         const std::function<std::int64_t(const std::string& dim)>& size_of) {
  // In floating point too, since the product of many sizes may not fit 64 bits.
  double units = units_of(launch, size_of);
  for (const Launch& other : launch.behind) units += units_of(other, size_of);
  const auto most = std::numeric_limits<std::uint32_t>::max() / static_cast<std::uint32_t>(launch.workgroup_threads()); // of HIP
  const std::uint64_t blocks = units < 0x1p62 ? launch.blocks(size_of) : std::numeric_limits<std::uint64_t>::max();
  if (blocks <= most) return static_cast<std::uint32_t>(blocks);
  throw UserError("kernel " + kernel,
                  fmt::format("these sizes need {} workgroups of {} threads, and HIP takes {}", blocks, launch.workgroup_threads(), most),
                  "split the tensors over several launches");
}

} // namespace kiln
