// Signatures of entries: Ed25519 over meta.json, which names key, request, and size and SHA-256 of every other file. So a
// signature covers the whole entry, and is worth nothing beside another key's.
#pragma once
#include "runtime/cache/entry.h"
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

struct evp_pkey_st; // OpenSSL's EVP_PKEY

namespace kiln {

using KeyPointer = std::shared_ptr<evp_pkey_st>;

// The keys that may sign.
class PublicKeys {
public:
  // A file of one or more Ed25519 public keys in PEM, as `openssl pkey -pubout` writes them. Throws UserError.
  static std::shared_ptr<const PublicKeys> read(const std::filesystem::path& file);
  void check(const EntryFiles& files) const; // throws UnsignedEntry
private:
  std::vector<KeyPointer> keys_;
};

// A file of one Ed25519 private key in PEM, as `openssl genpkey -algorithm ed25519` writes it.
class SigningKey {
public:
  static SigningKey read(const std::filesystem::path& file); // throws UserError
  std::string sign(const EntryFiles& files) const;           // EntryFiles::signature
private:
  KeyPointer key_;
};

} // namespace kiln
