// Url: an address that may hold a password or a token. Only shown() gives text to print.
#pragma once
#include <string>
#include <utility>

namespace kiln {

class Url {
public:
  Url() = default;
  explicit Url(std::string text) : text_(std::move(text)) {
    while (text_.ends_with('/')) text_.pop_back();
  }
  bool empty() const { return text_.empty(); }
  bool encrypted() const { return text_.starts_with("https://"); }

  std::string host() const; // without user, port and brackets: "cache.example", "::1"

  // Scheme, host and path. In place of user and password, of the query and of the fragment stands "...": from the last @ on if
  // there is one, since passwords may hold @ and /.
  std::string shown() const;

  // The whole of it with `path` appended before the query: for the one who connects, never for a message.
  std::string secret(const std::string& path = {}) const;
  bool operator==(const Url&) const = default;

private:
  std::string text_;
};

} // namespace kiln
