// libcurl by dlopen.
#include "runtime/cache/remote/curl_library.h"
#include "runtime/compile/dynamic_library.h"

namespace kiln {
namespace {

CurlLibrary load_curl() {
  // The names of one library, by who built it: with OpenSSL (every distribution's), with GnuTLS (Debian's other one).
  const DynamicLibrary library({.subject = "libcurl",
                                .given_path = {},
                                .variable = {},
                                .names = {"libcurl.so.4", "libcurl-gnutls.so.4"},
                                .folders = {},
                                .remedy = "install libcurl (package libcurl4t64 or libcurl), or unset KILN_CACHE_URL"});
  const CurlLibrary curl{.global_init = library.function<decltype(::curl_global_init)>("curl_global_init"),
                         .easy_init = library.function<decltype(::curl_easy_init)>("curl_easy_init"),
                         .easy_cleanup = library.function<decltype(::curl_easy_cleanup)>("curl_easy_cleanup"),
                         .easy_reset = library.function<decltype(::curl_easy_reset)>("curl_easy_reset"),
                         .easy_setopt = library.function<decltype(::curl_easy_setopt)>("curl_easy_setopt"),
                         .easy_perform = library.function<decltype(::curl_easy_perform)>("curl_easy_perform"),
                         .easy_getinfo = library.function<decltype(::curl_easy_getinfo)>("curl_easy_getinfo"),
                         .easy_strerror = library.function<decltype(::curl_easy_strerror)>("curl_easy_strerror"),
                         .version_info = library.function<decltype(::curl_version_info)>("curl_version_info")};
  curl.global_init(CURL_GLOBAL_DEFAULT); // not safe among threads, unlike the initialisation below
  return curl;
}

} // namespace

const CurlLibrary& curl_library() {
  static const CurlLibrary library = load_curl(); // a constructor that throws runs again
  return library;
}

} // namespace kiln
