// bind: what it refuses, and with which words. On an emulated device, which knows every allocation.
#include "tests/errors/expect.h"
#include "tests/launch/loaded.h"
#include <cmath>
#include <cstring>
#include <limits>

using namespace kiln;
using kiln::test::compiled;

namespace {

constexpr std::int64_t cols = 1000, pitch = 1024;

// h = residual + alpha * x in place of residual; y = h * weight, and count tells nothing but its type.
KernelSpec subject_spec() {
  const Dim rows = dynamic("rows", 1, 64);
  const Expr x = input("x", f16, {rows, cols}, Layout::strided), residual = input("residual", f16, {rows, cols});
  const Expr weight = input("weight", f16, {cols});
  const Expr h = cast(f16, residual + x * scalar("alpha"));
  return KernelSpec("subject").output("h", f16, h, {.in_place_of = "residual"}).output("y", f16, h * weight * scalar("count", i32));
}

// Everything that the kernel takes, right; each test makes one thing wrong.
struct Subject {
  Device device = Device::emulated("gfx942");
  LoadedKernel kernel = device.load(compiled(subject_spec()));
  DeviceMemory x_memory = device.allocate(4 * pitch * 2, "x"), residual_memory = device.allocate(4 * cols * 2, "residual");
  DeviceMemory weight_memory = device.allocate(cols * 2, "weight"), y_memory = device.allocate(4 * cols * 2, "y");
  DeviceTensor x = x_memory.tensor(f16, {4, cols}, pitch), residual = residual_memory.tensor(f16, {4, cols});
  DeviceTensor weight = weight_memory.tensor(f16, {cols}), y = y_memory.tensor(f16, {4, cols});
  double alpha = 0.5, count = 3;
  std::vector<Argument> more;

  BoundKernel bind() const {
    std::vector<Argument> all{{"x", x}, {"residual", residual}, {"weight", weight}, {"y", y}, {"alpha", alpha}, {"count", count}};
    all.insert(all.end(), more.begin(), more.end());
    return kernel.bind(all);
  }
  void refuses(std::string_view argument, std::string_view fact, std::string_view remedy) const {
    expect_user_error([&] { static_cast<void>(bind()); }, fmt::format("kernel subject, argument {}", argument), fact, remedy);
  }
};

DeviceTensor shifted(DeviceTensor tensor, std::ptrdiff_t bytes) {
  tensor.data = static_cast<std::byte*>(tensor.data) + bytes;
  return tensor;
}

} // namespace

TEST_CASE("bind: the argument block holds addresses, scalars, sizes and strides where the code object reads them") {
  const Subject s;
  const BoundKernel bound = s.bind();
  const auto block = bound.argument_block();
  for (const KernelArgument& a : s.kernel.kernel().arguments()) {
    CAPTURE(a.name);
    std::uint64_t bits = 0;
    std::memcpy(&bits, &block[static_cast<std::size_t>(a.offset)], static_cast<std::size_t>(a.size));
    const std::map<std::string, std::uint64_t> expected{{"x", reinterpret_cast<std::uintptr_t>(s.x.data)},
                                                        {"residual", reinterpret_cast<std::uintptr_t>(s.residual.data)},
                                                        {"weight", reinterpret_cast<std::uintptr_t>(s.weight.data)},
                                                        {"y", reinterpret_cast<std::uintptr_t>(s.y.data)},
                                                        {"alpha", 0x3f000000},
                                                        {"count", 3},
                                                        {"rows", 4},
                                                        {"x_stride", pitch}};
    CHECK(bits == expected.at(a.name));
  }
  CHECK(bound.blocks() > 0);
  CHECK(bound.threads() == static_cast<std::uint32_t>(s.kernel.kernel().launch().workgroup_threads()));
}

TEST_CASE("bind: names") {
  Subject s;
  s.more = {{"extra", 1}};
  s.refuses("extra", "no such argument", "use one of residual, x, weight, y, alpha, count, rows");
  s.more = {{"y", s.y}};
  s.refuses("y", "given twice", "once");
  s.more = {{"x_stride", 1024}};
  s.refuses("x_stride", "no such argument", "use one of");
  for (const char* missing : {"x", "weight", "y", "alpha", "count"}) {
    std::vector<Argument> rest;
    for (const Argument& a :
         std::vector<Argument>{{"x", s.x}, {"residual", s.residual}, {"weight", s.weight}, {"y", s.y}, {"alpha", 1}, {"count", 1}})
      if (a.name != missing) rest.push_back(a);
    expect_user_error([&] { static_cast<void>(s.kernel.bind(rest)); }, fmt::format("kernel subject, argument {}", missing), "it is missing",
                      "give a");
  }
}

TEST_CASE("bind: an in-place pair is given by either name, or by both alike") {
  const Subject s;
  const auto with = [&](std::vector<Argument> pair) {
    pair.insert(pair.end(), {{"x", s.x}, {"weight", s.weight}, {"y", s.y}, {"alpha", 1}, {"count", 1}});
    return s.kernel.bind(pair);
  };
  for (const BoundKernel& bound :
       {with({{"h", s.residual}}), with({{"residual", s.residual}}), with({{"h", s.residual}, {"residual", s.residual}})})
    CHECK(std::memcmp(bound.argument_block().data(), with({{"residual", s.residual}}).argument_block().data(),
                      bound.argument_block().size()) == 0);
  const DeviceMemory other = s.device.allocate(4 * cols * 2);
  expect_user_error([&] { static_cast<void>(with({{"h", other.tensor(f16, {4, cols})}, {"residual", s.residual}})); },
                    "kernel subject, argument h", "shares the memory of residual", "give both the same");
  expect_user_error([&] { static_cast<void>(with({})); }, "kernel subject, argument residual", "it is missing", "f16[rows[1..64], 1000]");
}

TEST_CASE("bind: types, kinds and shapes") {
  Subject s;
  s.y.dtype = bf16;
  s.refuses("y", "it is bf16, and the kernel takes f16", "build the spec for this one");
  s = Subject();
  s.weight.shape = {1, cols};
  s.refuses("weight", "its shape is [1, 1000], and the kernel takes [1000]", "that many dimensions");
  s = Subject();
  s.weight.shape = {999};
  s.refuses("weight", "dimension 0 is 999, and the kernel was compiled for 1000", "compile the spec with 999");
  s = Subject();
  s.y.shape = {3, cols};
  s.refuses("y", "dimension 0 is 3, and rows is 4 elsewhere", "one value in a launch");
  s = Subject();
  s.x.shape = s.residual.shape = s.y.shape = {65, cols};
  s.refuses("residual", "dimension 0 is 65, and rows is 1 to 64", "within these bounds");
  s = Subject();
  s.x.shape = s.residual.shape = s.y.shape = {-1, cols};
  s.refuses("residual", "dimension 0 is -1", "within these bounds");
  s = Subject();
  s.more = {{"rows", 5}};
  s.refuses("rows", "5 is given, and the tensors have 4", "leave it out");
  s.more = {{"rows", 4}};
  CHECK(s.bind().blocks() > 0);
  s.more = {{"rows", s.x}};
  s.refuses("rows", "it is a number, and a tensor is given", "give a number");
  expect_user_error([&] { static_cast<void>(s.kernel.bind(std::vector<Argument>{{"x", 1.5}, {"residual", s.residual}})); },
                    "kernel subject, argument x", "it is a tensor, and the number 1.5 is given", "DeviceTensor");
}

TEST_CASE("bind: the fp8 flavours are told apart") {
  const Device device = Device::emulated("gfx942");
  const Expr x = input("x", f32, {dynamic("rows"), 256});
  const LoadedKernel kernel = device.load(compiled(KernelSpec("quantise").output("q", e4m3fnuz, x)));
  const DeviceMemory in = device.allocate(256 * 4), out = device.allocate(256);
  expect_user_error([&] { static_cast<void>(kernel.bind({{"x", in.tensor(f32, {1, 256})}, {"q", out.tensor(e4m3fn, {1, 256})}})); },
                    "kernel quantise, argument q", "it is e4m3fn, and the kernel takes e4m3fnuz", "flavours are different numbers");
}

TEST_CASE("bind: scalars") {
  Subject s;
  s.alpha = 1e39;
  s.refuses("alpha", "1e+39 is beyond f32", "at most 3.4");
  s.alpha = std::numeric_limits<double>::infinity(); // a number of f32
  CHECK(s.bind().blocks() > 0);
  for (const double wrong : {0.5, 2147483648.0, -2147483649.0, std::nan("")}) {
    s.count = wrong;
    s.refuses("count", "is no i32", "whole number");
  }
}

TEST_CASE("bind: strides") {
  Subject s;
  s.x.row_stride = 999;
  s.refuses("x", "its stride is 999 elements, and a row has 1000", "must not overlap");
  s = Subject();
  s.x.row_stride = 1001; // the kernel loads eight f16 at a time
  s.refuses("x", "its stride is 1001 elements, no multiple of", "pad its rows");
  s = Subject();
  s.y.row_stride = pitch;
  s.refuses("y", "its stride is 1024 elements, and the kernel takes rows of 1000 without gaps", "Layout::strided");
  s = Subject();
  s.x.row_stride = -8;
  CHECK_THROWS_AS(static_cast<void>(s.bind()), UserError);
  s = Subject();
  s.x.row_stride = std::int64_t{1} << 32;
  s.refuses("x", "4294967296 elements, and the kernel takes 32 bits", "below 2^32");
}

TEST_CASE("bind: rows that share a wave must lie within the reach of 32-bit offsets") {
  const Device device = Device::emulated("gfx942");
  const Expr x = input("x", f16, {dynamic("rows"), 64}, Layout::strided);
  const LoadedKernel kernel = device.load(compiled(KernelSpec("narrow").output("y", f16, x / row_sum(x))));
  const std::int64_t rows_per_block = kernel.kernel().launch().units_per_block;
  REQUIRE(kernel.kernel().launch().threads < 64 * rows_per_block);
  // Addresses that nobody allocated: the stride is looked at first.
  const auto bind = [&](std::int64_t stride) {
    return kernel.bind(
        {{"x",
          DeviceTensor{.data = reinterpret_cast<void*>(std::uintptr_t{1} << 40), .dtype = f16, .shape = {2, 64}, .row_stride = stride}},
         {"y", DeviceTensor{.data = reinterpret_cast<void*>(std::uintptr_t{1} << 41), .dtype = f16, .shape = {2, 64}}}});
  };
  const std::int64_t reach = (std::int64_t{1} << 32) / 2 / rows_per_block; // elements
  expect_user_error([&] { static_cast<void>(bind(reach)); }, "kernel narrow, argument x",
                    fmt::format("the {} rows of a workgroup must lie within 4 GiB", rows_per_block), "threads_per_row=64");
  expect_user_error([&] { static_cast<void>(bind(reach - 8)); }, "kernel narrow, argument x", "far from every allocation", "large enough");
}

TEST_CASE("bind: addresses") {
  Subject s;
  s.weight.data = nullptr;
  s.refuses("weight", "its address is null", "allocate");
  s = Subject();
  s.y = shifted(s.y, 2);
  s.refuses("y", "is no multiple of 16 bytes", "hipMalloc");
  s = Subject();
  s.weight = shifted(s.weight, 16);
  s.refuses("weight", "end 16 bytes past the end of weight (2000 bytes)", "large enough");
  s = Subject();
  s.x_memory = s.device.allocate(16, "other"); // releases x's
  s.refuses("x", "", "allocation of this device");
}

TEST_CASE("bind: outputs overlap nothing, inputs may overlap inputs") {
  Subject s;
  s.y = s.weight_memory.tensor(f16, {1, cols});
  s.x.shape = s.residual.shape = {1, cols};
  s.refuses("y", "it is written, and its bytes", "memory of its own");
  s = Subject();
  s.y = s.residual; // not the declared pair
  s.refuses("y", "overlap residual", "in place of");
  s = Subject();
  s.weight = s.x_memory.tensor(f16, {cols}); // both only read
  CHECK(s.bind().blocks() > 0);
}

TEST_CASE("bind: column slices of one wide buffer lie side by side") {
  const Device device = Device::emulated("gfx942");
  const Dim rows = dynamic("rows");
  const Expr x = input("x", f16, {rows, 256}, Layout::strided);
  const KernelSpec spec = KernelSpec("slices").output("y", f16, x + 1.0, {.layout = Layout::strided});
  const LoadedKernel kernel = device.load(compiled(spec));
  const DeviceMemory wide = device.allocate(4 * 512 * 2, "wide");
  const auto slice = [&](std::size_t column) { return wide.tensor(f16, {3, 256}, 512, column * 2); };
  CHECK(kernel.bind({{"x", slice(0)}, {"y", slice(256)}}).blocks() > 0);
  CHECK(kernel.bind({{"x", slice(256)}, {"y", slice(0)}}).blocks() > 0);
  for (const std::size_t column : {std::size_t{8}, std::size_t{248}, std::size_t{264}})
    expect_user_error([&] { static_cast<void>(kernel.bind({{"x", slice(0)}, {"y", slice(column)}})); }, "kernel slices, argument y",
                      "overlap x", "memory of its own");
}

TEST_CASE("bind: a grid beyond HIP's 32 bits of threads, and sizes beyond any memory") {
  kiln::test::fresh_stub();
  const Device device = kiln::test::stub_device();
  const Shape shape{dynamic("a"), dynamic("b"), 256};
  const auto bind = [&](const KernelSpec& spec, const std::vector<std::int64_t>& in, const std::vector<std::int64_t>& out) {
    const auto tensor = [](std::uintptr_t address, const std::vector<std::int64_t>& sizes) {
      return DeviceTensor{.data = reinterpret_cast<void*>(address), .dtype = u8, .shape = sizes};
    };
    const std::vector<Argument> arguments{{"x", tensor(std::uintptr_t{1} << 40, in)}, {"y", tensor(std::uintptr_t{1} << 50, out)}};
    static_cast<void>(device.load(compiled(spec)).bind(arguments));
  };
  const KernelSpec rows = KernelSpec("rows").output("y", u8, row_max(input("x", u8, {dynamic("a"), 256})));
  expect_user_error([&] { bind(rows, {1 << 30, 256}, {1 << 30, 1}); }, "kernel rows", "workgroups of", "split the tensors");
  const KernelSpec flat = KernelSpec("planes").output("y", u8, input("x", u8, shape) + 1.0);
  const std::int64_t much = std::int64_t{1} << 30;
  CHECK_THROWS_WITH_AS(bind(flat, {much, much, 256}, {much, much, 256}), doctest::Contains("do not fit a 63-bit number"), UserError);
  CHECK_THROWS_WITH_AS(bind(flat, {2 * much, 1, 256}, {2 * much, 1, 256}),
                       doctest::Contains("dimension 0 is 2147483648, and a is 0 to 2147483647"), UserError);
}

TEST_CASE("bind: nothing is launched when a size is 0") {
  const Device device = Device::emulated("gfx950");
  const Expr x = input("x", f16, {dynamic("rows"), 64});
  const LoadedKernel kernel = device.load(compiled(KernelSpec("none").output("y", f16, x + 1.0), "gfx950"));
  const BoundKernel bound =
      kernel.bind({{"x", DeviceTensor{.dtype = f16, .shape = {0, 64}}}, {"y", DeviceTensor{.dtype = f16, .shape = {0, 64}}}});
  CHECK(bound.blocks() == 0);
  bound.launch();
}
