// Archive: the ustar format of POSIX.1-1988, as far as regular files need it.
#include "runtime/cache/folder/archive.h"
#include "gen/error.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::size_t block = 512;
constexpr std::uint64_t max_bytes = 1u << 30; // of one file

using Block = std::array<char, block>;

struct Place {
  std::size_t at, size;
};
constexpr Place name_field{0, 100}, mode_field{100, 8}, owner_field{108, 8}, group_field{116, 8}, size_field{124, 12}, time_field{136, 12},
    sum_field{148, 8}, type_field{156, 1}, magic_field{257, 8}, prefix_field{345, 155};

void put(Block& header, Place place, const std::string& text) { std::memcpy(header.data() + place.at, text.data(), text.size()); }
void put_octal(Block& header, Place place, std::uint64_t value) { put(header, place, fmt::format("{:0{}o}", value, place.size - 1)); }

std::string text(const Block& header, Place place) {
  const std::string whole(header.data() + place.at, place.size);
  return whole.substr(0, whole.find('\0'));
}

std::uint64_t sum_of(Block header) {
  std::memset(header.data() + sum_field.at, ' ', sum_field.size);
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  return sum;
}

std::uint64_t octal(const Block& header, Place place) {
  std::uint64_t value = 0;
  for (const char c : text(header, place)) {
    if (c == ' ') continue;
    if (c < '0' || c > '7') return max_bytes + 1;
    value = value * 8 + static_cast<std::uint64_t>(c - '0');
  }
  return value;
}

// The header's size is a claim: memory grows with what really comes.
bool read_padded(std::istream& archive, std::uint64_t size, std::string& bytes) {
  constexpr std::uint64_t piece = 1u << 20;
  const std::uint64_t padded = (size + block - 1) / block * block;
  while (bytes.size() < padded) {
    const std::size_t at = bytes.size(), next = static_cast<std::size_t>(std::min(padded - at, piece));
    bytes.resize(at + next);
    if (!archive.read(bytes.data() + at, static_cast<std::streamsize>(next))) return false;
  }
  bytes.resize(static_cast<std::size_t>(size));
  return true;
}

bool leaves_folder(const std::string& path) { return path.starts_with('/') || ("/" + path + "/").find("/../") != std::string::npos; }

} // namespace

void write_archive_file(std::ostream& archive, const std::string& path, const std::string& bytes) {
  if (path.size() > name_field.size) throw InternalError(fmt::format("the path {} is too long for an archive", path));
  Block header{};
  put(header, name_field, path);
  put_octal(header, mode_field, 0644);
  put_octal(header, owner_field, 0);
  put_octal(header, group_field, 0);
  put_octal(header, size_field, bytes.size());
  put_octal(header, time_field, 0);
  header[type_field.at] = '0';
  put(header, magic_field, std::string("ustar\00000", 8));
  put(header, sum_field, fmt::format("{:06o}", sum_of(header)));
  header[sum_field.at + 7] = ' '; // after six digits and a zero
  archive.write(header.data(), block);
  archive.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const Block padding{};
  archive.write(padding.data(), static_cast<std::streamsize>((block - bytes.size() % block) % block));
}

void end_archive(std::ostream& archive) {
  const Block zeros{};
  for (int i = 0; i < 2; ++i) archive.write(zeros.data(), block);
}

void read_archive(std::istream& archive, const std::string& name,
                  const std::function<void(const std::string& path, std::string bytes)>& file) {
  const auto fail = [&](const std::string& fact) { throw UserError(name, fact, "give a file that kiln cache export made"); };
  while (true) {
    Block header{};
    if (!archive.read(header.data(), block)) fail("it is cut off: it has no end mark");
    if (header == Block{}) return;
    const std::uint64_t size = octal(header, size_field);
    if (octal(header, sum_field) != sum_of(header) || size > max_bytes) fail("it is no tar archive");
    const std::string prefix = text(header, prefix_field);
    const std::string path = (prefix.empty() ? "" : prefix + "/") + text(header, name_field);
    std::string bytes;
    if (!read_padded(archive, size, bytes)) fail(fmt::format("it is cut off within {}", path));
    if (leaves_folder(path)) fail(fmt::format("the path {} leaves the folder", path));
    const char type = header[type_field.at];
    if (type == '0' || type == '\0') file(path, std::move(bytes));
  }
}

} // namespace kiln
