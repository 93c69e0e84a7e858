// KILN_CLONES: a function that is compiled for plain x86-64 and once more for CPUs with AVX2, FMA and F16C; the loader chooses.
// Both compute the same: products and sums are never fused unless the source says so (-ffp-contract=off).
#pragma once

// The choice is made before a sanitiser's run time is ready, so instrumented builds do without.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILN_CLONES
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define KILN_CLONES
#endif
#endif
#if !defined(KILN_CLONES)
#if !defined(__x86_64__) || !defined(__linux__)
#define KILN_CLONES
#elif defined(__clang__) // which has no flatten together with clones
#define KILN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default")))
#else
#define KILN_CLONES __attribute__((target_clones("arch=x86-64-v3", "default"), flatten))
#endif
#endif
