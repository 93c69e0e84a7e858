// ActionResult: the record under /ac/ of a remote cache, in the protocol buffers of Bazel's remote execution API
// (build.bazel.remote.execution.v2): output_files (2) of path (1) and digest (2) of hash (1) and size_bytes (2).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

struct OutputFile {
  std::string path;       // "kernel.co"
  std::string sha256;     // 64 digits
  std::uint64_t size = 0; // bytes
  bool operator==(const OutputFile&) const = default;
};

std::string encode_action_result(const std::vector<OutputFile>& files);
// Nothing when the bytes are no such message. Fields that Kiln does not write are skipped.
std::optional<std::vector<OutputFile>> decode_action_result(std::string_view bytes);

} // namespace kiln
