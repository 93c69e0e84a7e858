// CurlLibrary: libcurl, loaded by name when a remote is first asked, so that who uses none need not have it.
#pragma once
#include <curl/curl.h>

namespace kiln {

struct CurlLibrary {
  decltype(::curl_global_init)* global_init;
  decltype(::curl_easy_init)* easy_init;
  decltype(::curl_easy_cleanup)* easy_cleanup;
  decltype(::curl_easy_reset)* easy_reset;
  decltype(::curl_easy_setopt)* easy_setopt;
  decltype(::curl_easy_perform)* easy_perform;
  decltype(::curl_easy_getinfo)* easy_getinfo;
  decltype(::curl_easy_strerror)* easy_strerror;
  decltype(::curl_version_info)* version_info;
};

// Set up. Throws EnvironmentError that says what was tried; the next call tries again.
const CurlLibrary& curl_library();

} // namespace kiln
