#!/usr/bin/env bash
# Proves that the tarball, the .deb and the wheel work where there is no source tree, no network and none of the development packages that
# Kiln is built with: programs run, kernels compile and are loaded, an engine links the library, Python imports it.
#   packages_test.sh CMAKE BUILD TREE WORK
set -euo pipefail
cmake=$1 build=$2 tree=$3 work=$4

# ---- Inside: the tree is hidden, and WORK is seen in the empty folder $5, which is not in the tree.
if [[ ${5:-} ]]; then
  place=$5
  mount --bind "$work" "$place"
  mount -t tmpfs none "$tree"
  for folder in /usr/lib/llvm-*/include /usr/lib/llvm-*/lib/cmake /usr/include/{fmt,nlohmann,CLI,doctest,openssl} /usr/include/*/{curl,openssl} \
    /usr/lib/*/cmake/{fmt,zstd,OpenSSL}; do
    [[ ! -d $folder || -L $folder ]] || mount -t tmpfs none "$folder"
  done
  cd "$place"
  export HOME=$place KILN_CACHE_DIR=$place/cache KILN_DEVICE=emulated:gfx950
  packages=$place/packages
  mkdir tarball deb
  tar -xzf "$packages"/kiln-*.tar.gz -C tarball --strip-components=1
  folders=(tarball)
  if compgen -G "$packages/*.deb" >/dev/null; then
    dpkg -x "$packages"/*.deb deb
    folders+=(deb/usr)
    diff <(cd tarball && find . -type f -o -type l | sort) <(cd deb/usr && find . -type f -o -type l | sort)
    dpkg -f "$packages"/*.deb Package Version Depends Recommends Installed-Size
  fi
  for folder in "${folders[@]}"; do
    echo "== $folder: $(find "$folder" -type f | wc -l) files, $(du -sb "$folder" | cut -f1) bytes"
    version=$("$folder/bin/kiln" --version)
    [[ $version =~ ^kiln\ [0-9.]+\ \(commit\ [0-9a-z]+\)$'\n'LLVM\ 2[0-9.]+$'\n'hiprtc\ libhiprtc ]] || { echo "kiln --version: $version" && exit 1; }
    "$folder/bin/kiln" compile quant.kiln --arch gfx942,gfx950 --emit spec | tr '\n' ' ' | grep -E 'e4m3fnuz.*240.*e4m3fn[^u].*448'
    "$folder/bin/kiln" aot kernels.jsonl --arch gfx950 -o "kernels_${folder%%/*}" --quiet
    "$folder/bin/isa_lint" --version
    "$cmake" -S embed -B "embed_${folder%%/*}" -DCMAKE_PREFIX_PATH="$place/$folder" >embed.log 2>&1 -G Ninja || { cat embed.log && exit 1; }
    "$cmake" --build "embed_${folder%%/*}" >embed.log || { cat embed.log && exit 1; }
    "embed_${folder%%/*}/engine" | grep -F 'silu(1) = 0.731'
    readelf --dynamic "embed_${folder%%/*}/engine" | sed -nE 's/.*NEEDED.*\[(lib(kiln|LLVM|curl|crypto|zstd|fmt).*)\]/engine needs \1/p'
  done
  [[ $(ls -A kernels_tarball) ]]
  if compgen -G "$packages/*.whl" >/dev/null; then
    python3 -m venv --without-pip --system-site-packages env # for NumPy
    python3 -m pip --python env/bin/python --quiet --disable-pip-version-check install --no-index --no-warn-script-location "$packages"/*.whl
    echo "== wheel: $(ls "$packages" | grep whl), $(find env/lib/python*/site-packages/kiln -type f | wc -l) files, $(du -sb env/lib/python*/site-packages/kiln | cut -f1) bytes"
    env/bin/kiln --version
    ls env/lib/python*/site-packages/kiln_gpu-*.dist-info/licenses | tr '\n' ' ' | grep 'LICENSE LICENSE.bundled_licenses.txt'
    env/bin/python wheel.py
    KILN_JIT_POLICY=cache_only KILN_CACHE_LAYERS=$place/kernels_tarball KILN_CACHE_DIR=$place/none KILN_HIPRTC_PATH=/nowhere \
      env/bin/python wheel.py shipped
  fi
  exit 0
fi

rm -rf "$work"
mkdir -p "$work/packages"
generators=TGZ
if command -v dpkg-shlibdeps >/dev/null && command -v file >/dev/null; then generators+=';DEB'; else echo 'left out: the .deb, as there is no dpkg-shlibdeps (package dpkg-dev) or no file'; fi
"${cmake%cmake}cpack" -G "$generators" --config "$build/CPackConfig.cmake" -B "$work/packages" >"$work/log" 2>&1 || { cat "$work/log" && exit 1; }
rm -rf "$work/packages/_CPack_Packages"
if python3 -c 'import setuptools, pip, numpy' 2>/dev/null; then
  python3 "$tree/cmake/package/wheel.py" "$cmake" "$build" "$tree/python" "$work/packages"
else
  echo 'left out: the wheel, as python3 lacks setuptools, pip or numpy'
fi
(cd "$work/packages" && ls -l)

cp -r "$tree/examples/embed" "$work/embed"
echo '{"spec": "kernel twice dim n input x: f16[n, 64] output y: f16[n, 64] = x + x"}' >"$work/kernels.jsonl"
printf 'kernel quant dim n input x: f16[n, 64]\noutput q: $fp8[n, 64] = clamp(x, -1 * $fp8_max, $fp8_max)\n' >"$work/quant.kiln"
cat >"$work/wheel.py" <<'END'
import sys
import numpy as np
import kiln

assert kiln.__file__.startswith(sys.prefix + "/"), kiln.__file__
jit = kiln.Jit("emulated:gfx950")
kernel = jit.compile("kernel twice dim n input x: f16[n, 64] output y: f16[n, 64] = x + x")
x = np.arange(128, dtype=np.float16).reshape(2, 64)
assert (kernel(x=x)["y"] == x + x).all()
print("wheel:", jit.stats()["compiled"], "compiled", jit.stats()["layer_hits"], "from the shipped folder")
assert jit.stats()["layer_hits" if sys.argv[1:] else "compiled"] == 1
END
namespace=(unshare --mount --net)
"${namespace[@]}" true 2>/dev/null || namespace=(unshare --mount --net --user --map-root-user)
"${namespace[@]}" true 2>/dev/null || { echo 'skipped: no mount namespace can be made here' && exit 77; }
place=$(mktemp -d)
trap 'rmdir "$place"' EXIT
env -i PATH="$PATH" "${namespace[@]}" bash "${BASH_SOURCE[0]}" "$cmake" "$build" "$tree" "$work" "$place"
