// HtmlPages: where the HTML report goes. One page while that stays small; beyond that a page a kernel, in a folder beside the report,
// which is the index then. Memory is bounded: kernels are written as they come, and the index keeps a line of each.
#pragma once
#include "isa_checks/cli/report/report.h"
#include <cstddef>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::isa::cli {

// A file of cli/report/page, of which the pages are made, embedded at build time.
struct PagePart {
  std::string_view name; // "page.html", "page.css", "page.js"
  std::string_view text;
};
std::span<const PagePart> page_parts();

class HtmlPages {
public:
  static constexpr std::size_t max_page_bytes = 5'000'000; // of the report itself

  // `file` is where `out` leads to, or empty when that is no file.
  HtmlPages(std::ostream& out, std::string file) : out_(out), file_(std::move(file)) {}

  // A kernel as JSON, and the part of it that the table of kernels needs. Throws Error when the report becomes too large for one page
  // and `file` is empty, or a page cannot be written.
  void add(std::string kernel, std::string row, bool has_findings);
  void end(std::string head);

private:
  void split();
  void write_kernel(const std::string& kernel, std::string row, bool has_findings);

  std::ostream& out_;
  std::string file_, folder_; // the latter is set once the report is split
  std::vector<std::string> kernels_, rows_;
  std::vector<bool> found_; // by row
  std::size_t kernel_bytes_ = 0, row_bytes_ = 0, pages_ = 0, left_out_ = 0;
};

} // namespace kiln::isa::cli
