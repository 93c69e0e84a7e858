// RunObject: executes a kernel of any code object on the CPU, with arguments from the command line.
#include "runtime/cli/run_object.h"
#include "gen/error.h"
#include "gen/spec/characters.h"
#include "isa_checks/object/code_object.h"
#include "runtime/cli/output.h"
#include <algorithm>
#include <fmt/format.h>
#include <ranges>
#include <span>

namespace kiln::cli {
namespace {

constexpr std::uint64_t largest_buffer = 1ULL << 34; // of out:, so that a slip of the finger does not take all memory

constexpr const char* kinds = "write NAME=FILE, zeros:BYTES, i32:5, i64:5, f32:1.5, words:1,0,5 or out:BYTES:FILE";

// One explicit argument: its value, and the file that its buffer at `address` goes to at the end (empty: none).
struct Argument {
  std::vector<std::byte> value;
  std::uint64_t address = 0;
  std::string file = {};
};

template <typename Number> Argument argument_of(Number number) {
  const auto bytes = std::as_bytes(std::span(&number, 1));
  return {.value = {bytes.begin(), bytes.end()}};
}

template <typename Number> Number parse(const std::string& argument, std::string_view text) {
  Number number{};
  if (!read_whole(text, number)) throw UserError("--arg " + argument, fmt::format("\"{}\" is not a number that fits", text), kinds);
  return number;
}

std::uint64_t parse_size(const std::string& argument, std::string_view text) {
  const auto bytes = parse<std::uint64_t>(argument, text);
  if (bytes <= largest_buffer) return bytes;
  throw UserError("--arg " + argument, fmt::format("{} bytes are more than {}", bytes, largest_buffer), "give a smaller buffer");
}

Argument buffer(exec::Memory& memory, const std::string& name, std::string_view contents, std::uint64_t bytes, std::string file) {
  const std::uint64_t address = memory.allocate(name, bytes);
  std::ranges::copy(std::as_bytes(std::span(contents)), memory.bytes(address).begin());
  Argument a = argument_of(address);
  a.address = address;
  a.file = std::move(file);
  return a;
}

// A struct passed by value.
Argument struct_of_words(const std::string& text, std::string_view list) {
  Argument a;
  for (const auto part : std::views::split(list, ',')) {
    const Argument word = argument_of(parse<std::uint32_t>(text, std::string_view(part.begin(), part.end())));
    a.value.insert(a.value.end(), word.value.begin(), word.value.end());
  }
  return a;
}

Argument parse_argument(const std::string& text, exec::Memory& memory) {
  const auto value = [&](std::string_view prefix) { return std::string_view(text).substr(prefix.size()); };
  if (text.starts_with("i32:")) return argument_of(parse<std::int32_t>(text, value("i32:")));
  if (text.starts_with("i64:")) return argument_of(parse<std::int64_t>(text, value("i64:")));
  if (text.starts_with("f32:")) return argument_of(parse<float>(text, value("f32:")));
  if (text.starts_with("words:")) return struct_of_words(text, value("words:"));
  if (text.starts_with("out:")) {
    const std::size_t colon = text.find(':', 4);
    if (colon == std::string::npos || colon + 1 == text.size())
      throw UserError("--arg " + text, "it names no file", "write out:BYTES:FILE");
    const std::uint64_t bytes = parse_size(text, std::string_view(text).substr(4, colon - 4));
    std::string file = text.substr(colon + 1);
    return buffer(memory, file, {}, bytes, file);
  }
  if (text.starts_with("zeros:")) {
    return buffer(memory, text, {}, parse_size(text, value("zeros:")), {});
  }
  const std::size_t equals = text.find('=');
  if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
    throw UserError("--arg " + text, "it is none of the kinds of arguments", kinds);
  const std::string file = text.substr(equals + 1), contents = read_file(file);
  return buffer(memory, text.substr(0, equals), contents, contents.size(), file);
}

// Says where each explicit argument lies: as the metadata says, or each at the next multiple of its size, a struct's of 4.
std::vector<std::byte> argument_block(const isa::Kernel& kernel, const std::vector<Argument>& arguments) {
  std::vector<std::byte> block;
  const auto place = [&](const Argument& a, std::size_t offset) {
    block.resize(std::max(block.size(), offset + a.value.size()));
    std::ranges::copy(a.value, block.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  if (!kernel.metadata) {
    for (const Argument& a : arguments) {
      const std::size_t alignment = a.value.size() == 8 ? 8 : 4;
      place(a, (block.size() + alignment - 1) / alignment * alignment);
    }
    return block;
  }
  std::vector<isa::KernelArgument> wanted = kernel.metadata->arguments;
  std::erase_if(wanted, [](const isa::KernelArgument& a) { return a.hidden(); });
  if (wanted.size() != arguments.size())
    throw UserError("kernel " + kernel.name, fmt::format("it takes {} arguments, {} were given", wanted.size(), arguments.size()),
                    "give one --arg for each, in order");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].size != arguments[i].value.size())
      throw UserError(fmt::format("argument {} of kernel {}", i, kernel.name),
                      fmt::format("it has {} bytes, {} were given", wanted[i].size, arguments[i].value.size()),
                      "buffers and i64 have 8 bytes, i32 and f32 have 4, and a struct 4 for each of words:N,N,...");
    place(arguments[i], wanted[i].offset);
  }
  return block;
}

void check_sizes(const char* option, const std::vector<std::uint32_t>& sizes, const char* what) {
  if (sizes.empty() || sizes.size() > 3 || std::ranges::find(sizes, 0U) != sizes.end())
    throw UserError(option, fmt::format("{} numbers were given, or one of them is 0", sizes.size()),
                    fmt::format("give {} as X, X,Y or X,Y,Z", what));
}

exec::Grid grid_of(const ObjectRun& request) {
  check_sizes("--grid", request.grid, "workgroups");
  check_sizes("--block", request.block, "work items of a workgroup");
  exec::Grid grid;
  std::ranges::copy(request.grid, grid.workgroups.begin());
  std::ranges::copy(request.block, grid.workgroup_size.begin());
  grid.dynamic_lds = request.dynamic_lds;
  return grid;
}

} // namespace

void add_launched_options(CLI::App& app, KernelChoice& choice, ObjectRun& object) {
  add_kernel_options(app, choice);
  app.remove_option(app.get_option("kernel")); // --object does without it, and has a --kernel of its own
  app.add_option("spec", choice.kernel, "A name of the catalogue (kiln list), or a file with the text of a spec");
  app.add_option("--object", object.object, "A kernel of this code object in place of a spec");
  app.add_option("--kernel", object.kernel, "With --object: the kernel");
  app.add_option("--grid", object.grid, "With --object: workgroups, X[,Y,Z]")->delimiter(',');
  app.add_option("--block", object.block, "With --object: work items of a workgroup, X[,Y,Z]")->delimiter(',');
  app.add_option("--lds", object.dynamic_lds, "With --object: bytes of LDS beyond the static ones");
  app.add_option("--arg", object.arguments,
                 "With --object, in order: NAME=FILE and out:BYTES:FILE (kiln run writes them back), zeros:BYTES, i32:N, i64:N, f32:X, "
                 "words:N,N,...");
}

bool is_object(const std::string& command, const KernelChoice& choice, const ObjectRun& object) {
  if (object.object.empty()) {
    if (choice.kernel.empty())
      throw UserError(command, "neither a kernel nor --object was given", "name a kernel of the catalogue (kiln list), or --object FILE");
    if (!object.kernel.empty() || !object.grid.empty() || !object.block.empty() || !object.arguments.empty())
      throw UserError(command, "--kernel, --grid, --block and --arg belong to --object", "add --object FILE, or leave them out");
    return false;
  }
  if (!choice.kernel.empty()) throw UserError(command, fmt::format("both '{}' and --object were given", choice.kernel), "give one of them");
  if (object.kernel.empty()) throw UserError("--object", "no kernel of it was named", "add --kernel NAME");
  return true;
}

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
    if (!a.file.empty()) launch.files.emplace_back(a.address, a.file);
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
