// RunObject: executes a kernel of any code object on the CPU, with arguments from the command line.
#include "runtime/cli/run_object.h"
#include "gen/error.h"
#include "isa_checks/object/code_object.h"
#include "runtime/cli/output.h"
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <fmt/format.h>
#include <span>

namespace kiln::cli {
namespace {

constexpr std::uint64_t largest_buffer = 1ULL << 34; // of out:, so that a slip of the finger does not take all memory

// One explicit argument: its value, and the file that its buffer goes to at the end (empty: none).
struct Argument {
  std::uint64_t bits = 0;
  std::uint32_t size = 8;
  std::string file;
};

template <typename Number> Number parse(const std::string& argument, std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    throw UserError("--arg " + argument, fmt::format("\"{}\" is not a number that fits", text),
                    "write i32:5, i64:5, f32:1.5 or out:BYTES:FILE");
  return number;
}

Argument buffer(exec::Memory& memory, const std::string& name, std::string_view contents, std::uint64_t bytes, std::string file) {
  Argument a{.file = std::move(file)};
  a.bits = memory.allocate(name, bytes);
  std::ranges::copy(std::as_bytes(std::span(contents)), memory.bytes(a.bits).begin());
  return a;
}

Argument parse_argument(const std::string& text, exec::Memory& memory) {
  const auto value = [&](std::string_view prefix) { return std::string_view(text).substr(prefix.size()); };
  if (text.starts_with("i32:")) return {static_cast<std::uint32_t>(parse<std::int32_t>(text, value("i32:"))), 4, {}};
  if (text.starts_with("i64:")) return {static_cast<std::uint64_t>(parse<std::int64_t>(text, value("i64:"))), 8, {}};
  if (text.starts_with("f32:")) return {std::bit_cast<std::uint32_t>(parse<float>(text, value("f32:"))), 4, {}};
  if (text.starts_with("out:")) {
    const std::size_t colon = text.find(':', 4);
    if (colon == std::string::npos || colon + 1 == text.size())
      throw UserError("--arg " + text, "it names no file", "write out:BYTES:FILE");
    const auto bytes = parse<std::uint64_t>(text, std::string_view(text).substr(4, colon - 4));
    if (bytes > largest_buffer)
      throw UserError("--arg " + text, fmt::format("{} bytes are more than {}", bytes, largest_buffer), "give a smaller buffer");
    std::string file = text.substr(colon + 1);
    return buffer(memory, file, {}, bytes, file);
  }
  if (text.starts_with("zeros:")) {
    const auto bytes = parse<std::uint64_t>(text, value("zeros:"));
    if (bytes > largest_buffer)
      throw UserError("--arg " + text, fmt::format("{} bytes are more than {}", bytes, largest_buffer), "give a smaller buffer");
    return buffer(memory, text, {}, bytes, {});
  }
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw UserError("--arg " + text, "it is none of the kinds of arguments",
                    "write NAME=FILE, zeros:BYTES, i32:5, i64:5, f32:1.5 or out:BYTES:FILE");
  const std::string file = text.substr(equals + 1), contents = read_file(file);
  return buffer(memory, text.substr(0, equals), contents, contents.size(), file);
}

// Says where each explicit argument lies: as the metadata says, or each at the next multiple of its size.
std::vector<std::byte> argument_block(const isa::Kernel& kernel, const std::vector<Argument>& arguments) {
  std::vector<std::byte> block;
  const auto place = [&](const Argument& a, std::size_t offset) {
    block.resize(std::max(block.size(), offset + a.size));
    std::memcpy(&block[offset], &a.bits, a.size);
  };
  if (!kernel.metadata) {
    for (const Argument& a : arguments) place(a, (block.size() + a.size - 1) / a.size * a.size);
    return block;
  }
  std::vector<isa::KernelArgument> wanted = kernel.metadata->arguments;
  std::erase_if(wanted, [](const isa::KernelArgument& a) { return a.hidden(); });
  if (wanted.size() != arguments.size())
    throw UserError("kernel " + kernel.name, fmt::format("it takes {} arguments, {} were given", wanted.size(), arguments.size()),
                    "give one --arg for each, in order");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].size != arguments[i].size)
      throw UserError(fmt::format("argument {} of kernel {}", i, kernel.name),
                      fmt::format("it has {} bytes, {} were given", wanted[i].size, arguments[i].size),
                      "buffers and i64 have 8 bytes, i32 and f32 have 4");
    place(arguments[i], wanted[i].offset);
  }
  return block;
}

exec::Grid grid_of(const ObjectRun& request) {
  if (request.grid.empty() || request.grid.size() > 3 || std::ranges::find(request.grid, 0U) != request.grid.end())
    throw UserError("--grid", fmt::format("{} numbers were given, or one of them is 0", request.grid.size()),
                    "give workgroups as X, X,Y or X,Y,Z");
  if (request.block == 0) throw UserError("--block", "a workgroup of 0 work items", "give the work items of a workgroup");
  exec::Grid grid;
  std::ranges::copy(request.grid, grid.workgroups.begin());
  grid.workgroup_size = {request.block, 1, 1};
  grid.dynamic_lds = request.dynamic_lds;
  return grid;
}

} // namespace

ObjectLaunch prepare_object(const ObjectRun& request) {
  ObjectLaunch launch;
  launch.grid = grid_of(request);
  launch.object = isa::load_code_object_file(request.object);
  launch.kernel = request.kernel;
  const isa::Kernel& kernel = launch.object.kernel(request.kernel);
  std::vector<Argument> arguments;
  for (const std::string& text : request.arguments) arguments.push_back(parse_argument(text, launch.memory));
  launch.arguments = argument_block(kernel, arguments);
  for (const Argument& a : arguments)
    if (!a.file.empty()) launch.files.emplace_back(a.bits, a.file);
  return launch;
}

exec::ExecResult run_object(const ObjectRun& request, const exec::ExecOptions& options) {
  ObjectLaunch launch = prepare_object(request);
  exec::ExecResult result = exec::execute(launch.object, launch.kernel, launch.grid, launch.arguments, launch.memory, options);
  if (!result.completed) return result;
  for (const auto& [address, file] : launch.files) {
    const std::span<const std::byte> bytes = launch.memory.bytes(address);
    write_file(file, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return result;
}

} // namespace kiln::cli
