// StreamK: workgroups share a stream of steps in equal runs, and the parts that they have of one item become one. An item is what is finished
// at once: a tile of a product, a block of an expert's, a head of attention.
//
// Each number of a part is published beside the generation of the launch in 8 bytes, which are written and read as one, past the caches that
// other workgroups do not see. So nothing else needs an order: no fence, no acknowledgement, and no place that has to be zero again. The
// workgroup that counted last for an item collects the parts, several at a time, and adds them in the order of the steps, so that the result
// has the same bits in every launch. It waits for parts only that are certain to come: whoever counted publishes without waiting for others.
//
// The place of the count decides who collects. If runs cross items, a workgroup counts when its last loads are under way, so that nobody
// waits for the rest of another's run. If every workgroup has one part, it counts behind its first loads, and waits for neither.
//
// Clusters of rows (rowwise/cluster.h) publish in the same way, with all workgroups collecting. To share this they would need what is
// missing here: a collector a workgroup (no counter), a generation that rows and not workgroups have, and a lane a part instead of all lanes.
#pragma once
#include "common/instructions.h"
#include "common/lane_instructions.h"
#include "common/memory_instructions.h"
#include "stream_k_config.h"

namespace kiln {

struct TaggedPartial {
  f32 value;
  u32 generation;
};

// One workgroup's view. A part is a struct of what a lane has of an item:
//   numbers            how many numbers it has at most
//   each_number(f)     f(i) for each that this lane has, with constant i
//   is_own(i)          false if another lane publishes the same number
//   word(i)            its place among those of all lanes
//   number(i)
//   clear(), add(f)    add: the part whose numbers are f(i), behind those before
// `known_steps`: at compile time.
template <StreamKSpace space, class Runs, bool known_steps> class StreamK {
public:
  // `workspace` has space.bytes(), zero before the first launch. The launch's generation is on its way from load_generation on.
  KILN_MEMBER StreamK(void* workspace, u32 group, Runs runs) : runs_(runs), group_(group), words_(static_cast<u32*>(workspace)) {}
  KILN_MEMBER void load_generation() { generation_ = *generation_of_group() + 1; }

  KILN_MEMBER u32 first_step() const { return runs_.first_step(group_); }
  KILN_MEMBER u32 end_step() const { return runs_.first_step(group_ + 1); }

  // A workgroup without steps takes part in the count of launches, and in nothing else.
  KILN_MEMBER void skip() const {
    if (platform::thread_id() == 0) ++*generation_of_group();
  }
  // Counts this workgroup for an item that begins with step `begin`. The result, of thread 0, is under way while the workgroup goes on.
  KILN_MEMBER u32 register_arrival(u32 begin) const {
    u32 before = 0;
    if (platform::thread_id() == 0) before = platform::count_up_ahead(counter(group_of(begin)));
    return before;
  }
  // Stands in front of a barrier behind which store_generation may follow: all waves know it then.
  KILN_MEMBER void pin_generation() { generation_ = platform::pin_sgpr(platform::uniform(generation_)); }
  KILN_MEMBER void store_generation() const {
    if (platform::thread_id() == 0) *generation_of_group() = generation_;
  }

  // Behind a barrier: `arrived` workgroups were counted for the item of steps `begin` to `last` before this one. Publishes the part (a
  // workgroup's first part has its first place, one of the item that it ends in, when that is another, its second), or, if
  // that was all others, becomes the sum of all and returns true.
  template <int parts_at_a_time, class Part> KILN_MEMBER bool combine(Part& part, u32 begin, u32 last, u32 arrived) const {
    const u32 first_group = group_of(begin), last_group = group_of(last);
    if (platform::uniform(arrived) != last_group - first_group) return publish(part, place(group_, runs_.first_step(group_) < begin)), false;
    if (platform::thread_id() == 0) *counter(first_group) = 0;
    collect<parts_at_a_time>(part, first_group, last_group, runs_.first_step(first_group) < begin);
    return true;
  }

  // With more places: `part` to one of this workgroup's, and whether all others of the item were counted before. All of `count` parts that
  // lie where place_of(i) says, the first as it is and the others added in their order.
  template <class Part> KILN_MEMBER void publish_at(const Part& part, u32 place_of_group) const { publish(part, place(group_, place_of_group)); }
  KILN_MEMBER bool is_last(u32 begin, u32 last, u32 arrived) const {
    const u32 first_group = group_of(begin);
    if (platform::uniform(arrived) != group_of(last) - first_group) return false;
    if (platform::thread_id() == 0) *counter(first_group) = 0;
    return true;
  }
  template <int parts_at_a_time, class Part, class PlaceOf> KILN_MEMBER void collect_from(Part& part, u32 count, PlaceOf place_of) const {
#pragma nounroll
    for (u32 first = 0; first < count; first += parts_at_a_time) {
      TaggedPartial found[Part::numbers][parts_at_a_time];
      await_parts(part, found, [&](int g) KILN_LAMBDA { return place_of(first + g < count ? first + g : count - 1); });
#pragma unroll
      for (int g = 0; g < parts_at_a_time; ++g) {
        const auto number = [&](int i) KILN_LAMBDA { return found[i][g].value; };
        if (first + g == 0) part.take(number);
        else if (first + g < count) part.add(number);
      }
    }
  }
  KILN_MEMBER u64* place(u32 group, u32 nth) const { return reinterpret_cast<u64*>(places()) + static_cast<u64>(space.places * group + nth) * space.numbers; }
  KILN_MEMBER u32 group_of(u32 step) const {
    if constexpr (known_steps) return platform::uniform(runs_.group_of(step));
    // A division of 64 bits takes a hundred instructions.
    const f32 near = static_cast<f32>(step) * (static_cast<f32>(runs_.groups()) * platform::rcp(static_cast<f32>(runs_.steps)));
    return platform::uniform(runs_.group_of(step, static_cast<u32>(near)));
  }
  KILN_MEMBER u32 first_step_of(u32 group) const { return runs_.first_step(group); }

  // The counter of an item that `group` begins and others go on with: only one does.
  KILN_MEMBER u32* counter(u32 group) const { return words_ + group; }
  // Those of the caller's own; the parts; and what lies behind all.
  KILN_MEMBER u32* own_counters() const { return words_ + space.workgroups; }
  KILN_MEMBER char* places() const { return reinterpret_cast<char*>(words_) + space.counter_bytes(); }
  KILN_MEMBER char* behind() const { return reinterpret_cast<char*>(words_) + space.bytes(); }

private:
  KILN_MEMBER u32* generation_of_group() const { return words_ + space.first_generation() + group_; }
  // Reads a number of parts from where they are published, until all have this launch's generation.
  template <int count, class Part, class PlaceOf> KILN_MEMBER void await_parts(const Part& part, TaggedPartial (&found)[Part::numbers][count], PlaceOf place_of) const {
    const u64* from[count];
#pragma unroll
    for (int g = 0; g < count; ++g) from[g] = place_of(g);
    bool late;
    do {
      late = false;
      part.each_number([&](int i) KILN_LAMBDA {
#pragma unroll
        for (int g = 0; g < count; ++g) found[i][g] = KILN_BIT_CAST(TaggedPartial, platform::load_for_device(from[g] + part.word(i)));
      });
      part.each_number([&](int i) KILN_LAMBDA {
#pragma unroll
        for (int g = 0; g < count; ++g) late |= found[i][g].generation != generation_;
      });
    } while (platform::any_lane(late));
  }

  template <class Part> KILN_MEMBER void publish(const Part& part, u64* to) const {
    part.each_number([&](int i) KILN_LAMBDA {
      if (part.is_own(i)) platform::store_for_device(to + part.word(i), KILN_BIT_CAST(u64, (TaggedPartial{part.number(i), generation_})));
    });
  }

  // Waits for what is on its way: the parts of others, in their order, and this workgroup's own where it belongs.
  // Only the item's first workgroup may have begun with another item: `second` says whether.
  template <int parts_at_a_time, class Part> KILN_MEMBER void collect(Part& part, u32 first, u32 last, bool second) const {
    const Part own = part;
    const auto add_own = [&]() KILN_LAMBDA { part.add([&](int i) KILN_LAMBDA { return own.number(i); }); };
    const u32 others = last - first, before = group_ - first; // of the others, those in front of this workgroup
    part.clear();
#pragma nounroll
    for (u32 begin = 0; begin < others; begin += parts_at_a_time) {
      TaggedPartial found[Part::numbers][parts_at_a_time];
      await_parts(part, found, [&](int g) KILN_LAMBDA {
        const u32 other = begin + g < others ? begin + g : others - 1, from = first + other + (other >= before ? 1 : 0);
        return place(from, from == first && second);
      });
#pragma unroll
      for (int g = 0; g < parts_at_a_time; ++g) {
        if (begin + g >= others) break;
        if (begin + g == before) [[unlikely]] add_own();
        part.add([&](int i) KILN_LAMBDA { return found[i][g].value; });
      }
    }
    if (before == others) add_own();
  }

  [[no_unique_address]] Runs runs_;
  u32 group_, generation_ = 0; // of this launch
  u32* words_;
};

} // namespace kiln
