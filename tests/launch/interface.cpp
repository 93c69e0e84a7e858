// KernelInterface: what it says is enough to launch a code object without Kiln: its JSON against what bind makes.
#include "runtime/launch/arguments/interface.h"
#include "tests/launch/loaded.h"
#include <cstring>
#include <nlohmann/json.hpp>

using namespace kiln;
using kiln::test::compiled;

TEST_CASE("interface: the argument block and the grid that its JSON describes are those of a launch") {
  const Expr x = input("x", f16, {dynamic("rows"), 256}, Layout::strided);
  const Kernel kernel = compiled(KernelSpec("scaled").output("y", f16, x * scalar("by"), {.in_place_of = "x", .layout = Layout::strided}));
  const nlohmann::json json = nlohmann::json::parse(to_json(interface_of(kernel)));
  const Device device = Device::emulated("gfx942");
  const DeviceMemory memory = device.allocate(5 * 512 * 2);
  const BoundKernel bound = device.load(kernel).bind({{"x", memory.tensor(f16, {5, 256}, 512)}, {"by", 2}});

  CHECK(json["kernel"] == "scaled");
  CHECK(json["arch"] == "gfx942");
  REQUIRE(json["argument_bytes"] == bound.argument_block().size());
  std::vector<std::byte> block(bound.argument_block().size());
  for (const auto& argument : json["arguments"]) {
    const std::map<std::string, std::uint64_t> values{
        {"x", reinterpret_cast<std::uintptr_t>(memory.data())}, {"by", 0x40000000}, {"rows", 5}, {"x_stride", 512}};
    const std::uint64_t bits = values.at(argument["name"]);
    std::memcpy(&block[argument["offset"].get<std::size_t>()], &bits, argument["size"].get<std::size_t>());
  }
  CHECK(std::memcmp(block.data(), bound.argument_block().data(), block.size()) == 0);
  std::int64_t units = 1;
  for (const auto& factor : json["grid"]["units"]) units *= factor.is_number() ? factor.get<std::int64_t>() : 5;
  const std::int64_t each = json["grid"]["units_per_workgroup"];
  CHECK((units + each - 1) / each * json["grid"]["workgroups_per_unit"].get<std::int64_t>() == bound.blocks());
  CHECK(json["grid"]["threads"] == bound.threads());
  CHECK(json["workspace"]["bytes"] == 0);
}

TEST_CASE("interface: a workspace and the bytes that it needs") {
  const Expr a = input("a", f16, {dynamic("m", 1, 4), 512}), b = input("b", f16, {256, 512});
  const Kernel kernel = compiled(KernelSpec("product").output("c", f16, matmul_nt(a, b)), "gfx942", {kiln::test::split});
  const nlohmann::json json = nlohmann::json::parse(to_json(interface_of(kernel)));
  CHECK(json["workspace"]["bytes"] == kernel.workspace_bytes());
  int workspaces = 0;
  for (const auto& argument : json["arguments"]) workspaces += argument["kind"] == "workspace";
  CHECK(workspaces == 1);
}
