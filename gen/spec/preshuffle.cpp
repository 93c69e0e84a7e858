// Preshuffle: 16 bytes of 16 rows at a time.
#include "gen/spec/preshuffle.h"
#include "gen/error.h"
#include <cstring>
#include <fmt/format.h>

namespace kiln {
namespace {

constexpr std::int64_t rows_together = 16, piece = 16; // rows, and bytes of a row: one load of a lane

} // namespace

std::int64_t preshuffled_bytes(std::int64_t rows, std::int64_t row_bytes) {
  return (rows + rows_together - 1) / rows_together * rows_together * row_bytes;
}

std::vector<std::byte> preshuffle(std::span<const std::byte> matrix, std::int64_t rows, std::int64_t row_bytes) {
  if (rows < 0 || row_bytes < 0 || row_bytes % piece)
    throw UserError("preshuffle", fmt::format("there are {} rows of {} bytes", rows, row_bytes), "give rows of a multiple of 16 bytes");
  if (static_cast<std::int64_t>(matrix.size()) != rows * row_bytes)
    throw UserError("preshuffle",
                    fmt::format("the matrix has {} bytes, but {} rows of {} have {}", matrix.size(), rows, row_bytes, rows * row_bytes),
                    "give the whole matrix, without padding between rows");
  std::vector<std::byte> result(static_cast<std::size_t>(preshuffled_bytes(rows, row_bytes)));
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = 0; i < row_bytes; i += piece) {
      const std::int64_t to = r / rows_together * rows_together * row_bytes + i * rows_together + r % rows_together * piece;
      std::memcpy(&result[static_cast<std::size_t>(to)], &matrix[static_cast<std::size_t>(r * row_bytes + i)], piece);
    }
  return result;
}

} // namespace kiln
