// What every test of an error checks: that it says subject, fact and remedy.
#pragma once
#include "gen/error.h"
#include <doctest/doctest.h>
#include <string>
#include <string_view>

// Runs `provoke` and requires a UserError whose subject is `subject` and whose fact and remedy contain `fact` and `remedy`.
template <typename Provoke>
void expect_user_error(Provoke provoke, std::string_view subject, std::string_view fact, std::string_view remedy) {
  CAPTURE(subject);
  CAPTURE(fact);
  try {
    provoke();
  } catch (const kiln::UserError& error) {
    const std::string what = error.what();
    CAPTURE(what);
    CHECK(error.subject == subject);
    CHECK(error.fact.find(fact) != error.fact.npos);
    CHECK(error.remedy.find(remedy) != error.remedy.npos);
    CHECK(what == error.subject + ": " + error.fact + "; " + error.remedy);
    return;
  }
  FAIL_CHECK("no error");
}
