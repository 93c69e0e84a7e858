// The C++ spelling of every pointwise operation on Exprs. Operands broadcast right-aligned as in NumPy; numbers become
// constants; all arithmetic is f32. Edges and error bounds: gen/spec/ops.def, or info(op).note.
//
// There is no operator== on Expr, so that an Expr never compares by accident where a graph is meant: eq(a, b) and ne(a, b).
// Comparisons and logic give bool; arithmetic on bool is a UserError, cast(f32, condition) makes it 0 and 1.
#pragma once
#include "gen/spec/expr.h"

namespace kiln {

// The node of any pointwise operation; throws UserError on shapes that do not broadcast and on wrong operand types.
Expr pointwise(Op op, std::span<const Expr> operands);

Expr operator+(const Expr& a, const Expr& b);
Expr operator-(const Expr& a, const Expr& b);
Expr operator*(const Expr& a, const Expr& b);
Expr operator/(const Expr& a, const Expr& b); // a * rcp(b), 3 ulp
Expr div_exact(const Expr& a, const Expr& b); // IEEE division
Expr operator-(const Expr& a);
Expr abs(const Expr& x);
Expr min(const Expr& a, const Expr& b);
Expr max(const Expr& a, const Expr& b);
Expr clamp(const Expr& x, const Expr& low, const Expr& high);
Expr fma(const Expr& a, const Expr& b, const Expr& c); // a * b + c, one rounding
Expr select(const Expr& condition, const Expr& a, const Expr& b);

Expr operator<(const Expr& a, const Expr& b);
Expr operator<=(const Expr& a, const Expr& b);
Expr operator>(const Expr& a, const Expr& b);
Expr operator>=(const Expr& a, const Expr& b);
Expr eq(const Expr& a, const Expr& b);
Expr ne(const Expr& a, const Expr& b);
Expr logical_and(const Expr& a, const Expr& b);
Expr logical_or(const Expr& a, const Expr& b);
Expr logical_not(const Expr& a);

Expr exp(const Expr& x);
Expr exp2(const Expr& x);
Expr log(const Expr& x);
Expr log2(const Expr& x);
Expr sqrt(const Expr& x);
Expr rsqrt(const Expr& x); // 1 / sqrt(x)
Expr rcp(const Expr& x);   // 1 / x
Expr tanh(const Expr& x);
Expr erf(const Expr& x);
Expr sigmoid(const Expr& x);   // 1 / (1 + exp(-x))
Expr silu(const Expr& x);      // x * sigmoid(x)
Expr gelu(const Expr& x);      // 0.5 x (1 + erf(x / sqrt 2))
Expr gelu_tanh(const Expr& x); // 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Expr relu(const Expr& x);
Expr softplus(const Expr& x); // log(1 + exp(x))
Expr sin(const Expr& x);      // radians
Expr cos(const Expr& x);
Expr pow(const Expr& a, const Expr& b); // exp2(b * log2(a)): a > 0
Expr round(const Expr& x);              // to nearest, ties to even
Expr floor(const Expr& x);

} // namespace kiln
