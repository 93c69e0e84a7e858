// HtmlPages: where the HTML report goes. One page while that stays small; beyond that a page a kernel, in a folder beside the report,
// which is the index then. Memory is bounded: kernels are written as they come, and the index keeps a line of each.
#pragma once
#include "isa_checks/cli/report/report.h"
#include "isa_checks/error.h"
#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
  void add(std::string kernel, std::string row, bool has_findings) {
    if (folder_.empty() && !kernels_.empty() && kernel_bytes_ + kernel.size() > max_data_bytes) split();
    if (!folder_.empty()) return write_kernel(kernel, std::move(row), has_findings);
    kernel_bytes_ += kernel.size() + 2;
    kernels_.push_back(std::move(kernel));
    rows_.push_back(std::move(row));
    found_.push_back(has_findings);
  }

  void end(std::string head) {
    if (left_out_ > 0) head.insert(1, fmt::format(R"("left_out":{},)", left_out_));
    write_page(out_, head, fmt::format("[{}]", fmt::join(folder_.empty() ? kernels_ : rows_, ",\n")));
  }

private:
  static constexpr std::size_t max_data_bytes = max_page_bytes - 200'000; // the rest is for the page itself

  static std::string_view page_part(std::string_view name) { return std::ranges::find(page_parts(), name, &PagePart::name)->text; }

  static void write_page(std::ostream& out, std::string_view head, std::string_view kernels) {
    const std::pair<std::string_view, std::string_view> parts[] = {
        {"/*CSS*/", page_part("page.css")}, {"/*JS*/", page_part("page.js")}, {"/*HEAD*/", head}, {"/*KERNELS*/", kernels}};
    std::string_view page = page_part("page.html");
    for (const auto& [mark, text] : parts) { // in the order in which page.html has them
      const std::size_t at = page.find(mark);
      out << page.substr(0, at) << text;
      page.remove_prefix(at + mark.size());
    }
    out << page;
  }

  void split() {
    if (file_.empty())
      throw Error("HTML report", fmt::format("it takes more than {} MB as one page", max_page_bytes / 1'000'000),
                  "write it with -o FILE, and kernels go into pages of their own beside it");
    const std::filesystem::path file(file_);
    folder_ = file.stem().string() + "_kernels";
    std::error_code error;
    std::filesystem::create_directories(file.parent_path() / folder_, error);
    if (error)
      throw Error((file.parent_path() / folder_).string(), "it cannot be made: " + error.message(), "check the folder and its permissions");
    std::vector<std::string> rows;
    rows.swap(rows_);
    for (std::size_t n = 0; n < kernels_.size(); ++n) write_kernel(kernels_[n], std::move(rows[n]), found_[n]);
    kernels_.clear();
  }

  // A page, and a row that leads there. Rows of kernels without findings are the first to be left out of an index that is full.
  void write_kernel(const std::string& kernel, std::string row, bool has_findings) {
    const std::string page = fmt::format("{}/{}.html", folder_, ++pages_);
    const std::filesystem::path file(file_), path = file.parent_path() / page;
    std::ofstream out(path, std::ios::binary);
    write_page(out, fmt::format(R"({{"index":"../{}"}})", file.filename().string()), "[" + kernel + "]");
    out.flush();
    if (!out) throw Error(path.string(), "it cannot be written", "check the disk");
    row.insert(1, fmt::format(R"("page":"{}",)", page));
    if (row_bytes_ + row.size() > (has_findings ? max_data_bytes : max_data_bytes / 2)) {
      ++left_out_;
      return;
    }
    row_bytes_ += row.size() + 2;
    rows_.push_back(std::move(row));
  }

  std::ostream& out_;
  std::string file_, folder_; // the latter is set once the report is split
  std::vector<std::string> kernels_, rows_;
  std::vector<bool> found_; // by row
  std::size_t kernel_bytes_ = 0, row_bytes_ = 0, pages_ = 0, left_out_ = 0;
};

} // namespace kiln::isa::cli
