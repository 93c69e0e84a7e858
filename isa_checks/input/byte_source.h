// ByteSource: bytes that come in order, from memory or out of a decompressor, so that a bundle need not be held whole.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace kiln::isa {

class ByteSource {
public:
  ByteSource() = default;
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;
  virtual ~ByteSource() = default;
  // Fills `to`; returns how much of it, which is less only where the source ends. Throws Error for damaged bytes.
  virtual std::size_t read(std::span<std::uint8_t> to) = 0;
  // Passes over `count` bytes; returns how many there were.
  virtual std::uint64_t skip(std::uint64_t count);
};

class MemorySource : public ByteSource {
public:
  explicit MemorySource(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::size_t read(std::span<std::uint8_t> to) override;
  std::uint64_t skip(std::uint64_t count) override;

private:
  std::span<const std::uint8_t> bytes_;
};

enum class Compression : std::uint16_t { zlib = 0, zstd = 1 }; // the numbers of llvm::compression::Format

// A decompressor over one compressed frame at the start of a span.
class Decompressor : public ByteSource {
public:
  // How many compressed bytes the frame turned out to have; known once it has been read to its end.
  virtual std::uint64_t consumed() const = 0;
};

// `compressed` must live as long as the result. A stream that gives more than `most` bytes is an error. `name` is the subject of errors.
std::unique_ptr<Decompressor> decompress(Compression method, std::span<const std::uint8_t> compressed, std::uint64_t most,
                                         std::string name);

} // namespace kiln::isa
