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
#include <zstd_errors.h>

namespace kiln::isa {
namespace {

// 128 MiB, what zstd itself takes without being asked, and what clang's long-distance matching uses at most.
constexpr int largest_zstd_window_log = 27;

[[noreturn]] void damaged(const std::string& name, std::string_view method, std::string_view reason) {
  throw Error(name, fmt::format("its {} stream is damaged: {}", method, reason), "rebuild it, or check that it was copied whole");
}

void check_output(std::uint64_t bytes, std::uint64_t most, const std::string& name, std::string_view method) {
  if (bytes > most) damaged(name, method, fmt::format("it holds more than the {} bytes that its header states", most));
}

class ZlibSource : public Decompressor {
public:
  ZlibSource(std::span<const std::uint8_t> compressed, std::uint64_t most, std::string name)
      : name_(std::move(name)), rest_(compressed), most_(most) {
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
    check_output(produced_ += done, most_, name_, "zlib");
    return done;
  }
  std::uint64_t consumed() const override { return consumed_; }

private:
  std::string name_;
  std::span<const std::uint8_t> rest_;
  std::uint64_t most_, produced_ = 0, consumed_ = 0;
  z_stream stream_{};
  bool ended_ = false;
};

class ZstdSource : public Decompressor {
public:
  ZstdSource(std::span<const std::uint8_t> compressed, std::uint64_t most, std::string name)
      : name_(std::move(name)), in_{compressed.data(), compressed.size(), 0}, most_(most), stream_(ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
    // A window is never larger than the next power of two of the content, and zstd takes none below 1 KiB.
    window_log_ = std::clamp(static_cast<int>(std::bit_width(most)), 10, largest_zstd_window_log);
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, window_log_);
  }

  std::size_t read(std::span<std::uint8_t> to) override {
    ZSTD_outBuffer out{to.data(), to.size(), 0};
    while (out.pos < out.size && !ended_) {
      const std::size_t before_in = in_.pos, before_out = out.pos;
      const std::size_t status = ZSTD_decompressStream(stream_.get(), &out, &in_);
      if (ZSTD_isError(status)) fail(status);
      ended_ = status == 0; // the frame is complete and flushed
      if (!ended_ && in_.pos == before_in && out.pos == before_out) damaged(name_, "zstd", "it ends early");
    }
    check_output(produced_ += out.pos, most_, name_, "zstd");
    return out.pos;
  }
  std::uint64_t consumed() const override { return in_.pos; }

private:
  [[noreturn]] void fail(std::size_t status) const {
    if (ZSTD_getErrorCode(status) != ZSTD_error_frameParameter_windowTooLarge) damaged(name_, "zstd", ZSTD_getErrorName(status));
    throw Error(name_, fmt::format("its zstd stream wants a window of more than {} KiB", (std::uint64_t{1} << window_log_) >> 10),
                "decompress it with clang-offload-bundler");
  }
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ZSTD_freeDStream(stream); }
  };
  std::string name_;
  ZSTD_inBuffer in_;
  std::uint64_t most_, produced_ = 0;
  int window_log_ = 0;
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

std::unique_ptr<Decompressor> decompress(Compression method, std::span<const std::uint8_t> compressed, std::uint64_t most,
                                         std::string name) {
  if (method == Compression::zlib) return std::make_unique<ZlibSource>(compressed, most, std::move(name));
  return std::make_unique<ZstdSource>(compressed, most, std::move(name));
}

} // namespace kiln::isa
