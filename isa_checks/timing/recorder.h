// Recorder: the observer that turns an execution into a record.
#pragma once
#include "isa_checks/exec/machine/observer.h"
#include "isa_checks/timing/record.h"
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace kiln::timing {

struct StoresDecide {};

class Recorder : public exec::Observer {
public:
  // `unwanted` as in exec::ExecOptions. If stores do not decide, a load whose results are wanted throws StoresDecide when it reads
  // memory that the launch may write.
  Recorder(std::string_view kernel, int waves, const exec::Grid& grid, std::uint64_t max_steps, std::span<const std::uint8_t> unwanted,
           bool stores_decide)
      : kernel_(kernel), waves_(waves), grid_(grid), max_steps_(max_steps), unwanted_(unwanted), stores_decide_(stores_decide) {}
  void execute(const exec::Wave& wave, const exec::Inst& inst) override;
  void access(const exec::Wave& wave, const exec::Inst& inst, const exec::LaneAccess& op, const exec::WaveAddresses& at) override;
  void access_lds(const exec::Wave& wave, const exec::Inst& inst, const exec::LaneAccess& op, const exec::WaveAddresses& at,
                  const isa::BankPasses& passes) override;
  void access_scalar(const exec::Wave& wave, const exec::Inst& inst, std::uint64_t address, std::uint32_t bytes) override;

  std::vector<Workgroup> take();                                       // by number
  const std::vector<std::uint32_t>& polled() const { return polled_; } // instructions that were seen to wait

private:
  struct Write {
    std::uint32_t wave = none, step = none;
  };
  struct LatestRead {
    std::uint64_t place = ~0ULL;
    std::uint32_t step = none; // of the wave
    std::uint64_t effects = 0; // of the wave until then
  };
  struct WaveState {
    const exec::Inst* last = nullptr;                    // that it executed
    std::uint64_t effects = 0;                           // stores, atomics and LDS writes that others may see
    std::unordered_map<std::uint32_t, LatestRead> reads; // of one place, by instruction
  };
  struct GroupState {
    Workgroup group;
    std::vector<WaveState> waves;
    std::unordered_map<std::uint64_t, Write> writes; // by place
  };
  bool depends_on_previous(const exec::Wave& wave);
  void check_decides(const exec::Wave& wave, std::uint64_t address) const;
  GroupState& state_of(const exec::Wave& wave);
  Access& access_of(GroupState& g, const exec::Wave& wave);
  void follow_place(GroupState& g, const exec::Wave& wave, std::uint64_t place, bool reads, bool writes);
  void follow_device(GroupState& g, const exec::Wave& wave, const exec::LaneAccess& op, const exec::WaveAddresses& at);

  std::string_view kernel_;
  int waves_;
  std::uint64_t recorded_ = 0; // steps
  const exec::Grid& grid_;
  std::uint64_t max_steps_;
  std::span<const std::uint8_t> unwanted_;
  bool stores_decide_;
  std::unordered_map<std::uint32_t, std::size_t> index_; // by number of the workgroup
  std::vector<GroupState> groups_;
  std::vector<bool> depends_; // by instruction: on the one before it
  std::uint32_t latest_number_ = none;
  std::size_t latest_ = 0;
  std::vector<std::uint32_t> polled_;
  std::unordered_map<std::uint64_t, Awaited> told_; // latest writes for the device, by address
};

} // namespace kiln::timing
