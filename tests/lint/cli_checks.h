// What tests of the command line share: texts with and without a finding, and how bad input is refused.
#pragma once
#include "tests/lint/files.h"
#include <algorithm>
#include <doctest/doctest.h>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa::testing {

// A kernel that uses scratch memory: SPL001, an error, and nothing else that is one.
inline std::string scratch_text(const std::string& name = "k", const std::string& comment = {}) {
  std::string text = plain_text(
      "gfx942", name, "again:\n  scratch_store_dword off, v0, off " + comment + "\n  s_waitcnt vmcnt(0)\n  s_cbranch_scc1 again\n");
  const std::string none = ".amdhsa_private_segment_fixed_size 0", some = ".amdhsa_private_segment_fixed_size 16";
  text.replace(text.find(none), none.size(), some);
  const std::string key = ".private_segment_fixed_size: 0", value = ".private_segment_fixed_size: 16"; // the metadata
  text.replace(text.find(key), key.size(), value);
  const std::string off = ".amdhsa_enable_private_segment 0", on = ".amdhsa_enable_private_segment 1";
  text.replace(text.find(off), off.size(), on);
  return text;
}

inline std::string clean_text() { return plain_text("gfx942", "k", "  v_add_f32_e32 v0, v0, v0\n"); }

inline bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// Exit code 2, and one line with subject, fact and remedy.
inline void check_refused(const std::vector<std::string>& arguments, std::string_view says) {
  const Result r = isa_lint(arguments);
  CAPTURE(r.err);
  CHECK(r.exit_code == 2);
  CHECK(r.err.starts_with("error: "));
  CHECK(has(r.err, says));
  CHECK(std::ranges::count(r.err, '\n') == 1);
  CHECK(has(r.err, "; ")); // a remedy
}

} // namespace kiln::isa::testing
