// Kernel arguments, dispatch packet, code image, and the initial registers of a wave (LLVM's AMDGPUUsage, "Initial Kernel
// Execution State", for gfx942 and gfx950: architected flat scratch, packed work-item ids).
#include "isa_checks/exec/run/dispatch.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace kiln::exec {
namespace {

void check_grid(const isa::Kernel& kernel, const isa::TargetFacts& target, const Grid& grid, u32 lds_bytes) {
  u64 items = 1, groups = 1;
  for (int d = 0; d < 3; ++d) {
    items *= grid.workgroup_size[static_cast<std::size_t>(d)];
    groups *= grid.workgroups[static_cast<std::size_t>(d)];
  }
  const u64 limit = kernel.metadata && kernel.metadata->max_flat_workgroup_size ? *kernel.metadata->max_flat_workgroup_size
                                                                                : static_cast<u64>(max_workgroup_size);
  if (items == 0 || items > limit)
    throw isa::Error("kernel " + kernel.name, fmt::format("a workgroup of {} work items, the kernel takes 1 to {}", items, limit),
                     "choose another workgroup size");
  if (groups > 0xffffffffULL)
    throw isa::Error("kernel " + kernel.name, fmt::format("a grid of {} workgroups", groups), "launch fewer than 2^32");
  if (lds_bytes > static_cast<u32>(target.lds_bytes))
    throw isa::Error("kernel " + kernel.name, fmt::format("{} bytes of LDS, {} has {}", lds_bytes, target.name, target.lds_bytes),
                     "ask for less dynamic LDS");
}

void check_sizes(const isa::Kernel& kernel, u64 kernarg_bytes) {
  constexpr u64 max_private = 131'056; // bytes per lane: LLVM's limit of 8191 units of 1 KiB per wave
  constexpr u64 max_arguments = 1U << 20;
  if (const u64 bytes = kernel.descriptor.private_segment_bytes; bytes > max_private)
    throw isa::Error("kernel " + kernel.name, fmt::format("{} bytes of private memory a lane, the hardware has {}", bytes, max_private),
                     "the descriptor is damaged, or private arrays are too large");
  if (kernarg_bytes > max_arguments)
    throw isa::Error("kernel " + kernel.name, fmt::format("{} bytes of arguments, the executor takes {}", kernarg_bytes, max_arguments),
                     "the descriptor or the metadata is damaged");
}

u64 hidden_value(std::string_view kind, const Grid& grid) {
  const auto by_axis = [&](std::string_view prefix, auto value) -> u64 {
    for (std::size_t d = 0; d < 3; ++d)
      if (kind.size() == prefix.size() + 1 && kind.back() == "xyz"[d]) return value(d);
    return 0;
  };
  const auto is = [&](std::string_view prefix) { return kind.starts_with(prefix); };
  if (is("hidden_block_count_")) return by_axis("hidden_block_count_", [&](std::size_t d) { return grid.workgroups[d]; });
  if (is("hidden_group_size_")) return by_axis("hidden_group_size_", [&](std::size_t d) { return grid.workgroup_size[d]; });
  if (kind == "hidden_grid_dims")
    return grid.workgroups[2] > 1 || grid.workgroup_size[2] > 1 ? 3 : grid.workgroups[1] > 1 || grid.workgroup_size[1] > 1 ? 2 : 1;
  if (kind == "hidden_private_base") return private_aperture >> 32;
  if (kind == "hidden_shared_base") return shared_aperture >> 32;
  if (kind == "hidden_dynamic_lds_size") return grid.dynamic_lds;
  return 0; // remainders and global offsets of whole workgroups, and pointers to services that are not there
}

std::vector<std::byte> kernarg_segment(const isa::Kernel& kernel, const Grid& grid, std::span<const std::byte> arguments) {
  const u64 declared = std::max<u64>(kernel.descriptor.kernarg_bytes, kernel.metadata ? kernel.metadata->kernarg_bytes.value_or(0) : 0);
  check_sizes(kernel, declared);
  u64 explicit_bytes = declared;
  std::vector<std::byte> segment(declared);
  if (kernel.metadata) {
    explicit_bytes = 0;
    for (const isa::KernelArgument& a : kernel.metadata->arguments) {
      if (!a.hidden()) {
        explicit_bytes = std::max<u64>(explicit_bytes, u64{a.offset} + a.size);
        continue;
      }
      const u64 value = hidden_value(a.value_kind, grid);
      if (u64{a.offset} + a.size <= segment.size()) std::memcpy(segment.data() + a.offset, &value, std::min<u64>(a.size, 8));
    }
    if (arguments.size() < explicit_bytes || (arguments.size() > explicit_bytes && arguments.size() > segment.size()))
      throw isa::Error("kernel " + kernel.name, fmt::format("{} bytes of arguments given, it takes {}", arguments.size(), explicit_bytes),
                       "pass every explicit argument at its offset");
  } else if (arguments.size() > segment.size()) {
    segment.resize(arguments.size());
    explicit_bytes = arguments.size();
  }
  std::copy_n(arguments.begin(), std::min<u64>({arguments.size(), explicit_bytes, segment.size()}), segment.begin());
  return segment;
}

// hsa_kernel_dispatch_packet_t: what kernels read through the dispatch pointer.
std::array<std::byte, 64> dispatch_packet(const Grid& grid, u64 kernarg) {
  std::array<std::byte, 64> packet{};
  const auto put = [&](std::size_t at, auto value) { std::memcpy(packet.data() + at, &value, sizeof value); };
  put(2, std::uint16_t{3});
  for (std::size_t d = 0; d < 3; ++d) {
    put(4 + 2 * d, static_cast<std::uint16_t>(grid.workgroup_size[d]));
    put(12 + 4 * d, grid.workgroups[d] * grid.workgroup_size[d]);
  }
  put(40, kernarg);
  return packet;
}

u64 load_image(const isa::CodeObject& object, const isa::Kernel& kernel, Memory& memory) {
  u64 size = 0;
  const auto loaded = [&](const isa::ElfSection& s) { return (s.flags & 2U) != 0; }; // SHF_ALLOC
  const auto& sections = object.sections();
  if (object.relocatable()) {
    const auto& code = sections[kernel.section];
    const u64 base = memory.allocate("code object", code.bytes.size());
    std::memcpy(memory.bytes(base).data(), code.bytes.data(), code.bytes.size());
    return base;
  }
  constexpr u64 largest = 1ULL << 28; // sections further away are not loaded: only damaged files have them
  const auto fits = [&](const isa::ElfSection& s, u64 limit) { return s.address < limit && s.size <= limit - s.address; };
  for (const isa::ElfSection& s : sections)
    if (loaded(s) && fits(s, largest)) size = std::max(size, s.address + s.size);
  const u64 base = memory.allocate("code object", size);
  const std::span<std::byte> image = memory.bytes(base);
  for (const isa::ElfSection& s : sections)
    if (loaded(s) && !s.bytes.empty() && fits(s, size) && s.bytes.size() <= s.size)
      std::memcpy(image.data() + s.address, s.bytes.data(), s.bytes.size());
  return base;
}

u64 next_random(u64& state) { // splitmix64
  u64 z = (state += 0x9e3779b97f4a7c15ULL);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

int scalar_registers(const Dispatch& dispatch, Wave& wave) {
  const isa::KernelDescriptor& d = dispatch.kernel->descriptor;
  int next = 0;
  const auto pair = [&](bool wanted, u64 value) {
    if (!wanted) return;
    wave.set_pair(next, value);
    next += 2;
  };
  if (d.sgpr_private_segment_buffer) next += 4;
  pair(d.sgpr_dispatch_ptr, dispatch.packet);
  pair(d.sgpr_queue_ptr, 0);
  pair(d.sgpr_kernarg_segment_ptr, dispatch.kernarg);
  pair(d.sgpr_dispatch_id, 0);
  pair(d.sgpr_flat_scratch_init, 0);
  if (d.sgpr_private_segment_size) wave.s[next++] = dispatch.scratch_bytes;
  for (const u32 word : dispatch.preloaded)
    if (next < 16) wave.s[next++] = word;
  next = std::max<int>(next, d.user_sgprs);
  if (d.workgroup_id_x) wave.s[next++] = wave.group->id[0];
  if (d.workgroup_id_y) wave.s[next++] = wave.group->id[1];
  if (d.workgroup_id_z) wave.s[next++] = wave.group->id[2];
  if (d.workgroup_info) wave.s[next++] = static_cast<u32>(dispatch.waves) | (wave.index == 0 ? 1U << 26 : 0U);
  return next;
}

void work_item_ids(const Dispatch& dispatch, Wave& wave) {
  const auto& size = dispatch.grid.workgroup_size;
  const u32 items = size[0] * size[1] * size[2];
  u64 exec = 0;
  for (int i = 0; i < lane_count; ++i) {
    const u32 flat = static_cast<u32>(wave.index * lane_count + i);
    const u32 x = flat % size[0], y = flat / size[0] % size[1], z = flat / size[0] / size[1];
    if (flat < items) exec |= 1ULL << i;
    wave.lanes(0)[i] = x | y << 10 | z << 20;
  }
  wave.set_pair(code::exec, exec);
}

u32 initial_mode(const isa::KernelDescriptor& d) {
  return u32{d.float_round_mode_32} | u32{d.float_round_mode_16_64} << 2 | u32{d.float_denorm_mode_32} << 4 |
         u32{d.float_denorm_mode_16_64} << 6 | (d.dx10_clamp ? 1U << 8 : 0U) | (d.ieee_mode ? 1U << 9 : 0U) |
         (d.fp16_overflow ? 1U << 23 : 0U);
}

} // namespace

Dispatch prepare_dispatch(const isa::CodeObject& object, const isa::Kernel& kernel, const ExecProgram& program, const Grid& grid,
                          std::span<const std::byte> arguments, Memory& memory, int slots, bool preload) {
  const isa::KernelDescriptor& d = kernel.descriptor;
  Dispatch dispatch;
  dispatch.kernel = &kernel;
  dispatch.grid = grid;
  dispatch.lds_bytes = d.group_segment_bytes + grid.dynamic_lds;
  check_grid(kernel, object.target(), grid, dispatch.lds_bytes);
  const u32 items = grid.workgroup_size[0] * grid.workgroup_size[1] * grid.workgroup_size[2];
  dispatch.waves = static_cast<int>((items + lane_count - 1) / lane_count);

  const std::vector<std::byte> segment = kernarg_segment(kernel, grid, arguments);
  // Compilers widen argument loads up to the alignment of the segment; the runtime allocates it in such units.
  constexpr std::size_t kernarg_unit = 64;
  dispatch.kernarg = memory.allocate("kernel arguments", (segment.size() + kernarg_unit - 1) / kernarg_unit * kernarg_unit, false);
  std::copy(segment.begin(), segment.end(), memory.bytes(dispatch.kernarg).begin());
  const auto packet = dispatch_packet(grid, dispatch.kernarg);
  dispatch.packet = memory.allocate("dispatch packet", packet.size(), false);
  std::copy(packet.begin(), packet.end(), memory.bytes(dispatch.packet).begin());
  dispatch.code_base = load_image(object, kernel, memory);
  dispatch.scratch_bytes = (d.private_segment_bytes + 3) / 4 * 4;
  dispatch.scratch_slots = slots * dispatch.waves;
  dispatch.scratch = memory.allocate("private memory", u64{dispatch.scratch_bytes} * lane_count * static_cast<u64>(dispatch.scratch_slots));

  // A kernel with preloaded arguments starts with a 256-byte block that loads them on firmware that does not preload.
  const bool preloads = preload && d.preload_dwords > 0;
  dispatch.entry = program.index_of(kernel.entry + (preloads ? 256 : 0));
  if (dispatch.entry == ~0U)
    throw isa::Error("kernel " + kernel.name, "has preloaded arguments but no instruction 256 bytes after its entry",
                     "assemble it with the preload prologue, or without preloaded arguments");
  for (u32 i = 0; preloads && i < d.preload_dwords; ++i) {
    u32 word = 0;
    const std::size_t at = (u32{d.preload_offset_dwords} + i) * 4;
    if (at + 4 <= segment.size()) std::memcpy(&word, segment.data() + at, 4);
    dispatch.preloaded.push_back(word);
  }
  return dispatch;
}

int start_wave(const Dispatch& dispatch, Wave& wave, int slot, u64 seed) {
  // What nothing has written holds noise, so that a kernel that depends on it shows.
  u64 state = seed ^ (static_cast<u64>(wave.index) << 32);
  for (u32& word : wave.s) word = static_cast<u32>(next_random(state));
  const u32 noise = static_cast<u32>(next_random(state)) | 0x7fc00000U;
  const auto used = std::min<std::size_t>(dispatch.kernel->descriptor.vgprs, max_vgprs);
  std::memset(wave.vector.get(), static_cast<int>(noise & 0xffU), sizeof(Lanes) * std::max<std::size_t>(used, 1));
  wave.scc = false;
  wave.mode = initial_mode(dispatch.kernel->descriptor);
  wave.pc = wave.next = dispatch.entry;
  wave.state = WaveState::running;
  wave.executed = 0;
  wave.code_base = dispatch.code_base;
  wave.scratch_size = dispatch.scratch_bytes;
  wave.scratch_base = dispatch.scratch + static_cast<u64>(slot) * dispatch.scratch_bytes * lane_count;
  work_item_ids(dispatch, wave);
  return scalar_registers(dispatch, wave);
}

} // namespace kiln::exec
