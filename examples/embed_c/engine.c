// Embedding Kiln in C: a fused kernel from its text, compiled for the device at hand and launched. `KILN_DEVICE=emulated:gfx942 engine`
// runs it without a GPU.
#include <kiln/kiln_c.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static void check(kiln_status status) {
  if (status == KILN_OK) return;
  fprintf(stderr, "%s: %s\n", kiln_status_name(status), kiln_error_text());
  exit(1);
}

int main(void) {
  enum { rows = 4, cols = 2048 };
  static const char spec[] = "kernel swiglu\n"
                             "dim rows\n"
                             "input gate: f16[rows, 2048]\n"
                             "input up: f16[rows, 2048]\n"
                             "output y: f16[rows, 2048] = silu(gate) * up\n";
  check(KILN_C_CHECK());
  kiln_device* device;
  kiln_jit* jit;
  kiln_kernel* swiglu;
  check(kiln_device_open(NULL, &device)); // what KILN_DEVICE names, else the first GPU
  check(kiln_jit_create(device, NULL, &jit));
  check(kiln_jit_compile(jit, spec, NULL, 0, &swiglu));

  static float numbers[rows * cols];
  static uint16_t halves[rows * cols];
  for (int i = 0; i < rows * cols; ++i) numbers[i] = 1;
  check(kiln_encode("f16", numbers, halves, rows * cols));
  void *gate, *up, *y;
  check(kiln_device_allocate(device, sizeof halves, "gate", &gate));
  check(kiln_device_allocate(device, sizeof halves, "up", &up));
  check(kiln_device_allocate(device, sizeof halves, "y", &y));
  check(kiln_device_write(device, gate, halves, sizeof halves, NULL));
  check(kiln_device_write(device, up, halves, sizeof halves, NULL));

  const int64_t shape[2] = {rows, cols};
  const kiln_tensor gate_tensor = {gate, "f16", 2, shape, NULL}, up_tensor = {up, "f16", 2, shape, NULL},
                    y_tensor = {y, "f16", 2, shape, NULL};
  const kiln_argument arguments[3] = {{"gate", &gate_tensor, 0}, {"up", &up_tensor, 0}, {"y", &y_tensor, 0}};
  kiln_bound* bound;
  check(kiln_kernel_bind(swiglu, device, arguments, 3, &bound));
  check(kiln_bound_launch(bound, NULL)); // the hot path: one call of HIP on the stream that is given, here the default one

  check(kiln_device_read(device, halves, y, sizeof halves, NULL));
  check(kiln_decode("f16", halves, numbers, rows * cols));
  printf("%s: silu(1) = %.4f\n", kiln_device_description(device), (double)numbers[0]);
  kiln_bound_free(bound);
  kiln_kernel_free(swiglu);
  kiln_jit_free(jit);
  kiln_device_free(device); // and the memory that it gave
  return 0;
}
