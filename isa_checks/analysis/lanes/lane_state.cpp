// The numbered values, and the state of a wave's registers.
#include "isa_checks/analysis/lanes/lane_step.h"
#include <algorithm>

namespace kiln::isa {

LaneValues::LaneValues() {
  values_.push_back({}); // unknown_value, which is never looked at
  number(uniform_value());
  number(constant_value(~std::uint32_t{0}));
}

std::uint32_t LaneValues::constant(std::uint32_t bits) {
  const auto [at, fresh] = constants_.try_emplace(bits, 0);
  if (fresh) at->second = number(constant_value(bits));
  return at->second;
}

std::uint32_t LaneValues::number(const LaneValue& value) {
  std::uint64_t hash = value.mask;
  for (std::size_t i = 0; i < value.lane.size(); i += 2) { // two lanes per step: each step waits for the multiplication before it
    const std::uint64_t both = value.lane[i] | std::uint64_t{value.lane[i + 1]} << 32;
    hash = (hash ^ both) * 0x9e3779b97f4a7c15ULL + (hash >> 29);
  }
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (values_[it->second] == value) return it->second;
  const auto fresh = static_cast<std::uint32_t>(values_.size());
  values_.push_back(value);
  by_hash_.emplace(hash, fresh);
  return fresh;
}

LaneState::LaneState() {
  std::fill_n(numbers_.begin(), vectors, unknown_value);
  std::fill(numbers_.begin() + vectors, numbers_.end(), unknown_uniform);
}

std::size_t LaneState::slot(std::uint16_t reg) {
  if (reg < vectors) return reg;
  if (reg < reg::sgpr || reg >= reg::count) return vectors + scalars;
  return vectors + (reg - reg::sgpr);
}

std::uint32_t LaneState::get(std::uint16_t reg) const {
  const std::size_t at = slot(reg);
  return at < numbers_.size() ? numbers_[at] : unknown_value;
}

void LaneState::set(std::uint16_t reg, std::uint32_t number) {
  const std::size_t at = slot(reg);
  if (at >= numbers_.size()) return;
  numbers_[at] = at >= vectors && number == unknown_value ? unknown_uniform : number;
  if (at < vectors) partly_.reset(at);
}

void LaneState::set_partly(std::uint16_t reg, std::uint32_t number) {
  set(reg, number);
  if (slot(reg) < vectors) partly_.set(slot(reg));
}

void LaneState::lanes_come_on() {
  if (partly_.none()) return;
  for (std::size_t i = 0; i < vectors; ++i)
    if (partly_.test(i)) numbers_[i] = unknown_value;
  partly_.reset();
}

bool LaneState::join(const LaneState& other, LaneValues& values) {
  bool changed = false;
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    if (numbers_[i] == other.numbers_[i] || numbers_[i] == unknown_value) continue;
    std::uint32_t met = values.join(numbers_[i], other.numbers_[i]);
    if (i >= vectors && met == unknown_value) met = unknown_uniform;
    changed = changed || met != numbers_[i];
    numbers_[i] = met;
  }
  const auto partly = partly_ | other.partly_;
  changed = changed || partly != partly_;
  partly_ = partly;
  return changed;
}

std::optional<std::uint64_t> LaneState::active(const LaneValues& values) const {
  const Maybe low = values.value(get(reg::exec)), high = values.value(get(reg::exec + 1));
  const auto a = low ? low->constant() : std::nullopt, b = high ? high->constant() : std::nullopt;
  if (!a || !b) return std::nullopt;
  return std::uint64_t{*b} << 32 | *a;
}

} // namespace kiln::isa
