// Loading code objects: kernels, descriptors, metadata.
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/error.h"
#include "isa_checks/object/code_object.h"
#include "tests/isa/linked.h"
#include "tests/isa/snippet.h"
#include <doctest/doctest.h>

namespace code_object_test {
using namespace kiln::isa;
using namespace kiln::isa::testing;

TEST_CASE("a kernel has its name, code, metadata and descriptor") {
  for (std::string_view arch : {"gfx90a", "gfx942", "gfx950"}) {
    CAPTURE(arch);
    const CodeObject object =
        assemble_kernel("  v_mov_b32_e32 v0, 1\n  s_nop 0", arch, {.vgprs = 40, .accum_offset = 40, .sgprs = 20, .lds_bytes = 4096});
    CHECK(object.target().name == arch);
    CHECK(object.relocatable());
    REQUIRE(object.kernels().size() == 1);
    const Kernel& kernel = object.kernel("k");
    CHECK(kernel.code.size() == 12); // v_mov, s_nop, s_endpgm
    CHECK(kernel.code_size_known);
    CHECK(kernel.descriptor.group_segment_bytes == 4096);
    CHECK(kernel.descriptor.vgprs == 40);
    CHECK(kernel.descriptor.accum_offset == 40);
    REQUIRE(kernel.metadata);
    CHECK(kernel.metadata->vgpr_count == 40);
    CHECK(kernel.metadata->sgpr_count == 20);
    CHECK(kernel.metadata->group_segment_bytes == 4096);
    CHECK(kernel.metadata->max_flat_workgroup_size == 256);
    CHECK(kernel.metadata->kernarg_bytes == 24);
    CHECK_FALSE(kernel.metadata->required_workgroup_size);
    REQUIRE(kernel.metadata->arguments.size() == 3);
    CHECK(kernel.metadata->arguments[0] == KernelArgument{"x", "", 0, 8, "global_buffer", "global"});
    CHECK_FALSE(kernel.metadata->arguments[1].hidden());
    CHECK(kernel.metadata->arguments[2].hidden());
  }
}

TEST_CASE("every field of the descriptor is where the assembler puts it") {
  const auto decode = [](std::string descriptor) {
    return assemble_kernel("", "gfx942", {.descriptor = std::move(descriptor)}).kernel("k").descriptor;
  };
  const KernelDescriptor plain = decode("");
  struct Case {
    const char* directive;
    bool KernelDescriptor::* flag;
  };
  const Case cases[] = {
      {".amdhsa_user_sgpr_dispatch_ptr 1", &KernelDescriptor::sgpr_dispatch_ptr},
      {".amdhsa_user_sgpr_queue_ptr 1", &KernelDescriptor::sgpr_queue_ptr},
      {".amdhsa_user_sgpr_kernarg_segment_ptr 1", &KernelDescriptor::sgpr_kernarg_segment_ptr},
      {".amdhsa_user_sgpr_dispatch_id 1", &KernelDescriptor::sgpr_dispatch_id},
      {".amdhsa_user_sgpr_private_segment_size 1", &KernelDescriptor::sgpr_private_segment_size},
      {".amdhsa_uses_dynamic_stack 1", &KernelDescriptor::dynamic_stack},
      {".amdhsa_system_sgpr_workgroup_id_y 1", &KernelDescriptor::workgroup_id_y},
      {".amdhsa_system_sgpr_workgroup_id_z 1", &KernelDescriptor::workgroup_id_z},
      {".amdhsa_system_sgpr_workgroup_info 1", &KernelDescriptor::workgroup_info},
      {".amdhsa_fp16_overflow 1", &KernelDescriptor::fp16_overflow},
  };
  for (const Case& c : cases) {
    CAPTURE(c.directive);
    CHECK_FALSE(plain.*c.flag);
    CHECK(decode(c.directive).*c.flag);
    for (const Case& other : cases) // and no other flag moves
      if (other.flag != c.flag) CHECK_FALSE(decode(c.directive).*other.flag);
  }
  CHECK(plain.workgroup_id_x);
  CHECK_FALSE(decode(".amdhsa_system_sgpr_workgroup_id_x 0").workgroup_id_x);
  CHECK(plain.dx10_clamp);
  CHECK_FALSE(decode(".amdhsa_dx10_clamp 0").dx10_clamp);
  CHECK(plain.ieee_mode);
  CHECK_FALSE(decode(".amdhsa_ieee_mode 0").ieee_mode);
  CHECK(decode(".amdhsa_system_vgpr_workitem_id 2").workitem_id == 2);
  CHECK(decode(".amdhsa_float_round_mode_32 1").float_round_mode_32 == 1);
  CHECK(decode(".amdhsa_float_round_mode_16_64 2").float_round_mode_16_64 == 2);
  CHECK(decode(".amdhsa_float_denorm_mode_32 3").float_denorm_mode_32 == 3);
  CHECK(plain.float_denorm_mode_16_64 == 3);
  CHECK(decode(".amdhsa_float_denorm_mode_16_64 1").float_denorm_mode_16_64 == 1);
  CHECK(decode(".amdhsa_kernarg_size 264").kernarg_bytes == 264);
  const KernelDescriptor preload = decode(".amdhsa_user_sgpr_kernarg_segment_ptr 1\n.amdhsa_user_sgpr_kernarg_preload_length 6\n"
                                          ".amdhsa_user_sgpr_kernarg_preload_offset 2");
  CHECK(preload.preload_dwords == 6);
  CHECK(preload.preload_offset_dwords == 2);
  CHECK(preload.user_sgprs == 8);
}

TEST_CASE("allocated registers follow the granules") {
  for (const auto& [asked, allocated] : {std::pair{1, 8}, {8, 8}, {9, 16}, {64, 64}, {65, 72}, {256, 256}, {257, 264}, {512, 512}}) {
    CAPTURE(asked);
    const Snippet snippet{.vgprs = asked, .accum_offset = asked > 256 ? 256 : (asked + 3) / 4 * 4};
    CHECK(assemble_kernel("", "gfx950", snippet).kernel("k").descriptor.vgprs == static_cast<unsigned>(allocated));
  }
}

TEST_CASE("a note for each kernel, as assemblers of several texts write it") {
  std::string text = kernel_text("s_nop 0", "gfx942", {.name = "first", .lds_bytes = 512, .workgroup_size = 128});
  std::string second = kernel_text("s_nop 1", "gfx942", {.name = "second", .workgroup_size = 512});
  second.replace(second.find(".amdgcn_target"), second.find(".text") - second.find(".amdgcn_target"), "");
  const CodeObject object = load_code_object(assemble(text + second, target_facts("gfx942")), "two notes");
  REQUIRE(object.kernels().size() == 2);
  for (const auto& [name, lanes] : {std::pair("first", 128U), {"second", 512U}}) {
    CAPTURE(name);
    REQUIRE(object.kernel(name).metadata);
    CHECK(object.kernel(name).metadata->max_flat_workgroup_size == lanes);
  }
  CHECK(object.metadata().kernels.size() == 2);
}

TEST_CASE("hand-written objects: no metadata, no symbol size, labels inside") {
  const std::string text = R"(
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl first
first:
  s_nop 1
label_0001:
  s_branch label_0001
  s_endpgm
.globl second
second:
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel first
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 8
  .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
.amdhsa_kernel second
  .amdhsa_next_free_vgpr 8
  .amdhsa_accum_offset 8
  .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
)";
  const CodeObject object = load_code_object(assemble(text, target_facts("gfx942")));
  REQUIRE(object.kernels().size() == 2);
  CHECK(object.kernels()[0].name == "first");
  CHECK_FALSE(object.kernels()[0].code_size_known);
  CHECK(object.kernels()[0].code.size() == 12);
  CHECK(object.kernels()[1].code.size() == 4);
  CHECK_FALSE(object.kernels()[0].metadata);
  CHECK(object.metadata().target.empty());
}

TEST_CASE("an unknown kernel is named with those there are") {
  const CodeObject object = assemble_kernel("", "gfx942");
  CHECK_THROWS_WITH_AS(object.kernel("other"), "snippet: it has no kernel 'other' among its 1; use one of k", Error);
}

TEST_CASE("a linked object: the descriptor says where the code is") {
  const CodeObject object =
      load_code_object(link(assemble(kernel_text("  s_nop 0\n  v_mov_b32_e32 v0, 1", "gfx950"), target_facts("gfx950"))));
  CHECK_FALSE(object.relocatable());
  const Kernel& kernel = object.kernel("k");
  CHECK(kernel.entry != 0);
  CHECK(kernel.entry == kernel.descriptor_address + static_cast<std::uint64_t>(kernel.descriptor.entry_offset));
  CHECK(kernel.code.size() == 12);
  CHECK(kernel.code_size_known);
  CHECK(object.sections()[kernel.section].address <= kernel.entry);
  const auto code = Disassembler(object.target()).decode(kernel);
  CHECK(code[0].address == kernel.entry);
  CHECK(code[1].text == "v_mov_b32_e32 v0, 1");
}

} // namespace code_object_test
