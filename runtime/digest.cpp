// SHA-256, by OpenSSL's libcrypto.
// The first use of the EVP interface reads a configuration file and fetches providers: 0.74 ms (OpenSSL 3.6), more than a
// whole cache hit may take. The older interface needs none of that: 0.03 ms. It is deprecated, not going away.
#define OPENSSL_API_COMPAT 0x10100000L
#include "runtime/digest.h"
#include <algorithm>
#include <array>
#include <openssl/sha.h>

namespace kiln {

std::string sha256(std::initializer_list<std::string_view> pieces) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const std::string_view piece : pieces) SHA256_Update(&context, piece.data(), piece.size());
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256_Final(digest.data(), &context);
  constexpr std::string_view digits = "0123456789abcdef";
  std::string hex;
  hex.reserve(2 * digest.size());
  for (const unsigned char byte : digest) {
    hex += digits[byte >> 4];
    hex += digits[byte & 15];
  }
  return hex;
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

} // namespace kiln
