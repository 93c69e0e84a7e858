// Keys in files, entries signed with them, and what a server answers that has such an entry.
#pragma once
#include "runtime/cache/remote/action_result.h"
#include "runtime/cache/sign.h"
#include "runtime/digest.h"
#include "tests/runtime/fake_kernel.h"
#include "tests/runtime/servers.h"
#include <cstdio>
#include <doctest/doctest.h>
#include <filesystem>
#include <openssl/evp.h>
#include <openssl/pem.h>

namespace kiln::test {

// A pair of keys in files.
struct Keys {
  std::filesystem::path secret, open;
  Keys(const std::filesystem::path& folder, const std::string& name) : secret(folder / (name + ".pem")), open(folder / (name + ".pub")) {
    EVP_PKEY* key = EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519");
    std::FILE* file = std::fopen(secret.c_str(), "w");
    PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    file = std::fopen(open.c_str(), "w");
    PEM_write_PUBKEY(file, key);
    std::fclose(file);
    EVP_PKEY_free(key);
  }
};

inline EntryFiles signed_entry(const KernelRequest& request, const Keys& keys) {
  EntryFiles files = fake_entry(request);
  files.signature = SigningKey::read(keys.secret).sign(files);
  return files;
}

inline std::string answer_for(const std::string& head, const KernelRequest& asked, const EntryFiles& files) {
  std::vector<OutputFile> record;
  for (const auto& [name, bytes] : {std::pair{meta_file, &files.meta},
                                    {object_file, &files.object},
                                    {source_file, &files.source},
                                    {signature_file, &files.signature}}) {
    if (bytes->empty()) continue;
    record.push_back({name, sha256(*bytes), bytes->size()});
    if (head.starts_with("GET /cas/" + record.back().sha256)) return http(*bytes);
  }
  if (head.starts_with("GET /ac/" + cache_key(asked, fake_compiler).hex)) return http(encode_action_result(record));
  return http("", "404 Not Found");
}

// meta.json with one text for another, and its checksum right again.
inline std::string resealed(std::string meta, const std::string& from, const std::string& to) {
  const std::size_t at = meta.find(from);
  REQUIRE(at != std::string::npos);
  meta.replace(at, from.size(), to);
  const std::string body = meta.substr(0, meta.rfind(",\n \"meta_sha256\""));
  return body + ",\n \"meta_sha256\": \"" + sha256(body) + "\"\n}\n";
}

} // namespace kiln::test
