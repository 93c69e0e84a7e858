// fault: a bit cast of a vector's element takes element 0
// reported: llvm/llvm-project#219531
// arch: gfx942
// shown by: y[0] is not 0x40490fdb
// x: 0x3f800000 0x40490fdb
typedef float f32x2 __attribute__((ext_vector_type(2)));

extern "C" __attribute__((global)) void fault(const unsigned* x, unsigned* y) {
  const f32x2 pair = *reinterpret_cast<const f32x2*>(x);
  y[0] = __builtin_bit_cast(unsigned, pair[1]);
}
