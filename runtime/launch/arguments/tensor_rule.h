// TensorRule: what a spec says of one tensor that its kernel takes an address of, and the checks of a tensor that is given for it.
#pragma once
#include "gen/spec/spec.h"
#include "runtime/launch/arguments/arguments.h"
#include "runtime/launch/backend.h"
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace kiln {

// The device memory of one argument: `rows` pieces of `row` bytes, `pitch` bytes apart.
struct MemoryRegion {
  std::string name;
  std::uint64_t address = 0, row = 0, rows = 1, pitch = 0;
  bool written = false;
  std::uint64_t end() const { return address + (rows - 1) * pitch + row; }
};

// Rows of equal pitch lie side by side when their columns do (halves of one wide buffer). Regions of unequal pitch overlap when
// their whole ranges do.
bool overlap(const MemoryRegion& a, const MemoryRegion& b);

// Two regions that overlap and of which one is written; both null when there are none. `written` is the one that is.
struct Overlap {
  const MemoryRegion *written = nullptr, *other = nullptr;
};
Overlap find_overlap(std::span<const MemoryRegion> regions);

struct TensorRule {
  std::string name;
  std::string partner = {}; // the in-place output that shares its memory, or empty
  DType dtype = f32;
  Shape shape = {};
  bool strided = false, written = false;
  int alignment = 1;             // bytes that its address is a multiple of
  int argument = -1;             // index into Kernel::arguments
  int stride_argument = -1;      // likewise, -1: none
  int stride_multiple = 1;       // elements, of the stride argument
  std::int64_t reach = 0;        // bytes that the pitch of rows must stay below; 0: any. See KernelArgument::alignment
  std::int64_t rows_reached = 0; // of a workgroup, by 32-bit offsets from its first one
};

// In the order of the arguments. Throws InternalError for a kernel that check_layout would refuse.
std::vector<TensorRule> tensor_rules(const Kernel& kernel, const KernelSpec& spec);

// The run-time sizes of a launch, each from the first tensor that has it.
class RuntimeSizes {
public:
  // Throws UserError when `size` is outside of the bounds of `dim`, or not what an earlier tensor had.
  void set(const ArgumentSubject& subject, const Dim& dim, std::size_t index, std::int64_t size);
  std::int64_t of(const std::string& dim) const; // throws InternalError when no tensor has it

private:
  std::vector<std::pair<std::string, std::int64_t>> sizes_; // few: faster than a map
};

// All of these throw UserError that begins with `subject`.
void check_meaning(const ArgumentSubject& subject, const TensorRule& rule, const DeviceTensor& tensor, RuntimeSizes& sizes);
void check_stride(const ArgumentSubject& subject, const TensorRule& rule, const DeviceTensor& tensor);
void check_address(const ArgumentSubject& subject, int alignment, const DeviceTensor& tensor, const DeviceBackend& backend);
MemoryRegion region_of(const TensorRule& rule, const DeviceTensor& tensor);

} // namespace kiln
