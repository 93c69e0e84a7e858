// One pre-decoded instruction: a handler and everything it needs, and the table entry that gave the handler.
#pragma once
#include "isa_checks/decode/counter_use.h"
#include "isa_checks/exec/machine/encoding.h"
#include "isa_checks/target/registers.h"
#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::exec {

struct Wave;
struct Inst;
struct LaneAccess;
struct MatrixLayout;
using Handler = void (*)(Wave&, const Inst&);

// What an instruction counts as: a coarser view of isa::InstructionClass.
enum class InstClass : std::uint8_t { valu, trans, matrix, salu, smem, vmem, lds, wait, nop, barrier, branch, other };
inline constexpr int inst_class_count = 12;
std::string_view to_string(InstClass cls);

// How an operand's bits are read; decides inline constants, modifiers, register count and what clamp means.
enum class Type : std::uint8_t {
  none,
  u32,
  i32,
  f32, // one register
  u16,
  i16,
  f16,
  bf16, // half a register: op_sel and SDWA choose which
  u64,
  i64,
  f64, // two registers
  u16x2,
  i16x2,
  f16x2, // packed: op_sel and op_sel_hi choose each half
  u32x2,
  f32x2, // packed over two registers
  mixed, // v_fma_mix: f32, or a half of an f16 pair, read as f32
  mask,  // a lane mask in a scalar register pair
  f32x4,
  f32x16,
  f32x32,
  u32x3,
  u32x4,
  u32x6,
  u32x8 // several registers, read by the handler itself
};
int registers(Type type); // 32-bit registers that an operand of the type takes
bool is_float(Type type);

struct Signature {
  Type result = Type::none;
  std::array<Type, 4> source{};
  std::uint8_t source_count = 0;
  bool carry_out = false;     // a lane mask besides the result (VOP3B sdst)
  bool accumulates = false;   // the last source is the destination register
  bool scalar_result = false; // the vdst field names a scalar register
  bool own_modifiers = false; // the modifier fields mean something else, which the handler reads itself
  bool keeps_rest = false;    // the handler leaves part of the destination register alone
  bool keeps_half = false;    // a 16-bit result leaves the other half of the register alone even without op_sel
};

// One line of an instruction table.
struct Semantics {
  std::string_view name; // without encoding suffix; "NAME clamp" for an integer operation that saturates
  Handler handler = nullptr;
  Signature signature{};
  const LaneAccess* memory = nullptr; // of the memory families: what it moves
  const MatrixLayout* matrix = nullptr;
};

// Number of a0; v0 is 0.
inline constexpr std::uint16_t first_accumulator = max_arch_vgprs;

struct InstOperand {
  enum Kind : std::uint8_t { none, vector, scalar, constant } kind = none;
  Type type = Type::none;
  std::uint16_t reg = 0;         // vector: architectural, from first_accumulator on accumulation; scalar: operand number
  std::uint64_t value = 0;       // constant
  bool plain = true;             // no modifier, no selection, no lane permutation
  bool neg = false, abs = false; // packed types: of the low half
  bool neg_hi = false, abs_hi = false;
  bool take_high = false;      // op_sel
  bool high_takes_high = true; // op_sel_hi
  bool sdwa = false, sext = false, dpp = false;
  std::uint8_t select = 6;
};

struct Inst {
  Handler handler = nullptr;
  const Semantics* op = nullptr;
  InstClass cls = InstClass::other;
  std::uint64_t address = 0;
  std::array<InstOperand, 5> src{};
  InstOperand dst{};
  std::uint16_t sdst = code::vcc;
  std::uint8_t source_count = 0;
  bool clamp = false;
  std::uint8_t omod = 0;
  bool dst_high = false;     // op_sel[3]: write the high half
  bool writes_exec = false;  // v_cmpx: the mask goes to EXEC too
  bool simple_result = true; // nothing of: clamp, omod, half or SDWA destination
  std::uint32_t target = 0;  // branch: index of the instruction it goes to
  Fields fields{};
  // DPP: the lane each lane reads (-1: none), and the lanes that the row and bank masks leave on.
  std::vector<std::int8_t> dpp_source;
  std::uint64_t dpp_lanes = ~0ULL;
  isa::RegisterUse use;      // for the sanitisers
  isa::RegisterUse encoded;  // of one whose registers M0 moves: what they were without that; `use` is empty then
  bool ignores_exec = false; // reads or writes lanes that EXEC switches off
  bool pure = false;         // its only effects are on registers, so that it may be run again
  isa::CounterUse counts;    // the wait counters that it counts in
  std::string text;          // as disassembled
};

} // namespace kiln::exec
