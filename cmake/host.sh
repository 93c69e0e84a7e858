# shellcheck shell=bash
# What this machine is and has: distribution, ROCm, LLVM, build tools, GPU. Read by ./dev.
# `machine` is put before the paths of system files, so that tests can lay out another machine.

machine=${machine:-}

# ---- Distribution

os_release() { sed -nE "s/^$1=\"?([^\"]*)\"?\$/\1/p" "$machine/etc/os-release" 2>/dev/null | head -n 1; }

# apt, dnf, zypper, pacman or nothing: the package manager of the distribution.
package_manager() {
  case " $(os_release ID) $(os_release ID_LIKE) " in
    *' debian '* | *' ubuntu '*) echo apt ;;
    *' fedora '* | *' rhel '* | *' centos '*) echo dnf ;;
    *suse*) echo zypper ;;
    *' arch '*) echo pacman ;;
  esac
}

# The line that installs what a build in host mode needs beside hipRTC, by the names that the distribution has for it; $1: the major
# version of LLVM that is wanted, or empty.
build_packages_line() {
  local llvm=${1:-20}
  case $(package_manager) in
    apt) echo "apt-get install g++-13 cmake ninja-build llvm-$llvm-dev libfmt-dev libcli11-dev nlohmann-json3-dev doctest-dev libcurl4-openssl-dev libssl-dev libzstd-dev zlib1g-dev" ;;
    dnf) echo 'dnf install gcc-c++ cmake ninja-build llvm-devel fmt-devel cli11-devel json-devel doctest-devel libcurl-devel openssl-devel libzstd-devel zlib-devel' ;;
    zypper) echo 'zypper install gcc-c++ cmake ninja llvm-devel fmt-devel cli11-devel nlohmann_json-devel doctest-devel libcurl-devel libopenssl-devel libzstd-devel zlib-devel' ;;
    pacman) echo 'pacman -S --needed gcc cmake ninja llvm fmt cli11 nlohmann-json doctest curl openssl zstd zlib' ;;
    *) echo "install g++ 13, CMake, ninja, LLVM $llvm with headers, fmt, CLI11, nlohmann-json, doctest, libcurl, OpenSSL, zstd and zlib" ;;
  esac
}

# What always works: Debian in a container with the rights to mount. Its root stays in a volume.
container_line() {
  echo "podman run --rm -it --privileged -v kiln:/root/.cache -v '$tree:$tree' -w '$tree' debian:trixie ./dev ${command:-demo}"
}

# ---- GPU

has_gpu() { [[ -e $machine/dev/kfd ]]; }

# The architectures of the GPUs that the driver lists, a line each: gfx_target_version 90402 is gfx942.
gpu_archs() {
  local version file
  for file in "$machine"/sys/class/kfd/kfd/topology/nodes/*/properties; do
    [[ ! -r $file ]] || sed -nE 's/^gfx_target_version ([1-9][0-9]*)$/\1/p' "$file"
  done | while read -r version; do printf 'gfx%d%x%x\n' $((version / 10000)) $((version / 100 % 100)) $((version % 100)); done | sort -u
}

# The device nodes that a program needs for the GPU. (-e: a pattern that matches nothing stays itself.)
gpu_nodes() {
  local node
  for node in "$machine"/dev/kfd "$machine"/dev/dri/renderD* "$machine"/dev/dri/card*; do
    [[ ! -e $node ]] || echo "$node"
  done
}

# The groups that own these nodes, comma-separated.
gpu_groups() { gpu_nodes | xargs -r -d '\n' stat -c %g | sort -nu | paste -sd,; }

# ---- ROCm and LLVM

# Folders that may hold a ROCm: what the variables and the tool of its Python packages say, then the usual one, then versioned ones, newest
# first.
rocm_folders() {
  local folder
  for folder in "${ROCM_PATH:-}" "${HIP_PATH:-}" "$(rocm-sdk path --root 2>/dev/null || :)" "$machine/opt/rocm" \
    $(compgen -G "$machine/opt/rocm-*" | sort -rV) $(compgen -G "$machine/opt/rocm/core-*" | sort -rV); do
    [[ ! $folder || ! -d $folder ]] || echo "$folder"
  done
}

# MAJOR.MINOR out of the name of the file that a library's link leads to: libhiprtc.so.6.4.43484 is 6.4.
library_version() { [[ ! $(readlink -f "$1") =~ \.so\.([0-9]+\.[0-9]+) ]] || echo "${BASH_REMATCH[1]}"; }

# The file of a library ($1: a pattern such as libhiprtc.so.[67]): in one of ROCm's folders, else where the loader finds it.
host_library() {
  local folder file
  while IFS= read -r folder; do
    for file in "$folder"/lib/$1 "$folder"/lib64/$1; do
      [[ ! -e $file ]] || { echo "$file" && return; }
    done
  done < <(rocm_folders)
  for file in $(PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | awk '{print $NF}'); do
    # shellcheck disable=SC2053 # the pattern is meant as one
    [[ ! -e $file || ${file##*/} != $1 ]] || { echo "$file" && return; }
  done
}

# The llvm-config of LLVM 20 to 22 with headers and CMake files; $1: a major version that it has to be, or empty for any.
host_llvm() {
  local program major
  for program in $(rocm_folders | sed 's|$|/llvm/bin/llvm-config|; p; s|/llvm/bin/|/lib&|') llvm-config-{22,21,20} /usr/lib/llvm-{22,21,20}/bin/llvm-config llvm-config; do
    major=$("$program" --version 2>/dev/null) || continue
    major=${major%%.*}
    [[ ${1:-$major} == "$major" && $major -ge 20 && $major -le 22 ]] || continue
    [[ ! -e $("$program" --cmakedir)/LLVMConfig.cmake ]] || { command -v "$program" && return; }
  done
}

# The version of an LLVM that is too old, for the message: LLVM learnt gfx950 with 20.
old_llvm() {
  local program version
  for program in $(rocm_folders | sed 's|$|/llvm/bin/llvm-config|') llvm-config /usr/lib/llvm-1*/bin/llvm-config; do
    version=$("$program" --version 2>/dev/null) || continue
    [[ ${version%%.*} -ge 20 ]] || { echo "$version" && return; }
  done
}

# Sets `lacks` to what keeps this machine's own ROCm from being used, or to nothing, and then host_rocm and host_llvm_config.
# `remedy` is the line that gets what is missing; empty where no package does.
check_host() {
  local hiprtc comgr version old
  remedy=''
  hiprtc=$(host_library 'libhiprtc.so.[67]')
  comgr=$(host_library 'libamd_comgr.so.[23]')
  lacks='no hipRTC 6 or 7 with comgr: not in ROCM_PATH, HIP_PATH, rocm-sdk path, /opt/rocm, /opt/rocm-*, nor where the loader looks'
  [[ $hiprtc && $comgr ]] || return 0
  version=$(library_version "$hiprtc")
  lacks="hipRTC is $version ($hiprtc), and 6.2 or newer is needed"
  printf '6.2\n%s\n' "$version" | sort -V -C || return 0
  # Both come into one process: where comgr uses a shared LLVM, it has to be the same one.
  version=$({ ldd "$comgr" 2>/dev/null || :; } | sed -nE 's/.*libLLVM(-|\.so\.)([0-9]+).*/\2/p' | head -n 1)
  host_llvm_config=$(host_llvm "$version")
  old=$(old_llvm)
  lacks="hipRTC is there ($hiprtc), but no LLVM ${version:-20 to 22} with headers and CMake files${old:+; LLVM $old cannot read gfx950}"
  remedy=$(build_packages_line "$version")
  [[ $host_llvm_config ]] || return 0
  host_rocm=${hiprtc%/*}
  lacks=$(host_tools_lacking)
  [[ ! $lacks ]] || { lacks="hipRTC and LLVM are there, but $lacks" && return 0; }
  find_host_cxx
  remedy=''
}

# Sets `host_cxx` to a C++ compiler that is new enough: CXX, else the usual one, else one with its version in its name.
find_host_cxx() {
  for host_cxx in ${CXX:-c++ g++-{16,15,14,13} clang++-{22,21,20,19,18}}; do
    "$host_cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1 <<'END' && return
#if !(__clang_major__ >= 18 || (__GNUC__ >= 13 && !defined(__clang__)))
#error too old
#endif
END
  done
  host_cxx=''
}

# What of the build tools and libraries is missing on the host, all of it; nothing when nothing is.
host_tools_lacking() {
  local tool header missing=()
  for tool in cmake ninja; do command -v "$tool" >/dev/null || missing+=("$tool"); done
  find_host_cxx
  [[ $host_cxx ]] || missing+=("g++ 13 or clang++ 18${CXX:+ (CXX is $CXX)}")
  for header in fmt/format.h CLI/CLI.hpp nlohmann/json.hpp doctest/doctest.h curl/curl.h openssl/sha.h zstd.h zlib.h; do
    [[ ! $host_cxx ]] || "$host_cxx" -std=c++20 -E -x c++ - >/dev/null 2>&1 <<<"#include <$header>" || missing+=("<$header>")
  done
  [[ ${#missing[@]} == 0 ]] || { printf 'this machine has no %s' "${missing[0]}" && [[ ${#missing[@]} == 1 ]] || printf ', no %s' "${missing[@]:1}"; }
}
