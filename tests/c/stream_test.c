// Proves that a C program's streams reach HIP: a launch on a stream is one launch of HIP on it. With a HIP that records what it is asked.
#include <kiln/kiln_c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Functions of tests/launch/stub.
size_t kiln_hip_stub_launches(void);
void* kiln_hip_stub_stream(void);

static void check(int line, int right, const char* what) {
  if (right) return;
  fprintf(stderr, "%s:%d: %s\n  latest error: %s\n", __FILE__, line, what, kiln_error_text());
  exit(1);
}
#define CHECK(condition) check(__LINE__, condition, #condition)

int main(void) {
  static int a_stream, another_stream; // HIP's handles are addresses; the stub follows none
  kiln_device* device = NULL;
  kiln_jit* jit = NULL;
  kiln_kernel* kernel = NULL;
  kiln_bound* bound = NULL;
  CHECK(kiln_device_open(NULL, &device) == KILN_OK); // KILN_DEVICE is hip:0
  CHECK(kiln_device_is_emulated(device) == 0 && strstr(kiln_device_description(device), "MI300X") != NULL);
  CHECK(kiln_jit_create(device, NULL, &jit) == KILN_OK);
  CHECK(kiln_jit_compile(jit, "kernel twice dim n input x: f32[n, 64] output y: f32[n, 64] = x + x", NULL, 0, &kernel) == KILN_OK);

  void *x = NULL, *y = NULL;
  CHECK(kiln_device_allocate(device, 512, "x", &x) == KILN_OK && kiln_device_allocate(device, 512, "y", &y) == KILN_OK);
  const int64_t shape[2] = {2, 64};
  const kiln_tensor x_tensor = {x, "f32", 2, shape, NULL}, y_tensor = {y, "f32", 2, shape, NULL};
  const kiln_argument arguments[2] = {{"x", &x_tensor, 0}, {"y", &y_tensor, 0}};
  CHECK(kiln_kernel_bind(kernel, device, arguments, 2, &bound) == KILN_OK && kiln_hip_stub_launches() == 0);
  CHECK(kiln_bound_launch(bound, &a_stream) == KILN_OK && kiln_hip_stub_launches() == 1 && kiln_hip_stub_stream() == &a_stream);
  CHECK(kiln_bound_launch(bound, &another_stream) == KILN_OK && kiln_hip_stub_launches() == 2 && kiln_hip_stub_stream() == &another_stream);
  CHECK(kiln_bound_launch(bound, NULL) == KILN_OK && kiln_hip_stub_launches() == 3 && kiln_hip_stub_stream() == NULL);

  kiln_device* missing = NULL;
  CHECK(kiln_device_open("hip:7", &missing) == KILN_ENVIRONMENT_ERROR && missing == NULL && strstr(kiln_error_text(), "7") != NULL);
  kiln_bound_free(bound);
  kiln_kernel_free(kernel);
  kiln_jit_free(jit);
  kiln_device_free(device);
  return 0;
}
