// Sources over memory, zlib and zstd.
#include "isa_checks/input/byte_source.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <zlib.h>
#include <zstd.h>

namespace kiln::isa {
namespace {

// Far above what code objects compress to (20 times, with their padding), and low enough that small files ask for little.
constexpr std::uint64_t most_ratio = 64, always_allowed = 4 << 20; // bytes out for each byte in; bytes
// 128 MiB, what zstd itself takes without being asked, and what clang's long-distance matching uses at most.
constexpr int largest_zstd_window_log = 27;

// What a stream may decompress to; nothing more is read of it, or kept for it.
std::uint64_t most_output(std::size_t compressed) { return std::max(always_allowed, most_ratio * compressed); }

[[noreturn]] void damaged(const std::string& name, std::string_view method, std::string_view reason) {
  throw Error(name, fmt::format("its {} stream is damaged: {}", method, reason), "rebuild it, or check that it was copied whole");
}

void check_output(std::uint64_t bytes, std::uint64_t compressed, const std::string& name) {
  if (bytes > most_output(compressed))
    throw Error(name,
                fmt::format("its {} compressed bytes become more than {}, at most {} times as many or {} MiB are read", compressed,
                            most_output(compressed), most_ratio, always_allowed >> 20),
                "decompress it with clang-offload-bundler");
}

class ZlibSource : public Decompressor {
public:
  ZlibSource(std::span<const std::uint8_t> compressed, std::string name)
      : name_(std::move(name)), rest_(compressed), compressed_(compressed.size()) {
    if (inflateInit(&stream_) != Z_OK) throw std::bad_alloc();
  }
  ~ZlibSource() override { inflateEnd(&stream_); }

  std::size_t read(std::span<std::uint8_t> to) override {
    constexpr std::size_t most = std::numeric_limits<uInt>::max();
    std::size_t done = 0;
    while (done < to.size() && !ended_) {
      const std::size_t in = std::min(rest_.size(), most), out = std::min(to.size() - done, most);
      stream_.next_in = const_cast<Bytef*>(rest_.data()); // an interface older than const
      stream_.avail_in = static_cast<uInt>(in);
      stream_.next_out = to.data() + done;
      stream_.avail_out = static_cast<uInt>(out);
      const int status = inflate(&stream_, Z_NO_FLUSH);
      rest_ = rest_.subspan(in - stream_.avail_in);
      consumed_ += in - stream_.avail_in;
      done += out - stream_.avail_out;
      ended_ = status == Z_STREAM_END;
      if (status == Z_BUF_ERROR) damaged(name_, "zlib", "it ends early");
      if (status != Z_OK && !ended_) damaged(name_, "zlib", stream_.msg ? stream_.msg : "inflate refuses it");
    }
    check_output(produced_ += done, compressed_, name_);
    return done;
  }
  std::uint64_t consumed() const override { return consumed_; }

private:
  std::string name_;
  std::span<const std::uint8_t> rest_;
  std::uint64_t compressed_, produced_ = 0, consumed_ = 0;
  z_stream stream_{};
  bool ended_ = false;
};

class ZstdSource : public Decompressor {
public:
  ZstdSource(std::span<const std::uint8_t> compressed, std::string name)
      : name_(std::move(name)), in_{compressed.data(), compressed.size(), 0}, stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    const int needed = static_cast<int>(std::bit_width(most_output(compressed.size()) - 1));
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, std::min(needed, largest_zstd_window_log));
  }

  std::size_t read(std::span<std::uint8_t> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size && !ended_) {
      const std::size_t before_in = in_.pos, before_out = out.pos;
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(status)) damaged(name_, "zstd", ZSTD_getErrorName(status));
      ended_ = status == 0; // the frame is complete and flushed
      if (!ended_ && in_.pos == before_in && out.pos == before_out) damaged(name_, "zstd", "it ends early");
    }
    check_output(produced_ += out.pos, in_.size, name_);
    return out.pos;
  }
  std::uint64_t consumed() const override { return in_.pos; }

private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::string name_;
  ZSTD_inBuffer in_;
  std::uint64_t produced_ = 0;
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool ended_ = false;
};

} // namespace

std::uint64_t ByteSource::skip(std::uint64_t count) {
  std::array<std::uint8_t, 64 * 1024> scrap;
  std::uint64_t done = 0;
  while (done < count) {
    const std::size_t part = static_cast<std::size_t>(std::min<std::uint64_t>(count - done, scrap.size()));
    const std::size_t got = read(std::span(scrap).first(part));
    done += got;
    if (got < part) break;
  }
  return done;
}

std::size_t MemorySource::read(std::span<std::uint8_t> to) {
  const std::size_t count = std::min(to.size(), bytes_.size());
  if (count > 0) std::memcpy(to.data(), bytes_.data(), count);
  bytes_ = bytes_.subspan(count);
  return count;
}

std::uint64_t MemorySource::skip(std::uint64_t count) {
  count = std::min<std::uint64_t>(count, bytes_.size());
  bytes_ = bytes_.subspan(static_cast<std::size_t>(count));
  return count;
}

std::unique_ptr<Decompressor> decompress(Compression method, std::span<const std::uint8_t> compressed, std::string name) {
  if (method == Compression::zlib) return std::make_unique<ZlibSource>(compressed, std::move(name));
  return std::make_unique<ZstdSource>(compressed, std::move(name));
}

} // namespace kiln::isa
