// Proves that an execution which leaves out the results that nobody wants goes through the same instructions and accesses the same places,
// over the catalogue; and which results of a few instructions are wanted. Two of each KILN_SLICES_EVERY (12) kernels are taken, on an
// architecture each; 2 takes all, which is minutes.
#include "gen/catalog/catalog.h"
#include "gen/reference/random_inputs.h"
#include "isa_checks/analysis/control_slice.h"
#include "isa_checks/decode/disassembler.h"
#include "isa_checks/exec/machine/observer.h"
#include "runtime/build/build_kernel.h"
#include "runtime/launch/record.h"
#include "tests/exec/lane_program.h"
#include "tests/fuzz/seeds.h"
#include <algorithm>
#include <bit>
#include <doctest/doctest.h>
#include <map>
#include <tuple>

using namespace kiln;
using namespace kiln::testing;

namespace {

// By workgroup and wave a number that stands for all instructions and places in order.
class Trace : public exec::Observer {
public:
  void execute(const exec::Wave& wave, const exec::Inst& inst) override { mix(wave, inst.address); }
  void access(const exec::Wave& wave, const exec::Inst&, const exec::LaneAccess&, const exec::WaveAddresses& at) override { mix(wave, at); }
  void access_lds(const exec::Wave& wave, const exec::Inst&, const exec::LaneAccess&, const exec::WaveAddresses& at,
                  const isa::BankPasses&) override {
    mix(wave, at);
  }
  void access_scalar(const exec::Wave& wave, const exec::Inst&, std::uint64_t address, std::uint32_t) override { mix(wave, address); }

  bool operator==(const Trace& other) const { return waves_ == other.waves_; }
  std::size_t waves() const { return waves_.size(); }

private:
  void mix(const exec::Wave& wave, std::uint64_t value) {
    const auto& id = wave.group->id;
    std::uint64_t& hash = waves_[{id[0], id[1], wave.index}];
    hash = (std::rotl(hash, 5) ^ value) * 0x9e3779b97f4a7c15ULL;
  }
  void mix(const exec::Wave& wave, const exec::WaveAddresses& at) {
    for (std::uint64_t m = at.mask; m != 0; m &= m - 1) mix(wave, at.lane[std::countr_zero(m)]);
  }
  std::map<std::tuple<std::uint32_t, std::uint32_t, int>, std::uint64_t> waves_;
};

isa::Program program_of(const BuiltKernel& built) {
  const isa::CodeObject object = isa::load_code_object(built.object.bytes, built.object.name);
  isa::Disassembler disassembler(object.target());
  return isa::build_program(object.kernel(built.object.name), disassembler);
}

Trace trace(const KernelSpec& spec, const BuiltKernel& built, std::span<const std::uint8_t> unwanted) {
  std::map<std::string, std::int64_t> sizes;
  for (const Dim& dim : spec.dynamic_dims()) sizes[dim.name()] = size_within(dim, 3);
  BlankLaunch launch = blank_launch(spec, built.source, sizes);
  Trace seen;
  exec::ExecOptions options;
  options.check_waits = options.check_undefined = options.check_races = options.check_hazards = options.measure = false;
  options.observer = &seen;
  options.unwanted = unwanted;
  options.in_turns = true;
  const exec::ExecResult result = exec::execute(isa::load_code_object(built.object.bytes, built.object.name), built.object.name,
                                                launch.grid, launch.arguments, launch.memory, options);
  CHECK(result.completed);
  return seen;
}

// Whether the last of the instructions before those that `behind` adds is wanted.
bool is_wanted(const std::string& before, const std::string& behind) {
  const auto instructions = [](const std::string& body) {
    const isa::CodeObject object = exec::testing::assemble_kernel({.body = body});
    isa::Disassembler disassembler(object.target());
    return isa::build_program(object.kernel("k"), disassembler);
  };
  const std::size_t last = instructions(before).instructions.size() - 2; // s_endpgm is behind it
  return isa::unwanted_results(instructions(before + "\n" + behind), false).at(last) == 0;
}

} // namespace

TEST_CASE("without the results that nobody wants, kernels take the same ways to the same places") {
  const std::size_t every = std::max<std::size_t>(2, number_from("KILN_SLICES_EVERY", 12));
  for (std::size_t n = 0; n < catalog().size(); ++n) {
    if (n % every > 1) continue;
    const CatalogEntry& entry = catalog()[n];
    const Target to = target(n % every == 0 ? "gfx942" : "gfx950");
    CatalogOptions options;
    options.fp8 = to.fp8();
    options.cols = 1024, options.heads = options.kv_heads = 2, options.m = 3, options.n = 256, options.k = 1024;
    const KernelSpec spec = entry.build(options);
    const BuiltKernel built = build_kernel(spec, to, own_process_options(process_environment()));
    const isa::Program program = program_of(built);
    std::vector<std::uint8_t> products;
    for (const isa::Instruction& i : program.instructions) products.push_back(i.kind == isa::InstructionClass::mfma ? 1 : 0);
    CAPTURE(entry.name);
    CAPTURE(to.arch());
    const Trace all = trace(spec, built, products);
    CHECK(all.waves() > 0);
    CHECK(all == trace(spec, built, isa::unwanted_results(program, true)));
  }
}

TEST_CASE("results that addresses, EXEC and branches depend on are wanted") {
  const std::string load = "global_load_dword v1, v0, s[4:5]", store = "global_store_dword v0, v1, s[4:5]";
  CHECK_FALSE(is_wanted("v_mov_b32 v1, 1", store));
  CHECK(is_wanted("v_mov_b32 v0, 1", store));
  CHECK_FALSE(is_wanted(load, store));
  CHECK(is_wanted(load, "global_load_dword v2, v1, s[4:5]"));
  CHECK(is_wanted("v_cmp_eq_u32 vcc, v1, v0", "s_cbranch_vccnz 0\n" + store));
  CHECK_FALSE(is_wanted("v_cmp_eq_u32 vcc, v1, v0", "v_cndmask_b32 v1, v0, v1, vcc\n" + store));
  CHECK(is_wanted("v_cmp_eq_u32 vcc, v1, v0", "s_and_saveexec_b64 s[8:9], vcc"));
  CHECK(is_wanted("s_mov_b32 s4, 0", store));
  CHECK_FALSE(is_wanted("s_mov_b32 s8, 0", "v_add_u32 v1, s8, v1\n" + store));
  CHECK(is_wanted("s_mov_b32 s4, 0", "s_bitset1_b32 s4, 7\n" + store));
  CHECK(is_wanted("s_mov_b32 s4, 0", "s_cmov_b32 s4, s9\n" + store));
  CHECK(is_wanted("v_mov_b32 v0, 0", "global_load_short_d16 v0, v1, s[8:9]\n" + store));
}

TEST_CASE("a write under fewer lanes leaves the value of the others wanted") {
  const std::string load = "global_load_dword v1, v0, s[4:5]";
  CHECK_FALSE(is_wanted("v_mov_b32 v0, 1", "v_mov_b32 v0, 2\n" + load));
  CHECK_FALSE(is_wanted("v_mov_b32 v0, 1", "v_mov_b32 v0, 2\ns_and_saveexec_b64 s[8:9], vcc\n" + load));
  CHECK(is_wanted("v_mov_b32 v0, 1", "s_and_saveexec_b64 s[8:9], vcc\nv_mov_b32 v0, 2\ns_mov_b64 exec, s[8:9]\n" + load));
  CHECK(is_wanted("v_mov_b32 v0, 1", "v_mov_b32 v0, 2\nv_mov_b32_dpp v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf\n" + load));
}

TEST_CASE("what goes through LDS is wanted when what comes out of it is") {
  const std::string out = "\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v2, v0\n";
  CHECK_FALSE(is_wanted("v_mov_b32 v1, 1", "ds_write_b32 v0, v1" + out + "global_store_dword v0, v2, s[4:5]"));
  CHECK(is_wanted("v_mov_b32 v1, 1", "ds_write_b32 v0, v1" + out + "global_load_dword v3, v2, s[4:5]"));
  CHECK(is_wanted("v_mov_b32 v0, 1", "ds_write_b32 v0, v1"));
}
