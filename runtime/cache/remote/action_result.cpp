// ActionResult: the few fields of it that a kernel needs, encoded and decoded.
#include "runtime/cache/remote/action_result.h"

namespace kiln {
namespace {

enum WireType : unsigned { varint = 0, fixed64 = 1, length_delimited = 2, fixed32 = 5 };
constexpr std::size_t max_files = 64; // an entry has four; each costs more memory than its two bytes on the wire
constexpr unsigned result_files = 2, file_path = 1, file_digest = 2, digest_hash = 1, digest_size = 2;

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_bytes(std::string& out, unsigned field, std::string_view bytes) {
  put_varint(out, (field << 3) | length_delimited);
  put_varint(out, bytes.size());
  out += bytes;
}

std::optional<std::uint64_t> take_varint(std::string_view& in) {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64 && !in.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(in.front());
    in.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return value;
  }
  return std::nullopt;
}

struct Field {
  unsigned number = 0, type = 0;
  std::uint64_t value = 0; // of a varint
  std::string_view bytes;  // of a length-delimited field
};

std::optional<Field> take_field(std::string_view& in) {
  const auto tag = take_varint(in);
  if (!tag) return std::nullopt;
  Field field{.number = static_cast<unsigned>(*tag >> 3), .type = static_cast<unsigned>(*tag & 7), .value = 0, .bytes = {}};
  std::uint64_t size = field.type == fixed64 ? 8 : 4;
  if (field.type == varint || field.type == length_delimited) {
    const auto number = take_varint(in);
    if (!number) return std::nullopt;
    field.value = size = *number;
    if (field.type == varint) return field;
  } else if (field.type != fixed64 && field.type != fixed32) {
    return std::nullopt;
  }
  if (size > in.size()) return std::nullopt;
  field.bytes = in.substr(0, static_cast<std::size_t>(size));
  in.remove_prefix(static_cast<std::size_t>(size));
  return field;
}

// Calls `visit` for every field of a message; false when it is malformed.
template <typename Visit> bool each_field(std::string_view message, const Visit& visit) {
  while (!message.empty()) {
    const std::optional<Field> field = take_field(message);
    if (!field || !visit(*field)) return false;
  }
  return true;
}

bool decode_digest(std::string_view bytes, OutputFile& file) {
  return each_field(bytes, [&](const Field& field) {
    if (field.number == digest_hash && field.type == length_delimited) file.sha256 = field.bytes;
    if (field.number == digest_size && field.type == varint) file.size = field.value;
    return true;
  });
}

bool decode_file(std::string_view bytes, OutputFile& file) {
  return each_field(bytes, [&](const Field& field) {
    if (field.number == file_path && field.type == length_delimited) file.path = field.bytes;
    return field.number != file_digest || field.type != length_delimited || decode_digest(field.bytes, file);
  });
}

} // namespace

std::string encode_action_result(const std::vector<OutputFile>& files) {
  std::string result;
  for (const OutputFile& file : files) {
    std::string digest, message;
    put_bytes(digest, digest_hash, file.sha256);
    put_varint(digest, (digest_size << 3) | varint);
    put_varint(digest, file.size);
    put_bytes(message, file_path, file.path);
    put_bytes(message, file_digest, digest);
    put_bytes(result, result_files, message);
  }
  return result;
}

std::optional<std::vector<OutputFile>> decode_action_result(std::string_view bytes) {
  std::vector<OutputFile> files;
  const bool well_formed = each_field(bytes, [&](const Field& field) {
    if (field.number != result_files || field.type != length_delimited) return true;
    return files.size() < max_files && decode_file(field.bytes, files.emplace_back());
  });
  if (!well_formed) return std::nullopt;
  return files;
}

} // namespace kiln
