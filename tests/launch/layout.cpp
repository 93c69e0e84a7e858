// check_layout: a code object whose arguments are not those that Kiln fills is never loaded.
#include "runtime/launch/arguments/layout.h"
#include "tests/launch/loaded.h"

using namespace kiln;
using kiln::test::compiled;

namespace {

const Kernel& good() {
  static const Kernel kernel = compiled(KernelSpec("scaled").output("y", f16, input("x", f16, {dynamic("rows"), 256}) * scalar("by")));
  return kernel;
}

// The kernel with another description, as a wrong entry of a cache would give it.
Kernel changed(const std::function<void(CachedKernel&)>& change) {
  CachedKernel kernel{.key = {.fields = {{"spec", good().spec_text()}}, .hex = good().key()},
                      .name = good().name(),
                      .arch = good().arch(),
                      .arguments = {good().arguments().begin(), good().arguments().end()},
                      .launch = good().launch(),
                      .workspace_bytes = 0,
                      .object = {reinterpret_cast<const char*>(good().code_object().data()), good().code_object().size()},
                      .meta = good().meta()};
  change(kernel);
  return Kernel(std::move(kernel), Origin::folder);
}

void refuses(const std::string& fact, const std::function<void(CachedKernel&)>& change) {
  CAPTURE(fact);
  const Kernel kernel = changed(change);
  try {
    check_layout(kernel);
    FAIL_CHECK("no error");
  } catch (const EnvironmentError& error) {
    CAPTURE(error.fact);
    CHECK(error.fact.find(fact) != std::string::npos);
    CHECK(error.remedy.find("remove its entry from the cache (key " + good().key()) != std::string::npos);
  }
}

// The same change to what the entry says and to what the code object says, as somebody makes it who writes both.
Kernel forged(std::string_view from, std::string_view to, const std::function<void(CachedKernel&)>& change) {
  return changed([&](CachedKernel& kernel) {
    const std::size_t at = kernel.object.find(from);
    REQUIRE(at != std::string::npos);
    kernel.object.replace(at, from.size(), to);
    change(kernel);
  });
}

void refuses_to_load(const Kernel& kernel, const std::string& fact) {
  CAPTURE(fact);
  try {
    static_cast<void>(Device::emulated("gfx942").load(kernel));
    FAIL_CHECK("no error");
  } catch (const EnvironmentError& error) {
    CAPTURE(error.fact);
    CHECK(error.fact.find(fact) != std::string::npos);
  }
}

} // namespace

TEST_CASE("layout: what the compiler declares is what Kiln fills, for every argument kind") {
  check_layout(good());
  const Expr a = input("a", f16, {dynamic("m", 1, 4), 512}), b = input("b", f16, {256, 512});
  check_layout(compiled(KernelSpec("product").output("c", f16, matmul_nt(a, b) * scalar("s", i32)), "gfx950")); // with a workspace
  const Expr x = input("x", f16, {dynamic("rows"), 256}, Layout::strided);
  check_layout(compiled(KernelSpec("in_place").output("y", f16, x + 1.0, {.in_place_of = "x", .layout = Layout::strided})));
}

TEST_CASE("layout: an argument block that no kernel of Kiln has is refused, though the code object agrees") {
  refuses_to_load(forged("\xa5.size\x08", "\xa5.size\x7f", [](CachedKernel& k) { k.arguments[0].size = 127; }), "127 bytes");
  refuses_to_load(forged("\xa7.offset\x08", std::string_view("\xa7.offset\x00", 9), [](CachedKernel& k) { k.arguments[1].offset = 0; }),
                  "argument 1 is y");
  refuses_to_load(forged("\xa7.offset\x08", "\xa7.offset\x0c", [](CachedKernel& k) { k.arguments[1].offset = 12; }), "no multiple of 8");
  refuses_to_load(forged("\xa7.offset\x10", "\xa7.offset\x7c", [](CachedKernel& k) { k.arguments[2].offset = 124; }), "kernarg segment");
}

TEST_CASE("layout: a launch that no kernel of Kiln has is refused") {
  const auto launch = [](const std::function<void(Launch&)>& change) {
    return changed([&](CachedKernel& kernel) { change(kernel.launch); });
  };
  refuses_to_load(launch([](Launch& l) { l.threads = 0; }), "workgroups of 0 threads");
  refuses_to_load(launch([](Launch& l) { l.threads = -64; }), "workgroups of -64 threads");
  refuses_to_load(launch([](Launch& l) { l.units_per_block = 0; }), "0 units a workgroup");
  refuses_to_load(launch([](Launch& l) { l.blocks_per_unit = -1; }), "-1 workgroups a unit");
  refuses_to_load(launch([](Launch& l) { l.units = -5; }), "-5 units");
  refuses_to_load(launch([](Launch& l) { l.dims = {dynamic("other")}; }), "grid is over other");
  refuses_to_load(launch([](Launch& l) { l.behind = {Launch{.threads = l.threads + 64}}; }),
                  "takes workgroups of at most 64 threads, the launch has 128");
  refuses_to_load(launch([](Launch& l) { l.behind = {Launch{.threads = l.threads, .units = 0}}; }), "0 units");
  refuses_to_load(changed([](CachedKernel& k) { k.workspace_bytes = -1; }), "a workspace of -1 bytes");
  refuses_to_load(changed([](CachedKernel& k) { k.workspace_bytes = 4096; }), "a workspace of 4096 bytes");
  refuses_to_load(changed([](CachedKernel& k) { k.arguments[0].alignment = -3; }), "alignment");
  refuses_to_load(changed([](CachedKernel& k) { k.arguments[0].name = "z"; }), "z");
  refuses_to_load(changed([](CachedKernel& k) { k.arguments[1].name = "x"; }), "x");
}

TEST_CASE("layout: every difference is refused and named") {
  refuses("argument 0 is x (global_buffer, 8 bytes at 8) in the spec and global_buffer, 8 bytes at 0 in the code object",
          [](CachedKernel& k) { k.arguments[0].offset = 8; });
  refuses("4 bytes at 0) in the spec", [](CachedKernel& k) { k.arguments[0].size = 4; });
  refuses("argument 2 is by (global_buffer", [](CachedKernel& k) { k.arguments[2].kind = ArgumentKind::input; });
  refuses("arguments in the spec and", [](CachedKernel& k) { k.arguments.pop_back(); });
  refuses("the launch has 2048", [](CachedKernel& k) { k.launch.threads = 2048; });
  refuses("no kernel of that name", [](CachedKernel& k) { k.name = "other"; });
  refuses("its code object is for gfx942, not for gfx950", [](CachedKernel& k) { k.arch = "gfx950"; });
  refuses("its code object cannot be read", [](CachedKernel& k) { k.object.resize(100); });
}
