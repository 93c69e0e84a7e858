// gfx950's matrix instructions whose operands each have a format of their own (fp8, bf8, fp6, bf6, fp4), with and without
// block scales.
//
// Layouts: lane l holds row (A) or column (B) l % m. Formats of 6 and 4 bits: 32 elements adjacent in k, from 32 (l / m) on.
// Formats of 8 bits: 16 adjacent ones from 16 (l / m) on, and 16 more k / 2 further (AMD's blog on matrix cores of CDNA3 and
// CDNA4; public kernels agree). A lane's scale byte belongs to the 32 elements from 32 (l / m) on of that row or column. The
// scales are applied exactly, then the sum is formed as in matrix.cpp.
#include "isa_checks/exec/instructions/matrix_places.h"
#include "isa_checks/exec/machine/stop.h"
#include "isa_checks/exec/machine/wave.h"
#include "isa_checks/exec/numbers/numeric.h"
#include <algorithm>
#include <array>
#include <cstring>
#include <fmt/format.h>
#include <limits>

namespace kiln::exec {
namespace {

constexpr int block_k = 32; // elements that share a scale

using Values = std::array<double, 256>;
const Values& values_of(int format) {
  static const auto tables = [] {
    std::array<Values, named_format_count> t{};
    for (std::size_t f = 0; f < named_format_count; ++f)
      for (u32 c = 0; c < 1U << named_formats[f].width(); ++c) t[f][c] = static_cast<double>(decode_small(named_formats[f], c));
    return t;
  }();
  return tables[static_cast<std::size_t>(format)];
}

int column_of(const MatrixLayout& s, int bits, int lane, int e) {
  const int group = lane / s.m;
  return bits == 8 ? e / 16 * (s.k / 2) + 16 * group + e % 16 : 32 * group + e;
}

// 2^(byte - 127); the top byte is NaN.
double scale_value(u32 byte) {
  return byte == 0xffU ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, static_cast<int>(byte) - 127);
}

constexpr int largest_side = 32, largest_k = 128, largest_blocks = largest_k / block_k;

// The scale of every row and block of k; operand 0 is A, 1 is B. Without scale words all are 1.
void read_scales(Wave& wave, const Inst& inst, const MatrixLayout& s, int operand, double (&scale)[largest_blocks][largest_side]) {
  if (!has_scales(inst.fields)) {
    for (auto& row : scale) std::fill(std::begin(row), std::end(row), 1.0);
    return;
  }
  // The byte of the scale word: op_sel has its low bit, op_sel_hi its high bit.
  const u32 byte = (inst.fields.prefix[0] >> (11 + operand) & 1U) | (inst.fields.prefix[1] >> (27 + operand) & 1U) << 1;
  const InstOperand& from = inst.src[static_cast<std::size_t>(3 + operand)];
  const u32* const lanes = from.kind == InstOperand::vector ? wave.lanes(from.reg) : nullptr;
  const u32 same = lanes == nullptr ? static_cast<u32>(read_scalar(wave, from)) : 0;
  for (int lane = 0; lane < lane_count; ++lane)
    scale[lane / s.m][lane % s.m] = scale_value((lanes == nullptr ? same : lanes[lane]) >> (8 * byte) & 0xffU);
}

// `put(row, k)` is where an element of the operand goes.
template <class Put> void read_source(Wave& wave, const Inst& inst, const MatrixLayout& s, int operand, Put put) {
  const int format = operand == 0 ? inst.fields.cbsz : inst.fields.blgp;
  if (format >= named_format_count)
    throw Stop(fmt::format("element format {} of operand {}: the formats are 0 to {}", format, operand, named_format_count - 1));
  const Values& values = values_of(format);
  const int bits = named_formats[format].width();
  const u32* const registers = wave.lanes(inst.src[static_cast<std::size_t>(operand)].reg);
  double scale[largest_blocks][largest_side];
  read_scales(wave, inst, s, operand, scale);
  for (int lane = 0; lane < lane_count; ++lane)
    for (int e = 0; e < s.per_lane(); ++e) {
      const int row = lane % s.m, kk = column_of(s, bits, lane, e);
      put(row, kk) = values[bits_of_lane(registers, lane, e * bits, bits)] * scale[kk / block_k][row];
    }
}

} // namespace

void mfma_formats(Wave& wave, const Inst& inst) {
  const MatrixLayout& s = *inst.op->matrix;
  thread_local double left[largest_side][largest_k], right[largest_k][largest_side];
  thread_local std::vector<u32> result;
  read_source(wave, inst, s, 0, [&](int row, int kk) -> double& { return left[row][kk]; });
  read_source(wave, inst, s, 1, [&](int column, int kk) -> double& { return right[kk][column]; });
  const u32* const c = inst.src[2].kind == InstOperand::vector ? wave.lanes(inst.src[2].reg) : nullptr;
  result.assign(static_cast<std::size_t>(s.result_registers() * lane_count), 0);
  for (int i = 0; i < s.m; ++i) {
    double sum[largest_side];
    for (int j = 0; j < s.n; ++j) sum[j] = addend(s, inst, c, result_place(s, 0, i, j));
    for (int kk = 0; kk < s.k; ++kk)
      for (int j = 0; j < s.n; ++j) sum[j] += left[i][kk] * right[kk][j];
    for (int j = 0; j < s.n; ++j) store_result(s, result, result_place(s, 0, i, j), sum[j]);
  }
  std::memcpy(wave.lanes(inst.dst.reg), result.data(), result.size() * sizeof(u32)); // whatever EXEC says
}

} // namespace kiln::exec
