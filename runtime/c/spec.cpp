// Specs of the C ABI: the words of the language, specs that are written statement by statement, what a spec declares, the catalogue.
#include "gen/catalog/options.h"
#include "gen/spec/graph.h"
#include "gen/spec/text/call_form.h"
#include "gen/spec/text/spec_writer.h"
#include "runtime/c/handles.h"
#include "runtime/c/text.h"
#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using Json = nlohmann::ordered_json;

struct kiln_writer {
  std::mutex mutex;
  kiln::SpecWriter writer;
};

namespace kiln::c {
namespace {

// Numbers, and names of run-time sizes.
Json shape_of(const Shape& shape) {
  Json sizes = Json::array();
  for (const Dim& dim : shape) dim.is_dynamic() ? sizes.push_back(dim.name()) : sizes.push_back(dim.size());
  return sizes;
}

std::string kind_of(const CallForm& form) {
  if (form.helper != nullptr) return "written_out";
  switch (info(form.op).kind) {
  case OpKind::pointwise:
  case OpKind::select: return "pointwise";
  case OpKind::integer: return "integer";
  case OpKind::compare:
  case OpKind::logic: return "condition";
  case OpKind::row_reduce: return "row";
  case OpKind::group_reduce: return "group";
  case OpKind::product: return "product";
  default: return "other";
  }
}

std::string language_text() {
  Json words = Json::array();
  for (const CallForm& form : call_forms()) {
    Json word{{"name", form.name}, {"kind", kind_of(form)}, {"operands", form.operands}, {"numbers", form.numbers}};
    if (form.type || form.shape) word["first"] = form.type ? "type" : "shape";
    word["options"] = form.options;
    words.push_back(std::move(word));
  }
  return words.dump();
}

std::string described(const KernelSpec& spec) {
  Json json{
      {"name", spec.name()}, {"dims", Json::array()}, {"inputs", Json::array()}, {"scalars", Json::array()}, {"outputs", Json::array()}};
  for (const Dim& dim : spec.dynamic_dims()) {
    Json entry{{"name", dim.name()}};
    if (dim.min()) entry["min"] = *dim.min();
    if (dim.max()) entry["max"] = *dim.max();
    json["dims"].push_back(std::move(entry));
  }
  for (const Expr& input : spec.inputs())
    json["inputs"].push_back({{"name", input->name},
                              {"dtype", to_string(input.dtype())},
                              {"shape", shape_of(input.shape())},
                              {"strided", input->layout == Layout::strided},
                              {"preshuffled", input->layout == Layout::preshuffled}});
  for (const Expr& scalar : spec.scalars()) json["scalars"].push_back({{"name", scalar->name}, {"dtype", to_string(scalar.dtype())}});
  for (const Output& output : spec.outputs())
    json["outputs"].push_back({{"name", output.name},
                               {"dtype", to_string(output.dtype)},
                               {"shape", shape_of(output.value.shape())},
                               {"strided", output.layout == Layout::strided},
                               {"in_place_of", output.in_place_of}});
  return json.dump();
}

const CatalogEntry& entry_of(const char* name) {
  const auto found = std::ranges::find(catalog(), std::string_view(name), &CatalogEntry::name);
  if (found == catalog().end()) static_cast<void>(catalog_spec(name, {})); // throws the error that names the nearest
  return *found;
}

Json default_of(const CatalogOption& option) {
  const CatalogOptions defaults;
  if (const auto* const number = std::get_if<std::int64_t CatalogOptions::*>(&option.place)) return defaults.**number;
  if (const auto* const flag = std::get_if<bool CatalogOptions::*>(&option.place)) return defaults.**flag;
  return to_string(defaults.*std::get<DType CatalogOptions::*>(option.place));
}

std::string options_text(const CatalogEntry& entry) {
  Json json = Json::array();
  for (const CatalogOption* const option : options_of(entry))
    json.push_back({{"name", option->name}, {"default", default_of(*option)}, {"help", option->help}});
  return json.dump();
}

CatalogOptions options_for(const char* entry, const Target& target, std::span<const kiln_setting> settings) {
  CatalogOptions options;
  options.fp8 = target.fp8();
  for (const kiln_setting& setting : settings) {
    require(setting.name, "kiln_catalog_spec", "the name of an option");
    require(setting.value, setting.name, "the value of the option");
    const std::string subject = fmt::format("catalogue entry '{}', option {}", entry, setting.name);
    const CatalogOption* const option = find_catalog_option(setting.name);
    if (option == nullptr) throw UserError(subject, "there is no such option", "kiln_catalog_options lists those of an entry");
    set_catalog_option(options, *option, setting.value, target, [&](const std::string& fact, const std::string& remedy) {
      throw UserError(subject, "its value is " + fact, remedy);
    });
  }
  return options;
}

} // namespace
} // namespace kiln::c

using namespace kiln;

extern "C" {

const char* kiln_language(void) {
  static const std::string text = c::language_text();
  return text.c_str();
}

kiln_status kiln_writer_create(const char* kernel, kiln_writer** writer) {
  return c::guarded([&] {
    c::require(kernel, "kiln_writer_create", "kernel");
    c::require(writer, "kiln_writer_create", "writer");
    *writer = new kiln_writer{.mutex = {}, .writer = SpecWriter(kernel)};
  });
}

void kiln_writer_free(kiln_writer* writer) { delete writer; }

kiln_status kiln_writer_add(kiln_writer* writer, const char* statements, char** declared) {
  return c::guarded([&] {
    c::require(writer, "kiln_writer_add", "writer");
    c::require(statements, "kiln_writer_add", "statements");
    const std::lock_guard lock(writer->mutex);
    const std::optional<Expr> last = writer->writer.add(statements);
    if (declared == nullptr) return;
    Json json = Json::object();
    if (last) json = {{"dtype", to_string(last->dtype())}, {"shape", c::shape_of(last->shape())}};
    *declared = c::copy_text(json.dump());
  });
}

kiln_status kiln_writer_text(kiln_writer* writer, char** canonical) {
  return c::guarded([&] {
    c::require(writer, "kiln_writer_text", "writer");
    c::require(canonical, "kiln_writer_text", "canonical");
    const std::lock_guard lock(writer->mutex);
    validate(writer->writer.spec());
    *canonical = c::copy_text(to_text(writer->writer.spec()));
  });
}

kiln_status kiln_spec_describe(const char* spec, char** json) {
  return c::guarded([&] {
    c::require(spec, "kiln_spec_describe", "spec");
    c::require(json, "kiln_spec_describe", "json");
    const KernelSpec parsed = parse_spec(spec);
    validate(parsed);
    *json = c::copy_text(c::described(parsed));
  });
}

kiln_status kiln_catalog(char** json) {
  return c::guarded([&] {
    c::require(json, "kiln_catalog", "json");
    Json entries = Json::array();
    for (const CatalogEntry& entry : catalog()) entries.push_back({{"name", entry.name}, {"doc", entry.doc}});
    *json = c::copy_text(entries.dump());
  });
}

kiln_status kiln_catalog_options(const char* entry, char** json) {
  return c::guarded([&] {
    c::require(entry, "kiln_catalog_options", "entry");
    c::require(json, "kiln_catalog_options", "json");
    *json = c::copy_text(c::options_text(c::entry_of(entry)));
  });
}

kiln_status kiln_catalog_spec(const char* entry, const char* arch, const kiln_setting* options, size_t count, char** spec) {
  return c::guarded([&] {
    c::require(entry, "kiln_catalog_spec", "entry");
    c::require(arch, "kiln_catalog_spec", "arch");
    c::require(spec, "kiln_catalog_spec", "spec");
    if (count != 0) c::require(options, "kiln_catalog_spec", "options");
    *spec = c::copy_text(to_text(catalog_spec(entry, c::options_for(entry, target(arch), {options, count}))));
  });
}

} // extern "C"
