// fault: packed f32 takes a high half twice
// reported: ROCm/rocMLIR#2459
// arch: gfx950
// shown by: ERR001 error
typedef float f32x2 __attribute__((ext_vector_type(2)));

extern "C" __attribute__((global)) void fault(const f32x2* x, const f32x2* c, f32x2* y) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  const f32x2 factor = c[i];
  y[i] = __builtin_elementwise_fma(x[i], f32x2{factor.y, factor.y}, y[i]);
}
