// Preshuffle: the order of a weight matrix in memory in which one load of a wave reads 1 KiB in sequence.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln {

// Row-major rows of b, as matmul_nt and its siblings read them, in the order of Layout::preshuffled: for every 16 rows, their
// first 16 bytes each, then their second 16 bytes, and so on. Byte i of row r comes to
// r / 16 * 16 * row_bytes + i / 16 * 256 + r % 16 * 16 + i % 16. Rows that are missing to a multiple of 16 are zero.
//   matrix     rows * row_bytes bytes, row by row: [n, k] of any type, [n, k/2] of 4-bit numbers
//   row_bytes  a multiple of 16
// Returns preshuffled_bytes(rows, row_bytes) bytes. Throws UserError on sizes that do not fit. Example, for fp8 [n, k]:
//   std::vector<std::byte> weights = preshuffle(std::as_bytes(std::span(b)), n, k);
std::vector<std::byte> preshuffle(std::span<const std::byte> matrix, std::int64_t rows, std::int64_t row_bytes);

std::int64_t preshuffled_bytes(std::int64_t rows, std::int64_t row_bytes);

} // namespace kiln
