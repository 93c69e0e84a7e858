// States of random specs. Every draw is a statement of its own: compilers disagree about the order of operands.
#include "tests/fuzz/state_draws.h"
#include "gen/spec/math.h"

namespace kiln {
namespace {

Shape with_second(Shape shape, std::int64_t count) {
  shape.insert(shape.begin() + 1, count);
  return shape;
}
Shape one_of_each(const Shape& space) {
  Shape shape(space.size(), 1);
  shape[0] = space[0];
  return shape;
}

} // namespace

Expr StateDraws::state_of(const Shape& rows) {
  const DType type = random_.pick({f32, f32, bf16, f16, i8});
  const bool strided = random_.chance(25);
  const bool is_dynamic = random_.chance(50);
  const std::int64_t count = random_.between(1, 20);
  Shape shape = rows;
  shape.insert(shape.begin(), is_dynamic ? dynamic("state_rows", 1) : Dim(count));
  return input("state", type, shape, strided ? Layout::strided : Layout::contiguous);
}

void StateDraws::add_values(const Shape& space, const Expr& x, std::vector<Expr>& values) {
  if (!drawn_ || space.size() < 2) return;
  const Shape rows(space.begin() + 1, space.end());
  const DType index = random_.chance(50) ? i32 : i64;
  count_ = random_.between(2, 3);
  if (random_.chance(70)) {
    kind_ = random_.pick({Kind::rows, Kind::rows, Kind::tokens, Kind::window});
    Shape own = rows;
    if (kind_ == Kind::window) own.insert(own.begin(), count_);
    state_ = state_of(own);
    const Shape one = one_of_each(space);
    const Shape several = with_second(one, kind_ == Kind::tokens ? count_ : 1);
    slot_ = input("state_slot", index, kind_ == Kind::rows ? one : several);
    const Expr old = gather(*state_, kind_ == Kind::tokens ? input("state_from", index, one) : *slot_);
    if (kind_ == Kind::window)
      for (std::int64_t i = 0; i < count_; ++i) values.push_back(unstack(old, i));
    else values.push_back(old);
  }
  if (random_.chance(40)) {
    const Expr stacked = input("stacked_in", random_.pick({f16, f32, bf16}), with_second(space, count_),
                               random_.chance(30) ? Layout::strided : Layout::contiguous);
    values.push_back(unstack(stacked, random_.between(0, count_ - 1)));
  }
  const std::int64_t cols = space.back().size();
  if (x.op() == Op::input && x.dtype() != boolean && cols > 1 && random_.chance(25)) {
    shifts_ = true;
    const std::int64_t distance = random_.between(1, std::min<std::int64_t>(cols - 1, 5));
    values.push_back(shift_columns(x, random_.chance(50) ? distance : -distance));
  }
  stacks_ = random_.chance(30);
}

void StateDraws::add_outputs(KernelSpec& spec, const Expr& first, const Expr& second) {
  if (state_) {
    std::vector<Expr> behind;
    for (std::int64_t i = 0; i < count_; ++i) behind.push_back(cast((*state_).dtype(), i % 2 ? second : first));
    const Expr value = kind_ == Kind::rows ? behind[0] : stack(behind);
    spec.output("state_out", (*state_).dtype(), scatter(*state_, *slot_, value), {.in_place_of = "state", .layout = (*state_)->layout});
  }
  if (drawn_ && stacks_ && first.shape().size() >= 2) spec.output("stacked_out", f32, stack({cast(f32, first) + 0, cast(f32, second) + 0}));
}

} // namespace kiln
