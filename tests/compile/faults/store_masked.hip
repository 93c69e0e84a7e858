// fault: the data of a 16-byte store in a masked block is overwritten behind it
// reported: llvm/llvm-project#202333
// arch: gfx950
// shown by: DAT004 error
typedef float f32x4 __attribute__((ext_vector_type(4)));

extern "C" __attribute__((global)) void fault(const f32x4* x, f32x4* y, f32x4* z, float factor) {
  const unsigned i = __builtin_amdgcn_workitem_id_x();
  f32x4 data = x[i];
  if (data.x > factor) y[i] = data;
  data *= factor;
  z[i] = data;
}
