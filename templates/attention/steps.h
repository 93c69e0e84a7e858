// StepStream: the steps of all sequences of a batch, in order, and where one of them lies.
#pragma once
#include "attention_config.h"
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"

namespace kiln {

// A block of the rows of q that meet a KV head of a sequence: of it the result is finished at once.
struct AttentionItem {
  u32 sequence;
  u32 head;        // config.row_blocks() of them for each KV head
  u32 length;      // keys of the sequence
  u32 first_key;   // of the first step: keys before have no weight
  u32 steps;       // at least one, which has no keys if the sequence is empty
  u32 count;       // what workgroups take in runs: steps, or parts of some steps
  u32 begin;       // the first one's number among all
  KILN_MEMBER u32 first_step_of(u32 part) const { return steps * part / count; } // steps are fewer than 2^27
};

// The first whole number from `bound` on, within a sequence of `length` keys.
KILN_DEVICE u32 first_key_from(f32 bound, u32 length) {
  if (!(bound > 0.0f)) return 0;
  const f32 end = static_cast<f32>(length);
  return bound < end ? static_cast<u32>(bound) : length; // bounds are whole
}
KILN_DEVICE u32 later_key(u32 a, u32 b) { return a > b ? a : b; }

// `Region`: from the length of a sequence to the first key that may have a weight.
template <AttentionConfig config, class Region> class StepStream {
public:
  KILN_MEMBER StepStream(const i32* lengths, u32 sequences, Region region) : lengths_(lengths), sequences_(sequences), region_(region) {
    u32 count = 0;
    for (u32 first = 0; first < sequences; first += wave_size) count += platform::read_lane(platform::sum_up_to_lane(of_lane(first).count), wave_size - 1);
    total_ = count * config.items();
  }
  KILN_MEMBER u32 total() const { return total_; }

  // Says where step, or part, `x` of all lies.
  KILN_MEMBER AttentionItem find(u32 x) const {
    u32 before = 0; // those of all heads of the sequences before
    for (u32 first = 0;; first += wave_size) {
      const Sequence mine = of_lane(first);
      const u32 end = before + platform::sum_up_to_lane(mine.count) * config.items();
      const u32 last = platform::read_lane(end, wave_size - 1);
      if (x >= last) {
        before = last;
        continue;
      }
      const u32 lane = static_cast<u32>(platform::first_lane(x < end));
      const u32 count = platform::read_lane(mine.count, lane), begin = platform::read_lane(end, lane) - count * config.items();
      const u32 head = (x - begin) / count, steps = config.parts ? platform::read_lane(mine.steps, lane) : count;
      return {first + lane, head, platform::read_lane(mine.length, lane), platform::read_lane(mine.first_key, lane), steps, count, begin + head * count};
    }
  }
  KILN_MEMBER AttentionItem next(AttentionItem item) const {
    item.begin += item.count;
    if (++item.head < config.items()) return item;
    const Sequence s = of_length(platform::load_uniform(lengths_ + item.sequence + 1));
    return {item.sequence + 1, 0, s.length, s.first_key, s.steps, s.count, item.begin};
  }

private:
  struct Sequence {
    u32 length, first_key, steps, count;
  };
  KILN_MEMBER Sequence of_length(i32 given) const {
    const u32 length = given > 0 ? static_cast<u32>(given) : 0;
    const u32 first_key = region_(length) / config.step_keys() * config.step_keys();
    const u32 some = (length - first_key + config.step_keys() - 1) / config.step_keys(), steps = some ? some : 1;
    return {length, first_key, steps, config.parts ? config.parts_of(steps) : steps};
  }
  // For sequence `first` + this lane; none beyond the last.
  KILN_MEMBER Sequence of_lane(u32 first) const {
    const u32 at = first + platform::lane_id();
    Sequence s = of_length(lengths_[at < sequences_ ? at : sequences_ - 1]);
    if (at >= sequences_) s.count = 0;
    return s;
  }

  const i32* lengths_;
  u32 sequences_;
  Region region_;
  u32 total_;
};

} // namespace kiln
