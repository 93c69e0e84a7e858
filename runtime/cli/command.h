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

Command make_list(CLI::App& root);
Command make_compile(CLI::App& root);
Command make_eval(CLI::App& root);
Command make_run(CLI::App& root);
Command make_demo(CLI::App& root);
Command make_env(CLI::App& root);
Command make_cache(CLI::App& root);
Command make_aot(CLI::App& root);
Command make_misses(CLI::App& root);
Command make_bench(CLI::App& root);
Command make_doctor(CLI::App& root);
Command make_calibrate(CLI::App& root);
Command make_predict(CLI::App& root);
Command make_prove(CLI::App& root);
Command make_tune(CLI::App& root);
Command make_explain(CLI::App& root);

} // namespace kiln::cli
