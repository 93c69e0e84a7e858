// Metadata: what the compiler says about each kernel in the code object's AMDGPU note (a MessagePack document).
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa {

struct KernelArgument {
  std::string name;                   // "" when the compiler did not keep it
  std::string type_name;              // "" likewise
  std::uint32_t offset = 0, size = 0; // bytes in the kernarg segment
  std::string value_kind;             // "by_value", "global_buffer", "hidden_block_count_x", ...
  std::string address_space;          // "global", "local", ..., or ""
  bool hidden() const { return value_kind.starts_with("hidden_"); }
  bool operator==(const KernelArgument&) const = default;
};

// A key that the note lacks (hand-written objects leave many out) is an empty optional, never a guess.
struct KernelMetadata {
  std::string name;
  std::string symbol;                      // the descriptor's: name + ".kd"
  std::optional<std::uint32_t> vgpr_count; // architectural + accumulation registers
  std::optional<std::uint32_t> agpr_count; // a part of vgpr_count
  std::optional<std::uint32_t> sgpr_count;
  std::optional<std::uint32_t> vgpr_spill_count, sgpr_spill_count;
  std::optional<std::uint32_t> group_segment_bytes;   // static LDS
  std::optional<std::uint32_t> private_segment_bytes; // scratch per lane
  std::optional<std::uint32_t> kernarg_bytes, kernarg_align;
  std::optional<std::uint32_t> wavefront_size;
  std::optional<std::uint32_t> max_flat_workgroup_size;
  std::optional<std::array<std::uint32_t, 3>> required_workgroup_size;
  std::optional<bool> uses_dynamic_stack;
  std::optional<std::uint32_t> uniform_workgroup_size; // 1: the grid is made of whole workgroups
  std::vector<KernelArgument> arguments;               // hidden ones included
  bool operator==(const KernelMetadata&) const = default;
};

struct Metadata {
  std::string target; // "amdgcn-amd-amdhsa--gfx942:xnack-", or "" when absent
  std::vector<KernelMetadata> kernels;
};

// `document` is the note's description. Unknown keys are passed over; a known key of the wrong kind counts as missing, and so
// does an argument without size or kind, and a kernel without name and symbol. Takes at most 128 bytes of memory for each byte of
// the note. Throws Error when it is not MessagePack, or nests deeper than 32 levels.
Metadata parse_metadata(std::span<const std::uint8_t> document, const std::string& subject);

} // namespace kiln::isa
