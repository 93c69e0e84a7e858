#!/usr/bin/env bash
# Tries `./dev setup` as other distributions would run it: their os-release, apt sources and keyrings lie over this machine's, in a mount
# namespace that goes with the script. Prints a line for each: what came out, or what was advised. Needs root and the network, and half a
# minute and 2 GB under $1 for each that gets a root: no part of ctest. usage: distributions.sh FOLDER [NAMES]
set -euo pipefail
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
work=$(realpath "$1")
shift
all=(debian-13 ubuntu-22.04 ubuntu-24.04 ubuntu-24.04-without-keyring fedora arch rocky opensuse)

os_release() {
  case $1 in
    debian-13) printf '%s\n' 'ID=debian' 'VERSION_CODENAME=trixie' ;;
    ubuntu-22.04) printf '%s\n' 'ID=ubuntu' 'ID_LIKE=debian' 'VERSION_ID="22.04"' 'VERSION_CODENAME=jammy' ;;
    ubuntu-24.04*) printf '%s\n' 'ID=ubuntu' 'ID_LIKE=debian' 'VERSION_ID="24.04"' 'VERSION_CODENAME=noble' ;;
    fedora) printf '%s\n' 'ID=fedora' 'VERSION_ID=42' ;;
    arch) printf '%s\n' 'ID=arch' ;;
    rocky) printf '%s\n' 'ID="rocky"' 'ID_LIKE="rhel centos fedora"' 'VERSION_ID="9.4"' ;;
    opensuse) printf '%s\n' 'ID="opensuse-leap"' 'ID_LIKE="suse opensuse"' ;;
  esac
}

# The sources of distribution $1; Debian's are this machine's under another release's name.
sources() {
  case $1 in
    debian-13) sed 's/bookworm/trixie/g' /etc/apt/sources.list.d/debian.sources ;;
    ubuntu*) printf '%s\n' 'Types: deb' 'URIs: http://archive.invalid/ubuntu' "Suites: $2 $2-updates" 'Components: main universe' \
      'Signed-By: /usr/share/keyrings/ubuntu-archive-keyring.gpg' ;;
  esac
}

# The keys that the package debian-archive-keyring of distribution $1 has: 22.04's is of 2021, 24.04's of 2023.
keys() {
  case $1 in
    *without-keyring) ;;
    ubuntu-22.04) echo bullseye ;;
    ubuntu-24.04) echo bullseye bookworm ;;
    *) echo bullseye bookworm trixie ;;
  esac
}

# Runs inside the mount namespace.
try() {
  local name=$1 fake=$work/$1 file key
  mkdir -p "$fake/keyrings" "$fake/sources.list.d" "$fake/cache"
  os_release "$name" >"$fake/os-release"
  sources "$name" "$(sed -n 's/VERSION_CODENAME=//p' "$fake/os-release")" >"$fake/sources.list.d/own.sources"
  for key in $(keys "$name"); do cat /usr/share/keyrings/debian-archive-"$key"-*.gpg >>"$fake/keyrings/debian-archive-keyring.gpg"; done
  mount --bind "$fake/os-release" "$(readlink -f /etc/os-release)"
  mount --bind "$fake/sources.list.d" /etc/apt/sources.list.d
  mount --bind "$fake/keyrings" /usr/share/keyrings
  mkdir -p "$fake/none" && mount --bind "$fake/none" /etc/apt/trusted.gpg.d && mount --bind /dev/null /etc/apt/trusted.gpg
  if [[ $name =~ ^(fedora|arch|rocky|opensuse) ]]; then # they have neither of these programs
    mkdir -p "$fake/bin" && ln -sf /usr/bin/* "$fake/bin" && rm "$fake"/bin/{mmdebstrap,apt-get}
    PATH=$fake/bin
  fi
  XDG_CACHE_HOME=$fake/cache "$here/../../dev" --suite "${KILN_DEV_SUITE:-forky}" setup >"$fake/out" 2>&1 && echo "$name: a root" || echo "$name: refused"
  grep -vE 'fetching|installing|extracting|running|downloading' "$fake/out" | sed 's/^/    /'
  rm -rf --one-file-system "$fake/cache"
}

for name in "${@:-${all[@]}}"; do
  work=$work here=$here unshare --mount --propagation private bash -euc "$(declare -f os_release sources keys try); try \"\$1\"" try "$name"
done
