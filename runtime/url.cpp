// Url: what of an address may be shown.
#include "runtime/url.h"
#include <algorithm>

namespace kiln {

std::string Url::shown() const {
  const std::size_t scheme = text_.find("://"), at = text_.rfind('@');
  std::size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  std::string text = text_.substr(0, begin);
  if (at != std::string::npos && at >= begin) text += "...@", begin = at + 1;
  const std::size_t end = std::min(text_.find_first_of("?#", begin), text_.size());
  text += text_.substr(begin, end - begin);
  if (end != text_.size()) text += text_.substr(end, 1) + "...";
  std::ranges::replace_if(text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?'); // a log is read on terminals
  return text;
}

std::string Url::host() const {
  const std::size_t scheme = text_.find("://");
  std::string text = text_.substr(scheme == std::string::npos ? 0 : scheme + 3);
  text.resize(std::min(text.find_first_of("/?#"), text.size()));
  if (const std::size_t at = text.rfind('@'); at != std::string::npos) text.erase(0, at + 1);
  if (text.starts_with('[')) return text.substr(1, std::min(text.find(']'), text.size()) - 1);
  return text.substr(0, text.find(':'));
}

std::string Url::secret(const std::string& path) const {
  const std::size_t query = std::min(text_.find('?'), text_.size());
  std::string base = text_.substr(0, query);
  while (base.ends_with('/')) base.pop_back();
  return base + path + text_.substr(query);
}

} // namespace kiln
