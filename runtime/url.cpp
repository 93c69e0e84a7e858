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
  return text;
}

std::string Url::secret(const std::string& path) const {
  const std::size_t query = std::min(text_.find('?'), text_.size());
  std::string base = text_.substr(0, query);
  while (base.ends_with('/')) base.pop_back();
  return base + path + text_.substr(query);
}

} // namespace kiln
