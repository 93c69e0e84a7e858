// Kernel: a compiled kernel as a user holds it. A cheap value; copies share one immutable kernel.
#pragma once
#include "runtime/cache/cache.h"
#include <cstddef>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

namespace kiln {

class Kernel {
public:
  Kernel(CachedKernel kernel, Origin origin) : data_(std::make_shared<const Data>(Data{std::move(kernel), origin})) {}

  const std::string& name() const { return data_->kernel.name; }
  const std::string& arch() const { return data_->kernel.arch; }
  const std::string& key() const { return data_->kernel.key.hex; }
  // An ELF file, for as long as some copy of this kernel lives: what hipModuleLoadData takes.
  std::span<const std::byte> code_object() const { return std::as_bytes(std::span(data_->kernel.object)); }
  // The argument block and the grid, as KernelSource has them.
  std::span<const KernelArgument> arguments() const { return data_->kernel.arguments; }
  const Launch& launch() const { return data_->kernel.launch; }
  std::int64_t workspace_bytes() const { return data_->kernel.workspace_bytes; } // as KernelSource has it
  // meta.json of the cache: schedule, ISA facts, the verdict of the contract, compiler, request.
  const std::string& meta() const { return data_->kernel.meta; }
  std::string spec_text() const { return field_of(data_->kernel.key, "spec"); } // canonical: parse_spec gives the spec
  // "name=value" of the schedule that were asked for, or that a tuning table gave.
  std::vector<std::string> settings() const {
    std::istringstream lines(field_of(data_->kernel.key, "overrides"));
    std::vector<std::string> settings;
    for (std::string line; std::getline(lines, line);) settings.push_back(line);
    return settings;
  }
  Origin origin() const { return data_->origin; } // where it came from when this process first asked
  bool same_as(const Kernel& other) const { return data_ == other.data_; }

private:
  struct Data {
    CachedKernel kernel;
    Origin origin;
  };
  std::shared_ptr<const Data> data_;
};

// What build_kernel gave, with neither cache nor worker: for programs that want its schedule and its bounds too.
Kernel kernel_of(const KernelSpec& spec, const Target& target, const std::vector<std::string>& overrides, const CompileOptions& options,
                 const BuiltKernel& built);

} // namespace kiln
