// check_launchable: what any kernel of Kiln keeps to, whatever an entry says of itself.
#include "isa_checks/target/target_table.h"
#include "runtime/cache/entry.h"
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr int max_block = 4096;                               // bytes of arguments; HIP takes no more
constexpr std::int64_t max_workspace = std::int64_t{1} << 32; // bytes
constexpr std::int64_t max_count = std::int64_t{1} << 31;     // of units of one workgroup, or workgroups of one unit
constexpr int max_alignment = 4096;                           // bytes or elements

[[noreturn]] void refuse(const std::string& fact) { throw CorruptEntry(fact); }

int size_of(ArgumentKind kind) {
  using enum ArgumentKind;
  return kind == scalar || kind == size || kind == stride ? 4 : 8;
}

void check_arguments(const CachedKernel& kernel) {
  using enum ArgumentKind;
  int end = 0, workspaces = 0;
  for (const KernelArgument& a : kernel.arguments) {
    if (a.size != size_of(a.kind)) refuse(fmt::format("its argument {} has {} bytes, not {}", a.name, a.size, size_of(a.kind)));
    if (a.offset < end || a.offset % a.size != 0 || a.offset > max_block - a.size)
      refuse(fmt::format("its argument {} lies at {}, after {} bytes of others", a.name, a.offset, end));
    if (a.alignment < 0 || a.alignment > max_alignment) refuse(fmt::format("its argument {} is aligned to {}", a.name, a.alignment));
    if (a.kind == scalar && a.dtype != DType::f32 && a.dtype != DType::i32)
      refuse(fmt::format("its scalar {} is {}", a.name, to_string(a.dtype)));
    end = a.offset + a.size;
    workspaces += a.kind == workspace ? 1 : 0;
  }
  if (kernel.workspace_bytes < 0 || kernel.workspace_bytes > max_workspace || workspaces > 1 ||
      (workspaces == 1) != (kernel.workspace_bytes > 0))
    refuse(fmt::format("it has {} workspaces of {} bytes", workspaces, kernel.workspace_bytes));
}

void check_launch(const Launch& launch) {
  if (launch.threads < wave_size || launch.threads > max_workgroup_size || launch.threads % wave_size != 0)
    refuse(fmt::format("its workgroups have {} threads", launch.threads));
  for (const std::int64_t count : {launch.units_per_block, launch.blocks_per_unit})
    if (count < 1 || count > max_count)
      refuse(fmt::format("a workgroup takes {} units, and {} workgroups a unit", launch.units_per_block, launch.blocks_per_unit));
  if (launch.units < 1) refuse(fmt::format("it has {} units", launch.units));
  std::int64_t units = launch.units; // run-time sizes are checked when they are known (bind)
  for (const Dim& dim : launch.dims)
    if (!dim.is_dynamic() && (dim.size() < 1 || dim.size() > max_dim_size || __builtin_mul_overflow(units, dim.size(), &units)))
      refuse(fmt::format("its grid covers {} units of {}", launch.units, dim.text()));
  for (const Launch& other : launch.behind) check_launch(other);
}

} // namespace

void check_launchable(const CachedKernel& kernel) {
  if (isa::find_target(kernel.arch) == nullptr) refuse(fmt::format("it is for {}", kernel.arch));
  if (kernel.name != kernel_name(field_of(kernel.key, "spec"))) refuse(fmt::format("its kernel is {}, not that of its spec", kernel.name));
  if (kernel.arch != field_of(kernel.key, "arch")) refuse(fmt::format("it is for {}, and its key for another", kernel.arch));
  check_arguments(kernel);
  check_launch(kernel.launch);
}

} // namespace kiln
