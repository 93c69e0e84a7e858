// Command: one subcommand of `kiln`. Each lives in a file of its own; main.cpp lists them.
#pragma once
#include <CLI/CLI.hpp>
#include <functional>

namespace kiln::cli {

// Exit codes of `kiln`.
inline constexpr int ok = 0, kernel_failed = 1, bad_usage = 2;

struct Command {
  CLI::App* app;            // owned by the root
  std::function<int()> run; // after parsing; returns an exit code, throws the errors of gen/error.h
};

using MakeCommand = Command(CLI::App& root);
MakeCommand make_list, make_compile, make_eval, make_run, make_demo, make_env, make_cache, make_aot, make_misses, make_bench, make_doctor,
    make_calibrate, make_predict, make_prove, make_tune, make_explain;

} // namespace kiln::cli
