// The arithmetic of atomic operations, for LDS and device memory alike.
#include "isa_checks/exec/instructions/device_access.h"
#include "isa_checks/exec/numbers/float_ops.h"

namespace kiln::exec {
namespace {

u32 pairwise(u32 a, u32 b, bool bfloat) {
  u32 result = 0;
  for (int shift = 0; shift < 32; shift += 16) {
    const auto x = static_cast<std::uint16_t>(a >> shift), y = static_cast<std::uint16_t>(b >> shift);
    const u32 sum =
        bfloat ? to_bfloat(to_float(BFloat{x}) + to_float(BFloat{y})).bits : to_half(to_float(Half{x}) + to_float(Half{y})).bits;
    result |= sum << shift;
  }
  return result;
}

template <class U> U integer(Atomic atomic, U old, U data, U compare) {
  using I = std::make_signed_t<U>;
  const I a = static_cast<I>(old), b = static_cast<I>(data);
  switch (atomic) {
  case Atomic::swap: return data;
  case Atomic::cmpswap: return old == compare ? data : old;
  case Atomic::add: return old + data;
  case Atomic::sub: return old - data;
  case Atomic::rsub: return data - old;
  case Atomic::smin: return a < b ? old : data;
  case Atomic::umin: return std::min(old, data);
  case Atomic::smax: return a > b ? old : data;
  case Atomic::umax: return std::max(old, data);
  case Atomic::bit_and: return old & data;
  case Atomic::bit_or: return old | data;
  case Atomic::bit_xor: return old ^ data;
  case Atomic::inc: return old >= data ? 0 : old + 1;
  case Atomic::masked_or: return (old & ~compare) | data;
  case Atomic::wrap: return old >= compare ? old - compare : old + data;
  case Atomic::dec: return old == 0 || old > data ? data : old - 1;
  default: return old;
  }
}

} // namespace

u64 apply_atomic(Atomic atomic, std::uint8_t bytes, u64 old, u64 data, u64 compare) {
  const u32 a = static_cast<u32>(old), b = static_cast<u32>(data);
  switch (atomic) {
  case Atomic::add_f32: return as_bits(as_float(a) + as_float(b));
  case Atomic::min_f32: return as_bits(min_number(as_float(a), as_float(b)));
  case Atomic::max_f32: return as_bits(max_number(as_float(a), as_float(b)));
  case Atomic::add_f64: return as_bits(as_double(old) + as_double(data));
  case Atomic::min_f64: return as_bits(min_number(as_double(old), as_double(data)));
  case Atomic::max_f64: return as_bits(max_number(as_double(old), as_double(data)));
  case Atomic::cmpswap_f32: return as_float(a) == as_float(static_cast<u32>(compare)) ? data : old;
  case Atomic::cmpswap_f64: return as_double(old) == as_double(compare) ? data : old;
  case Atomic::pk_add_f16: return pairwise(a, b, false);
  case Atomic::pk_add_bf16: return pairwise(a, b, true);
  default: break;
  }
  return bytes == 8 ? integer<u64>(atomic, old, data, compare) : integer<u32>(atomic, a, b, static_cast<u32>(compare));
}

} // namespace kiln::exec
