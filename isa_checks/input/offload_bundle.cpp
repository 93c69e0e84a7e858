// Reading offload bundles.
#include "isa_checks/input/offload_bundle.h"
#include "isa_checks/error.h"
#include "isa_checks/input/byte_source.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <vector>

namespace kiln::isa {
namespace {

constexpr std::string_view plain_mark = "__CLANG_OFFLOAD_BUNDLE__", compressed_mark = "CCOB";
// Far above what exists (an entry an architecture), and low enough that a header that lies costs nothing.
constexpr std::uint64_t max_entries = 4096, longest_id = 4096;
// A code object of more is refused, so that a few compressed bytes cannot ask for all memory.
constexpr std::uint64_t largest_entry = std::uint64_t{512} << 20;
// What a compressed bundle may state as its size: bytes for each compressed byte, or bytes. Shipped bundles reach 87 times, with the
// padding between their code objects; small files must not ask for much.
constexpr std::uint64_t max_ratio = 1024, always_allowed = 4 << 20;

bool begins_with(std::span<const std::uint8_t> bytes, std::string_view mark) {
  return bytes.size() >= mark.size() && std::memcmp(bytes.data(), mark.data(), mark.size()) == 0;
}

struct Header {
  std::uint64_t offset = 0, size = 0;
  std::string id;
};

class Reader {
public:
  Reader(ByteSource& source, const std::string& name, const BundleVisitor& visitor) : source_(source), name_(name), visitor_(visitor) {}

  // Returns the bytes up to the end of the last entry. `to_the_end`: also what lies behind the last wanted entry has to be there.
  std::uint64_t run(bool to_the_end) {
    std::vector<Header> headers = read_headers();
    std::uint64_t end = at_;
    std::erase_if(headers, [](const Header& h) { return h.size == 0; });
    std::ranges::stable_sort(headers, {}, &Header::offset);
    std::size_t open = 0; // up to the last one that is wanted
    std::vector<bool> wanted;
    for (const Header& header : headers) {
      wanted.push_back(visitor_.wanted(entry_of(header)));
      if (wanted.back() || to_the_end) open = wanted.size();
    }
    for (std::size_t n = 0; n < headers.size(); ++n) {
      const Header& header = headers[n];
      if (header.offset < end)
        fail(fmt::format("its entry '{}' begins at byte {}, inside of what lies before it", header.id, header.offset));
      end = header.offset + header.size;
      if (n >= open) continue;
      advance(header.offset - at_, header);
      if (wanted[n]) visitor_.entry(entry_of(header), take(header));
      else advance(header.size, header);
    }
    return end;
  }

private:
  static BundleEntry entry_of(const Header& header) { return {header.id, arch_of_id(header.id), header.size}; }

  [[noreturn]] void fail(std::string fact) const { throw Error(name_, std::move(fact), "rebuild it, or check that it was copied whole"); }

  void read(std::span<std::uint8_t> to, std::string_view what) {
    if (source_.read(to) != to.size()) fail(fmt::format("its offload bundle ends inside {}", what));
    at_ += to.size();
  }
  std::uint64_t read_number(std::string_view what) {
    std::uint64_t value = 0;
    read({reinterpret_cast<std::uint8_t*>(&value), sizeof value}, what);
    return value;
  }

  std::vector<Header> read_headers() {
    std::uint8_t mark[plain_mark.size()];
    read(mark, "its first 24 bytes");
    if (!begins_with(mark, plain_mark)) fail("what it decompresses to is no offload bundle");
    const std::uint64_t count = read_number("the count of its entries");
    if (count > max_entries) fail(fmt::format("its offload bundle claims {} entries, at most {} are read", count, max_entries));
    std::vector<Header> headers(count);
    for (Header& h : headers) {
      h.offset = read_number("an entry's offset");
      h.size = read_number("an entry's size");
      const std::uint64_t length = read_number("the length of an entry's id");
      if (length > longest_id) fail(fmt::format("its offload bundle has an id of {} bytes, at most {} are read", length, longest_id));
      h.id.resize(length);
      read({reinterpret_cast<std::uint8_t*>(h.id.data()), h.id.size()}, "an entry's id");
      if (h.size > ~std::uint64_t{0} - h.offset) fail(fmt::format("its entry '{}' has a size of {}", h.id, h.size));
    }
    return headers;
  }

  void advance(std::uint64_t count, const Header& header) {
    if (source_.skip(count) != count)
      fail(fmt::format("its entry '{}' of {} bytes at byte {} lies outside of it", header.id, header.size, header.offset));
    at_ += count;
  }

  Bytes take(const Header& header) {
    if (header.size > largest_entry)
      fail(fmt::format("its entry '{}' claims {} bytes, at most {} are read", header.id, header.size, largest_entry));
    constexpr std::size_t piece = 4 << 20; // a size that lies must not take memory that nothing fills
    Bytes bytes;
    while (bytes.size() < header.size) {
      const std::size_t done = bytes.size(), part = std::min<std::size_t>(piece, header.size - done);
      bytes.resize(done + part);
      if (source_.read(std::span(bytes).subspan(done)) != part)
        fail(fmt::format("its entry '{}' of {} bytes at byte {} lies outside of it", header.id, header.size, header.offset));
    }
    at_ += header.size;
    return bytes;
  }

  ByteSource& source_;
  const std::string& name_;
  const BundleVisitor& visitor_;
  std::uint64_t at_ = 0; // bytes taken from the source
};

struct CompressedHeader {
  Compression method = Compression::zstd;
  std::uint64_t header_bytes = 0;
  std::uint64_t file_bytes = 0;    // header included; 0: the version does not say
  std::uint64_t content_bytes = 0; // decompressed
};

// Version 1: mark, version and method (2 bytes each), size of the content (4), hash (8). Version 2 has the size of the
// file (4) before that of the content; version 3 both with 8 bytes (clang's OffloadBundler.cpp).
CompressedHeader read_compressed_header(std::span<const std::uint8_t> bytes, const std::string& name) {
  const auto fail = [&](std::string fact, const char* remedy) { throw Error(name, std::move(fact), remedy); };
  const char* const damaged = "rebuild it, or check that it was copied whole";
  const auto number = [&](std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    if (at + size > bytes.size()) fail("its compressed offload bundle ends inside its header", damaged);
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  };
  const std::uint64_t version = number(4, 2), method = number(6, 2);
  if (version < 1 || version > 3)
    fail(fmt::format("its compressed offload bundle has version {}, 1 to 3 are read", version), "decompress it with clang-offload-bundler");
  if (method > 1) fail(fmt::format("its compressed offload bundle names method {}, 0 (zlib) and 1 (zstd) are read", method), damaged);
  CompressedHeader header{.method = static_cast<Compression>(method), .header_bytes = version == 1 ? 20U : version == 2 ? 24U : 32U};
  number(header.header_bytes - 1, 1);
  if (version > 1) {
    header.file_bytes = number(8, version == 2 ? 4 : 8);
    if (header.file_bytes < header.header_bytes || header.file_bytes > bytes.size())
      fail(fmt::format("its compressed offload bundle claims {} bytes, {} are there", header.file_bytes, bytes.size()), damaged);
  }
  header.content_bytes = number(version == 1 ? 8 : version == 2 ? 12 : 16, version == 3 ? 8 : 4);
  const std::uint64_t compressed = (header.file_bytes > 0 ? header.file_bytes : bytes.size()) - header.header_bytes;
  if (header.content_bytes > std::max(always_allowed, max_ratio * compressed))
    fail(fmt::format("it is too large: its {} compressed bytes become {}, at most {} times as many or {} MiB are read", compressed,
                     header.content_bytes, max_ratio, always_allowed >> 20),
         "decompress it with clang-offload-bundler");
  return header;
}

std::uint64_t read_compressed(std::span<const std::uint8_t> bytes, const std::string& name, const BundleVisitor& visitor) {
  const CompressedHeader header = read_compressed_header(bytes, name);
  const auto body = header.file_bytes > 0 ? bytes.first(header.file_bytes) : bytes;
  const auto source = decompress(header.method, body.subspan(header.header_bytes), header.content_bytes, name);
  Reader(*source, name, visitor).run(false);
  if (header.file_bytes > 0) return header.file_bytes;
  source->skip(~std::uint64_t{0}); // version 1 ends where its frame does
  return header.header_bytes + source->consumed();
}

} // namespace

bool is_bundle(std::span<const std::uint8_t> bytes) { return begins_with(bytes, plain_mark) || begins_with(bytes, compressed_mark); }

std::string_view arch_of_id(std::string_view id) {
  const std::size_t at = id.rfind("-gfx");
  if (at == id.npos) return {};
  id.remove_prefix(at + 1);
  return id.substr(0, id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"));
}

std::uint64_t read_bundle(std::span<const std::uint8_t> bytes, const std::string& name, const BundleVisitor& visitor) {
  if (begins_with(bytes, compressed_mark)) return read_compressed(bytes, name, visitor);
  MemorySource source(bytes);
  return Reader(source, name, visitor).run(true);
}

} // namespace kiln::isa
