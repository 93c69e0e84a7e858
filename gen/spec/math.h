// The pointwise operations on Exprs. Operands broadcast right-aligned as in NumPy; numbers become constants; all arithmetic is
// f32. What each one computes, its edges and its error bound: gen/spec/ops.def, or info(op).note.
//
// There is no operator== on Expr, so that an Expr never compares by accident where a graph is meant: eq(a, b) and ne(a, b).
// Comparisons and logic give bool; arithmetic on bool is a UserError, cast(f32, condition) makes it 0 and 1.
//
// i32 is exact where all operands are i32, or whole numbers beside one: +, - and * are modulo 2^32 (add_i32, sub_i32, mul_i32), min, max,
// clamp, select and comparisons are those of integers. Every other operation takes an i32 as the nearest f32.
#pragma once
#include "gen/spec/expr.h"

namespace kiln {

// Whether a node takes its operands as integers: operations on i32, and those others that are exact on them.
bool takes_integers(const Expr& node);

// The node of any pointwise operation; throws UserError on shapes that do not broadcast and on wrong operand types.
Expr pointwise(Op op, std::span<const Expr> operands);

// Every operation of ops.def by its name there: exp(x), pow(x, y), select(condition, x, y), ...
#define KILN_DECLARE_1(id) Expr id(const Expr& x);
#define KILN_DECLARE_2(id) Expr id(const Expr& x, const Expr& y);
#define KILN_DECLARE_3(id) Expr id(const Expr& x, const Expr& y, const Expr& z);
#define KILN_OP(id, arity, ...) KILN_DECLARE_##arity(id)
#define KILN_INTEGER_OP(id, arity, ...) KILN_DECLARE_##arity(id)
#include "gen/spec/ops.def"
#undef KILN_DECLARE_1
#undef KILN_DECLARE_2
#undef KILN_DECLARE_3

inline Expr operator+(const Expr& x, const Expr& y) { return add(x, y); }
inline Expr operator-(const Expr& x, const Expr& y) { return sub(x, y); }
inline Expr operator*(const Expr& x, const Expr& y) { return mul(x, y); }
inline Expr operator/(const Expr& x, const Expr& y) { return div(x, y); } // x * rcp(y), 3 ulp; div_exact is IEEE division
inline Expr operator-(const Expr& x) { return neg(x); }
inline Expr operator<(const Expr& x, const Expr& y) { return lt(x, y); }
inline Expr operator<=(const Expr& x, const Expr& y) { return le(x, y); }
inline Expr operator>(const Expr& x, const Expr& y) { return gt(x, y); }
inline Expr operator>=(const Expr& x, const Expr& y) { return ge(x, y); }

} // namespace kiln
