// Signatures of entries, by OpenSSL's Ed25519.
// The file is one line: "kiln-ed25519 " and the 64 bytes of the signature in hexadecimal.
#include "runtime/cache/sign.h"
#include "gen/error.h"
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace kiln {
namespace {

constexpr std::string_view line_begin = "kiln-ed25519 ";
constexpr std::size_t signature_bytes = 64, max_public_keys = 65536;

// Said before what is signed, so that no signature made for another purpose fits.
std::string message_of(const EntryFiles& files) { return "kiln cache entry 1\n" + files.meta; }

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

File open_key(const std::filesystem::path& path, const char* remedy) {
  File file(std::fopen(path.c_str(), "re"), std::fclose);
  if (!file) throw UserError(path.string(), std::strerror(errno), remedy);
  return file;
}

KeyPointer checked(EVP_PKEY* key, const std::filesystem::path& path, const char* remedy) {
  KeyPointer owned(key, EVP_PKEY_free);
  if (key == nullptr || EVP_PKEY_id(key) != EVP_PKEY_ED25519)
    throw UserError(path.string(), key == nullptr ? "it holds no key in PEM" : "its key is not of Ed25519", remedy);
  return owned;
}

std::string hexadecimal(const unsigned char* bytes, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// The bytes of a signature file; empty: it is none.
std::string signature_of(const std::string& text) {
  const auto digit = [](char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; };
  if (!text.starts_with(line_begin) || text.size() != line_begin.size() + 2 * signature_bytes + 1 || text.back() != '\n') return {};
  std::string bytes;
  for (std::size_t at = line_begin.size(); at + 1 < text.size(); at += 2) {
    const int high = digit(text[at]), low = digit(text[at + 1]);
    if (high < 0 || low < 0) return {};
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

} // namespace

std::shared_ptr<const PublicKeys> PublicKeys::read(const std::filesystem::path& path) {
  constexpr const char* remedy = "set KILN_CACHE_PUBLIC_KEY to a file that openssl pkey -pubout made of an Ed25519 key";
  const File file = open_key(path, remedy);
  std::string text(max_public_keys + 1, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  if (text.size() > max_public_keys)
    throw UserError(path.string(), fmt::format("it has more than {} bytes, and a key has 113", max_public_keys), remedy);
  const auto keys = std::make_shared<PublicKeys>();
  constexpr std::string_view begin = "-----BEGIN PUBLIC KEY-----";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + begin.size())) {
    const std::unique_ptr<BIO, int (*)(BIO*)> block(BIO_new_mem_buf(text.data() + at, static_cast<int>(text.size() - at)), BIO_free);
    keys->keys_.push_back(checked(PEM_read_bio_PUBKEY(block.get(), nullptr, nullptr, nullptr), path, remedy));
  }
  if (keys->keys_.empty()) checked(nullptr, path, remedy);
  return keys;
}

void PublicKeys::check(const EntryFiles& files) const {
  if (files.signature.empty()) throw UnsignedEntry("it is not signed");
  const std::string signature = signature_of(files.signature), message = message_of(files);
  if (signature.empty()) throw UnsignedEntry("its signature is none of Kiln's");
  for (const KeyPointer& key : keys_) {
    const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
    if (context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
        EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(message), message.size()) == 1)
      return;
  }
  throw UnsignedEntry("its signature is of no key in KILN_CACHE_PUBLIC_KEY, or of another entry");
}

SigningKey SigningKey::read(const std::filesystem::path& path) {
  constexpr const char* remedy = "give a file that openssl genpkey -algorithm ed25519 made";
  const File file = open_key(path, remedy);
  SigningKey key;
  key.key_ = checked(PEM_read_PrivateKey(file.get(), nullptr, nullptr, nullptr), path, remedy);
  return key;
}

std::string SigningKey::sign(const EntryFiles& files) const {
  const std::string message = message_of(files);
  unsigned char signature[signature_bytes] = {};
  std::size_t size = signature_bytes;
  const DigestContext context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key_.get()) != 1 ||
      EVP_DigestSign(context.get(), signature, &size, bytes_of(message), message.size()) != 1 || size != signature_bytes)
    throw EnvironmentError("OpenSSL", "it made no Ed25519 signature", "check the installation of libcrypto");
  return fmt::format("{}{}\n", line_begin, hexadecimal(signature, size));
}

} // namespace kiln
