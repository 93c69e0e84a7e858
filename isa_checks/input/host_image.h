// Host programs and libraries that carry device code: where in the file their offload bundles lie.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::isa {

// A 64-bit little-endian ELF file of another machine than AMDGPU.
bool is_host_elf(std::span<const std::uint8_t> file);

struct FileRange {
  std::uint64_t offset = 0, size = 0; // in the file
};

// The ranges that hold bundles, one after the other: the sections .hip_fatbin, and without those what the wrappers in
// .hipFatBinSegment point at (a range then reaches to the end of its section). Empty when the file has no device code.
// Throws Error for malformed section headers. `name` is the subject of errors.
std::vector<FileRange> find_device_code(std::span<const std::uint8_t> file, const std::string& name);

} // namespace kiln::isa
