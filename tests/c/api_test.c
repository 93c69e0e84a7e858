// Proves that a C program can use Kiln: it compiles specs, launches them on an emulated device, checks numbers, and gets Kiln's own words
// as errors. The argument is the device, "emulated:gfx942".
#include <kiln/kiln_c.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;
static const char* const device_name_default = "emulated:gfx942";

static void fail(const char* file, int line, const char* what) {
  fprintf(stderr, "%s:%d: %s\n  latest error: %s\n", file, line, what, kiln_error_text());
  ++failures;
}
#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
#define REQUIRE(condition) ((condition) ? (void)0 : (fail(__FILE__, __LINE__, #condition), exit(1)))

// A call that has to end with a status and with words of Kiln's.
static void expect(int line, kiln_status got, kiln_status wanted, const char* const words[3]) {
  int right = got == wanted;
  for (int i = 0; i < 3; ++i) right = right && strstr(kiln_error_text(), words[i]) != NULL;
  if (right) return;
  fprintf(stderr, "%s:%d: wanted %s with \"%s\", \"%s\", \"%s\"; got %s: %s\n", __FILE__, line, kiln_status_name(wanted), words[0],
          words[1], words[2], kiln_status_name(got), kiln_error_text());
  ++failures;
}
#define EXPECT(call, status, a, b, c) expect(__LINE__, call, status, (const char* const[3]){a, b, c})

enum { rows = 3, cols = 1000 };

static const char* const softmax_text = "kernel softmax\n"
                                        "dim rows\n"
                                        "input x: f16[rows, 1000] strided\n"
                                        "scalar beta: f32\n"
                                        "let e = exp(beta * x - row_max(beta * x))\n"
                                        "output y: f16[rows, 1000] = e / row_sum(e)\n";

static float value_at(int row, int col) { return (float)((row * 7 + col * 13) % 29) / 8.0F - 1.5F; }

// A device, a jit for it, and a kernel.
typedef struct Setup {
  kiln_device* device;
  kiln_jit* jit;
  kiln_kernel* softmax;
} Setup;

static void keep_line(void* context, const char* line) { snprintf(context, 1000, "%s", line); }

static void test_version(void) {
  CHECK(KILN_C_CHECK() == KILN_OK);
  CHECK(kiln_c_version() == ((uint32_t)KILN_C_MAJOR << 16 | KILN_C_MINOR));
  CHECK(strcmp(kiln_error_text(), "") == 0);
  EXPECT(kiln_c_check(KILN_C_MAJOR, KILN_C_MINOR + 1), KILN_USER_ERROR, "libkiln_c", "the program was compiled for",
         "install a newer Kiln");
  EXPECT(kiln_c_check(KILN_C_MAJOR + 1, 0), KILN_USER_ERROR, "libkiln_c", "the program was compiled for", "compile the program");
  CHECK(strcmp(kiln_status_name(KILN_CACHE_MISS), "cache miss") == 0);
  CHECK(strchr(kiln_release(), '.') != NULL);
}

// What a program compiled today passes to a library of the same major number.
static void test_layout(void) {
  CHECK(sizeof(kiln_tensor) == 40 && offsetof(kiln_tensor, dtype) == 8 && offsetof(kiln_tensor, rank) == 16);
  CHECK(offsetof(kiln_tensor, shape) == 24 && offsetof(kiln_tensor, strides) == 32);
  CHECK(sizeof(kiln_argument) == 24 && offsetof(kiln_argument, tensor) == 8 && offsetof(kiln_argument, number) == 16);
  CHECK(sizeof(kiln_jit_options) == 40 && offsetof(kiln_jit_options, log) == 24);
  CHECK(KILN_OK == 0 && KILN_USER_ERROR == 1 && KILN_ENVIRONMENT_ERROR == 2 && KILN_CACHE_MISS == 3 && KILN_EXECUTION_ERROR == 4);
  CHECK(KILN_REJECTED == 5 && KILN_INTERNAL_ERROR == 6 && KILN_NOT_READY == 7);
}

static void test_types(void) {
  const float numbers[4] = {1.0F, 300.0F, -0.3F, NAN};
  uint8_t bytes[4];
  float back[4];
  CHECK(kiln_encode("e4m3fnuz", numbers, bytes, 4) == KILN_OK && kiln_decode("e4m3fnuz", bytes, back, 4) == KILN_OK);
  CHECK(back[0] == 1.0F && back[1] == 240.0F && fabsf(back[2] + 0.3F) < 0.02F && isnan(back[3]));
  uint16_t halves[4];
  CHECK(kiln_encode("bf16", numbers, halves, 4) == KILN_OK && halves[0] == 0x3f80);
  const float indices[3] = {7.0F, -1.0F, 3e9F}; // i64 goes as far as row indices do
  int64_t wide[4] = {0, 0, 0, 99};
  CHECK(kiln_encode("i64", indices, wide, 3) == KILN_OK && wide[0] == 7 && wide[1] == -1 && wide[2] == INT32_MAX && wide[3] == 99);
  CHECK(kiln_decode("i64", wide, back, 2) == KILN_OK && back[0] == 7.0F && back[1] == -1.0F);
  double largest = 0;
  CHECK(kiln_type_max("e4m3fnuz", &largest) == KILN_OK && largest == 240);
  EXPECT(kiln_type_max("bool", &largest), KILN_USER_ERROR, "bool has no largest number", "", "");
  size_t size = 0;
  CHECK(kiln_type_bytes("i32", &size) == KILN_OK && size == 4);
  CHECK(kiln_type_bytes("e8m0", &size) == KILN_OK && size == 1);
  EXPECT(kiln_type_bytes("e2m1", &size), KILN_USER_ERROR, "kiln_type_bytes", "elements of e2m1 have 4 bits", "two elements a byte");
  const float fours[4] = {0.5f, -6, 100, 1.25f};
  unsigned char packed[2];
  float fours_back[4];
  CHECK(kiln_encode("e2m1", fours, packed, 4) == KILN_OK && packed[0] == 0xf1 && packed[1] == 0x27);
  CHECK(kiln_decode("e2m1", packed, fours_back, 4) == KILN_OK && fours_back[0] == 0.5f && fours_back[1] == -6 && fours_back[2] == 6 &&
        fours_back[3] == 1);
  EXPECT(kiln_type_bytes("f17", &size), KILN_USER_ERROR, "\"f17\" is no type", "f32, f16, bf16", "");
  CHECK(strstr(kiln_operations(), "{\"name\": \"silu\", \"operands\": 1, \"gives\": \"f32\"}") != NULL);
  CHECK(strstr(kiln_operations(), "{\"name\": \"lt\", \"operands\": 2, \"gives\": \"bool\"}") != NULL);
}

static void test_specs(void) {
  char* text = NULL;
  REQUIRE(kiln_spec_check(softmax_text, &text) == KILN_OK);
  CHECK(strncmp(text, "kernel softmax\n", 15) == 0);
  kiln_text_free(text);
  EXPECT(kiln_spec_check("kernel k input x: f16[8] output y: f16[8] = x + z", NULL), KILN_USER_ERROR, "line 1, column",
         "'z' is not declared", "");
  EXPECT(kiln_spec_check(NULL, NULL), KILN_USER_ERROR, "kiln_spec_check: spec is NULL", "", "");
}

// What bindings of other languages are made of: the words, specs by statements, declarations, the catalogue.
static void test_bindings(void) {
  CHECK(strstr(kiln_language(), "{\"name\":\"gather\",\"kind\":\"other\",\"operands\":2,\"numbers\":0,\"options\":[\"checked\"]}") != NULL);
  kiln_writer* writer = NULL;
  char* text = NULL;
  REQUIRE(kiln_writer_create("twice", &writer) == KILN_OK);
  CHECK(kiln_writer_add(writer, "dim rows input x: f16[rows, 64]", &text) == KILN_OK);
  CHECK(strcmp(text, "{\"dtype\":\"f16\",\"shape\":[\"rows\",64]}") == 0);
  kiln_text_free(text);
  EXPECT(kiln_writer_text(writer, &text), KILN_USER_ERROR, "twice", "", "");
  EXPECT(kiln_writer_add(writer, "let y = x + z", NULL), KILN_USER_ERROR, "line 1, column 13", "'z' is not declared", "");
  CHECK(kiln_writer_add(writer, "output y: f16[rows, 64] = x + x", NULL) == KILN_OK && kiln_writer_text(writer, &text) == KILN_OK);
  CHECK(strcmp(text, "kernel twice\ndim rows\ninput x: f16[rows, 64]\noutput y: f16[rows, 64] = x + x\n") == 0);
  char* json = NULL;
  CHECK(kiln_spec_describe(text, &json) == KILN_OK && strstr(json, "\"dims\":[{\"name\":\"rows\"}]") != NULL);
  kiln_text_free(text), kiln_text_free(json), kiln_writer_free(writer);

  const kiln_setting options[] = {{"cols", "512"}, {"dtype", "bf16"}};
  CHECK(kiln_catalog_spec("rmsnorm", "gfx942", options, 2, &text) == KILN_OK && strstr(text, "input x: bf16[rows, 512]") != NULL);
  kiln_text_free(text);
  EXPECT(kiln_catalog_spec("rmsnrm", "gfx942", NULL, 0, &text), KILN_USER_ERROR, "rmsnrm", "rmsnorm", "");
  const kiln_setting wrong = {"cols", "many"};
  EXPECT(kiln_catalog_spec("rmsnorm", "gfx942", &wrong, 1, &text), KILN_USER_ERROR, "option cols", "\"many\"", "");
  CHECK(kiln_catalog(&text) == KILN_OK && strstr(text, "\"rmsnorm\"") != NULL);
  kiln_text_free(text);
  CHECK(kiln_catalog_options("rmsnorm", &text) == KILN_OK && strstr(text, "{\"name\":\"cols\",\"default\":4096") != NULL);
  kiln_text_free(text);
}

// One call, launched with other addresses and numbers each time.
static void test_calls(const Setup* s) {
  const int64_t shape[2] = {1, cols};
  const kiln_tensor tensor = {NULL, "f16", 2, shape, NULL};
  const kiln_argument arguments[] = {{"beta", NULL, 0}, {"x", &tensor, 0}, {"y", &tensor, 0}};
  kiln_call* call = NULL;
  REQUIRE(kiln_call_create(s->softmax, s->device, arguments, 3, &call) == KILN_OK);
  static float numbers[cols];
  static uint16_t halves[cols];
  for (int i = 0; i < cols; ++i) numbers[i] = value_at(0, i);
  REQUIRE(kiln_encode("f16", numbers, halves, cols) == KILN_OK);
  void* memory[3] = {NULL, NULL, NULL};
  for (int i = 0; i < 3; ++i) REQUIRE(kiln_device_allocate(s->device, sizeof halves, NULL, &memory[i]) == KILN_OK);
  REQUIRE(kiln_device_write(s->device, memory[0], halves, sizeof halves, NULL) == KILN_OK);
  float sums[2] = {0, 0}, largest[2] = {0, 0};
  for (int run = 0; run < 2; ++run) {
    void* const addresses[2] = {memory[0], memory[1 + run]};
    const double beta = run == 0 ? 1 : 4;
    REQUIRE(kiln_call_launch(call, addresses, &beta, NULL) == KILN_OK);
    REQUIRE(kiln_device_read(s->device, halves, addresses[1], sizeof halves, NULL) == KILN_OK);
    REQUIRE(kiln_decode("f16", halves, numbers, cols) == KILN_OK);
    for (int i = 0; i < cols; ++i) sums[run] += numbers[i], largest[run] = numbers[i] > largest[run] ? numbers[i] : largest[run];
  }
  CHECK(fabsf(sums[0] - 1) < 0.01F && fabsf(sums[1] - 1) < 0.01F && largest[1] > 2 * largest[0]);
  void* const overlapping[2] = {memory[0], memory[0]};
  const double beta = 1;
  EXPECT(kiln_call_launch(call, overlapping, &beta, NULL), KILN_USER_ERROR, "argument y: it is written", "overlap", "");
  EXPECT(kiln_call_launch(call, overlapping, NULL, NULL), KILN_USER_ERROR, "numbers is NULL", "", "");
  kiln_call_free(call), kiln_call_free(NULL);
  for (int i = 0; i < 3; ++i) CHECK(kiln_device_release(s->device, memory[i]) == KILN_OK);
}

static Setup set_up(const char* name) {
  Setup s = {NULL, NULL, NULL};
  REQUIRE(kiln_device_open(name, &s.device) == KILN_OK);
  CHECK(kiln_device_is_emulated(s.device) == 1);
  CHECK(strstr(name, kiln_device_arch(s.device)) != NULL && strstr(kiln_device_description(s.device), "emulated on the CPU") != NULL);
  CHECK(strcmp(kiln_device_fp8(s.device), strstr(name, "gfx942") ? "e4m3fnuz" : "e4m3fn") == 0);
  REQUIRE(kiln_jit_create(s.device, NULL, &s.jit) == KILN_OK);
  CHECK(strcmp(kiln_jit_arch(s.jit), kiln_device_arch(s.device)) == 0);
  REQUIRE(kiln_jit_compile(s.jit, softmax_text, NULL, 0, &s.softmax) == KILN_OK);
  return s;
}

static void tear_down(Setup* s) { // in an order that no handle asked for
  kiln_device_free(s->device);
  kiln_jit_free(s->jit);
  kiln_kernel_free(s->softmax);
}

static void test_kernel(const Setup* s) {
  CHECK(strcmp(kiln_kernel_name(s->softmax), "softmax") == 0 && strcmp(kiln_kernel_arch(s->softmax), kiln_jit_arch(s->jit)) == 0);
  CHECK(strlen(kiln_kernel_key(s->softmax)) == 64 && strstr("memory folder compiled", kiln_kernel_origin(s->softmax)) != NULL);
  CHECK(strncmp(kiln_kernel_spec(s->softmax), "kernel softmax\n", 15) == 0 && kiln_kernel_meta(s->softmax)[0] == '{');
  CHECK(strstr(kiln_kernel_interface(s->softmax), "\"x_stride\"") != NULL && kiln_kernel_workspace_bytes(s->softmax) == 0);
  size_t bytes = 0;
  const unsigned char* object = kiln_kernel_code_object(s->softmax, &bytes);
  CHECK(bytes > 1000 && memcmp(object, "\177ELF", 4) == 0);
}

// Softmax of rows that lie `pitch` elements apart, against the host's own.
static void test_numbers(const Setup* s) {
  enum { pitch = 1024 };
  static float numbers[rows * pitch], results[rows * cols];
  static uint16_t halves[rows * pitch];
  for (int row = 0; row < rows; ++row)
    for (int col = 0; col < pitch; ++col) numbers[row * pitch + col] = col < cols ? value_at(row, col) : NAN;
  CHECK(kiln_encode("f16", numbers, halves, rows * pitch) == KILN_OK);
  void *x = NULL, *y = NULL;
  EXPECT(kiln_device_allocate(s->device, (size_t)1 << 63, "x", &x), KILN_ENVIRONMENT_ERROR, "9223372036854775808 bytes for x", "", "allocate less");
  REQUIRE(kiln_device_allocate(s->device, sizeof halves, "x", &x) == KILN_OK &&
          kiln_device_allocate(s->device, rows * cols * 2, NULL, &y) == KILN_OK);
  REQUIRE(kiln_device_write(s->device, x, halves, sizeof halves, NULL) == KILN_OK &&
          kiln_device_zero(s->device, y, rows * cols * 2, NULL) == KILN_OK);

  const int64_t shape[2] = {rows, cols}, strides[2] = {pitch, 1};
  const kiln_tensor x_tensor = {x, "f16", 2, shape, strides}, y_tensor = {y, "f16", 2, shape, NULL};
  const kiln_argument arguments[3] = {{"beta", NULL, 0.5}, {"x", &x_tensor, 0}, {"y", &y_tensor, 0}};
  kiln_bound* bound = NULL;
  REQUIRE(kiln_kernel_load(s->softmax, s->device) == KILN_OK && kiln_kernel_bind(s->softmax, s->device, arguments, 3, &bound) == KILN_OK);
  uint32_t workgroups = 0, threads = 0;
  kiln_bound_grid(bound, &workgroups, &threads);
  CHECK(workgroups > 0 && threads > 0);
  CHECK(kiln_bound_launch(bound, NULL) == KILN_OK && kiln_device_synchronize(s->device, NULL) == KILN_OK);
  kiln_bound_free(bound);

  CHECK(kiln_device_read(s->device, halves, y, rows * cols * 2, NULL) == KILN_OK);
  CHECK(kiln_decode("f16", halves, results, rows * cols) == KILN_OK);
  for (int row = 0; row < rows; ++row) {
    double sum = 0;
    for (int col = 0; col < cols; ++col) sum += exp(0.5 * value_at(row, col));
    for (int col = 0; col < cols; ++col) {
      const double wanted = exp(0.5 * value_at(row, col)) / sum;
      if (fabs(results[row * cols + col] - wanted) > wanted / 500) {
        fprintf(stderr, "softmax[%d, %d] = %g, and %g is right\n", row, col, results[row * cols + col], wanted);
        ++failures;
        break;
      }
    }
  }
  CHECK(kiln_device_release(s->device, x) == KILN_OK && kiln_device_release(s->device, y) == KILN_OK);
  EXPECT(kiln_device_release(s->device, y), KILN_USER_ERROR, "kiln_device_release", "is no allocation of this device handle", "once");
}

// Everything that is right, with one thing wrong at a time.
static void test_arguments(const Setup* s) {
  void *x = NULL, *y = NULL;
  REQUIRE(kiln_device_allocate(s->device, rows * cols * 2, "x", &x) == KILN_OK &&
          kiln_device_allocate(s->device, rows * cols * 2, "y", &y) == KILN_OK);
  const int64_t shape[2] = {rows, cols}, narrow[2] = {rows, cols - 1}, columns_first[2] = {1, rows};
  kiln_tensor x_tensor = {x, "f16", 2, shape, NULL}, y_tensor = {y, "f16", 2, shape, NULL};
  const kiln_argument arguments[4] = {{"x", &x_tensor, 0}, {"y", &y_tensor, 0}, {"beta", NULL, 1}, {"gamma", NULL, 1}};
  kiln_bound* bound = NULL;
#define BIND(count) kiln_kernel_bind(s->softmax, s->device, arguments, count, &bound)
  x_tensor.dtype = "bf16";
  EXPECT(BIND(3), KILN_USER_ERROR, "kernel softmax, argument x: it is bf16, and the kernel takes f16", "", "");
  x_tensor.dtype = "half";
  EXPECT(BIND(3), KILN_USER_ERROR, "kernel softmax, argument x: \"half\" is no type", "", "");
  x_tensor.dtype = "f16", x_tensor.shape = narrow;
  EXPECT(BIND(3), KILN_USER_ERROR, "kernel softmax, argument x", "dimension 1 is 999, and the kernel was compiled for 1000", "");
  x_tensor.shape = shape, x_tensor.strides = columns_first;
  EXPECT(BIND(3), KILN_USER_ERROR, "kernel softmax, argument x", "its strides are [1, 3] for the shape [3, 1000]", "contiguous");
  x_tensor.strides = NULL, x_tensor.rank = -1;
  EXPECT(BIND(3), KILN_USER_ERROR, "its rank is -1", "", "");
  x_tensor.rank = INT32_MAX; // nobody looks beyond its shape
  EXPECT(BIND(3), KILN_USER_ERROR, "its rank is 2147483647", "at most 8", "");
  x_tensor.rank = 2, x_tensor.data = &x_tensor;
  EXPECT(BIND(3), KILN_USER_ERROR, "kernel softmax, argument x", "allocation of this device", "");
  x_tensor.data = x;
  EXPECT(BIND(2), KILN_USER_ERROR, "kernel softmax, argument beta: it is missing", "", "");
  EXPECT(BIND(4), KILN_USER_ERROR, "kernel softmax, argument gamma", "no such argument", "");
  CHECK(bound == NULL); // results are untouched
  EXPECT(kiln_kernel_bind(NULL, s->device, arguments, 3, &bound), KILN_USER_ERROR, "kiln_kernel_bind: kernel is NULL", "", "");
  CHECK(kiln_device_release(s->device, x) == KILN_OK && kiln_device_release(s->device, y) == KILN_OK);
}

static void test_wrong_device(const Setup* s, const char* name) {
  kiln_device* other = NULL;
  const char* const other_name = strstr(name, "gfx942") ? "emulated:gfx950" : "emulated:gfx942";
  REQUIRE(kiln_device_open(other_name, &other) == KILN_OK);
  EXPECT(kiln_kernel_load(s->softmax, other), KILN_USER_ERROR, "kernel softmax", "gfx942", "gfx950");
  kiln_device_free(other);
  other = NULL;
  EXPECT(kiln_device_open("emulated:gfx906", &other), KILN_USER_ERROR, "gfx906", "gfx942", "gfx950");
  EXPECT(kiln_device_open("cuda:0", &other), KILN_USER_ERROR, "\"cuda:0\" names none", "hip:ORDINAL", "emulated:ARCH");
  CHECK(other == NULL);
}

static void test_compiles(const Setup* s) {
  kiln_pending* pending = NULL;
  kiln_kernel *kernel = NULL, *again = NULL;
  const char* const spec = "kernel twice dim n input x: f32[n, 64] output y: f32[n, 64] = x + x";
  const char *const vec[1] = {"vec=2"}, *const wrong[1] = {"vec=3"};
  REQUIRE(kiln_jit_compile_async(s->jit, spec, vec, 1, &pending) == KILN_OK);
  kiln_status status = kiln_pending_wait(pending, 0, &kernel);
  CHECK(status == KILN_OK || status == KILN_NOT_READY);
  if (status == KILN_NOT_READY) CHECK(kernel == NULL && kiln_pending_wait(pending, -1, &kernel) == KILN_OK);
  CHECK(kiln_pending_wait(pending, INT64_MAX, &again) == KILN_OK && strcmp(kiln_kernel_key(kernel), kiln_kernel_key(again)) == 0);
  CHECK(strstr(kiln_kernel_meta(kernel), "vec=2") != NULL);
  kiln_pending_free(pending);
  kiln_kernel_free(again);
  kiln_kernel_free(kernel);
  pending = NULL;
  EXPECT(kiln_jit_compile_async(s->jit, "kernel", NULL, 0, &pending), KILN_USER_ERROR, "spec text, line 1", "", "");
  REQUIRE(kiln_jit_compile_async(s->jit, spec, wrong, 1, &pending) == KILN_OK);
  EXPECT(kiln_pending_wait(pending, -1, &kernel), KILN_USER_ERROR, "vec", "", "");
  kiln_pending_free(pending);
  char* stats = NULL;
  CHECK(kiln_jit_stats(s->jit, &stats) == KILN_OK && strstr(stats, "\"failed\":1") != NULL);
  kiln_text_free(stats);
}

static void test_batch_invariance(const Setup* s) {
  const kiln_setting setting = {"KILN_BATCH_INVARIANT", "1"};
  const kiln_jit_options options = {sizeof options, &setting, 1, NULL, NULL};
  kiln_jit* jit = NULL;
  kiln_kernel *any = NULL, *invariant = NULL;
  REQUIRE(kiln_jit_create(s->device, &options, &jit) == KILN_OK);
  REQUIRE(kiln_jit_compile(s->jit, softmax_text, NULL, 0, &any) == KILN_OK);
  REQUIRE(kiln_jit_compile(jit, softmax_text, NULL, 0, &invariant) == KILN_OK);
  CHECK(strcmp(kiln_kernel_key(any), kiln_kernel_key(invariant)) != 0);
  kiln_kernel_free(any);
  kiln_kernel_free(invariant);
  kiln_jit_free(jit);
}

static void test_settings(const Setup* s) {
  kiln_setting settings[2] = {{"KILN_JIT_POLICY", "cache_only"}, {"KILN_CACHE_DIR", "/dev/null/kiln"}};
  char line[1000] = "";
  kiln_jit_options options = {sizeof options, settings, 2, keep_line, line};
  kiln_jit* jit = NULL;
  kiln_kernel* kernel = NULL;
  REQUIRE(kiln_jit_create_for(kiln_device_arch(s->device), &options, &jit) == KILN_OK);
  EXPECT(kiln_jit_compile(jit, softmax_text, NULL, 0, &kernel), KILN_CACHE_MISS, "kernel softmax for gfx9", "no cache has it",
         "kernel softmax\n");
  CHECK(strstr(line, "/dev/null/kiln") != NULL); // that the folder cannot be had
  kiln_jit_free(jit);
  jit = NULL;
  settings[0].value = "never";
  EXPECT(kiln_jit_create(s->device, &options, &jit), KILN_USER_ERROR, "KILN_JIT_POLICY", "\"never\" is no policy", "");
  settings[0].name = "KILN_POLICY";
  EXPECT(kiln_jit_create(s->device, &options, &jit), KILN_USER_ERROR, "setting KILN_POLICY", "there is no such variable",
         "KILN_JIT_POLICY");
  settings[0].name = "KILN_DEVICE";
  EXPECT(kiln_jit_create(s->device, &options, &jit), KILN_USER_ERROR, "KILN_DEVICE", "no setting of a jit", "kiln_device_open");
  options.size = 8;
  EXPECT(kiln_jit_create(s->device, &options, &jit), KILN_USER_ERROR, "its size is 8", "", "");
  EXPECT(kiln_jit_create_for("gfx1100", NULL, &jit), KILN_USER_ERROR, "gfx1100", "gfx942", "");
  CHECK(jit == NULL);
}

int main(int argc, char** argv) {
  const char* const name = argc > 1 ? argv[1] : device_name_default;
  test_version();
  test_layout();
  test_types();
  test_specs();
  test_bindings();
  Setup s = set_up(name);
  test_kernel(&s);
  test_numbers(&s);
  test_calls(&s);
  test_arguments(&s);
  test_wrong_device(&s, name);
  test_compiles(&s);
  test_batch_invariance(&s);
  test_settings(&s);
  tear_down(&s);
  kiln_device_free(NULL), kiln_jit_free(NULL), kiln_kernel_free(NULL), kiln_bound_free(NULL), kiln_pending_free(NULL), kiln_text_free(NULL);
  if (failures == 0) printf("%s: everything holds\n", name);
  return failures == 0 ? 0 : 1;
}
