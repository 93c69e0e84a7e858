// Handover: a launch of two phases, the second of which reads what the first has left in the workspace. Its workgroups go on with the second
// once all of the first is done.
//
// Work of a phase comes in parts, each of a workgroup. Who has done parts counts them, behind a release; the last ones to count, as many as
// the second phase has parts, keep a place and wait for the rest. So nobody takes a number first, and where a place is all there is (one
// row), nobody waits. Nothing is assumed about how many workgroups the device holds at once: the wait is bounded. Who has lost patience
// gives its places up, by the same counter, and leaves; the one that counts last, which never waits, finds there how many places were
// given up before, and takes them. So one number decides who has a place, and a launch ends whatever becomes of others.
#pragma once
#include "common/memory_instructions.h"
#include "handover_config.h"

namespace kiln {

class Handover {
  using Space = HandoverSpace;
  static constexpr u32 patience = 1024; // polls of 0.2 us and more: as rows that share workgroups have, rowwise/cluster.h

public:
  // `words`: HandoverSpace::bytes(parts of the second phase) in the workspace, zero before the first launch.
  KILN_MEMBER Handover(void* words, u32 parts_before, u32 parts) : words_(static_cast<u32*>(words)), before_(parts_before), parts_(parts) {}

  // Counts `done` parts of the first phase, which all waves of the workgroup have done. True: it goes on, and can read what others left.
  KILN_MEMBER bool arrive(u32 done) {
    places_ = before_ < parts_ ? before_ : parts_;
    launches_ = platform::load_for_device(words_); // under way beside the release
    platform::release_to_device();
    platform::barrier();
    if (platform::thread_id() == 0) shared().found = platform::count_up(count(), done);
    platform::barrier();
    const u32 found = platform::uniform(shared().found), first = found & Space::most, end = first + done, nobody = before_ - places_;
    if (end <= nobody) return false;
    place_ = first > nobody ? first - nobody : 0;
    end_ = end - nobody;
    if (end == before_) {
      given_up_ = found >> 16;
      if (platform::thread_id() == 0) {
        *words_ = launches_ + 1;
        *other_count() = 0;
      }
    } else if (!wait()) {
      return false;
    }
    platform::acquire_from_device();
    return true;
  }

  // Calls f(part) for every part of the second phase that this workgroup does, and returns how many.
  template <class F> KILN_MEMBER u32 each(F f) {
    u32 done = 0;
#pragma nounroll
    while (true) {
#pragma nounroll
      for (u32 part = place_; part < parts_; part += places_) {
        if (done > 0) platform::barrier(); // LDS is read no more
        f(part);
        ++done;
      }
      if (++place_ < end_) continue;
      if (given_up_ == 0) return done;
      take_given_up();
    }
  }

private:
  // What thread 0 has for all waves: one is read while it writes another.
  struct Shared {
    u32 found, complete, place;
  };
  static KILN_MEMBER Shared& shared() {
    static __shared__ Shared memory;
    return memory;
  }
  KILN_MEMBER u32* count() const { return words_ + (1 + (launches_ & 1)) * Space::line_words; }
  KILN_MEMBER u32* other_count() const { return words_ + (2 - (launches_ & 1)) * Space::line_words; }
  KILN_MEMBER u32* flag(u32 place) const { return words_ + Space::first_flag + place; }

  KILN_MEMBER bool wait() const {
    if (platform::thread_id() == 0) {
      u32 left = patience, found;
#pragma nounroll
      do {
        found = platform::load_for_device(count());
      } while ((found & Space::most) != before_ && --left != 0);
      const u32 own = end_ - place_;
      if (left == 0) found = platform::count_up(count(), own << 16);
      const bool complete = (found & Space::most) == before_;
      if (!complete)
#pragma nounroll
        for (u32 place = place_; place < end_; ++place) platform::count_up(flag(place));
      shared().complete = complete ? 1 : 0;
    }
    platform::barrier();
    return platform::uniform(shared().complete) != 0;
  }

  // Takes a place that was given up: who did raises its flag, if it has not yet, without waiting for anybody.
  KILN_MEMBER void take_given_up() {
    platform::barrier(); // LDS of the part before is read no more
    if (platform::thread_id() == 0) {
      u32 place = 0;
#pragma nounroll
      while (platform::load_for_device(flag(place)) == 0) place = place + 1 < places_ ? place + 1 : 0;
      platform::count_up(flag(place), ~0u);
      shared().place = place;
    }
    platform::barrier();
    place_ = platform::uniform(shared().place);
    end_ = place_ + 1;
    --given_up_;
  }

  u32* words_;
  u32 before_, parts_, places_ = 0; // the last is how many go on, at most
  u32 launches_ = 0, place_ = 0, end_ = 0, given_up_ = 0;
};

} // namespace kiln
