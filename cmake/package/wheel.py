"""Makes the wheel that holds Kiln's libraries and programs: wheel.py CMAKE BUILD PYTHON OUT.

It is the package of PYTHON with the component `runtime` of the build's installation below kiln/lib and kiln/bin. Every ELF file in it is
checked: what it needs is in the wheel, or on every Linux with glibc of the version in the wheel's tag.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

# Of glibc and of the C++ compiler's run time. libcurl is loaded by name and not needed.
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1", "libstdc++.so.6", "libgcc_s.so.1"}

SETUP = """from setuptools import Distribution, setup
from setuptools.command.bdist_wheel import bdist_wheel


class Binary(Distribution):
    def has_ext_modules(self):
        return True


class Tagged(bdist_wheel):
    def get_tag(self):
        return "py3", "none", "PLATFORM"


setup(distclass=Binary, cmdclass={"bdist_wheel": Tagged})
"""


def read(tool, *arguments):
    return subprocess.run([tool, *arguments], check=True, capture_output=True, text=True).stdout


def keep_sonames(folder):
    """Wheels have no links: the file takes the name that the loader asks for."""
    for link in [file for file in folder.iterdir() if file.is_symlink()]:
        target = link.resolve()
        link.unlink()
        target.rename(link)


def check(folder):
    """The version of glibc that the files below `folder` need. SystemExit names a library that nobody brings, or a path of this machine."""
    elves = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    own = {file.name for file in elves}
    newest = (2, 17)
    for file in elves:
        dynamic = read("readelf", "--dynamic", "--wide", str(file))
        needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
        foreign = {name for name in needed - own - SYSTEM if not name.startswith("ld-linux")}
        if foreign:
            sys.exit(f"wheel: {file.name} needs {', '.join(sorted(foreign))}, which is not in the wheel; build with KILN_BUNDLE=ON")
        for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", dynamic):
            if any(not part.startswith("$ORIGIN") for part in path.split(":")):
                sys.exit(f"wheel: {file.name} is looked up libraries for in {path}, which is a place of this machine")
        for version in re.findall(r"GLIBC_(\d+)\.(\d+)", read("readelf", "--version-info", "--wide", str(file))):
            newest = max(newest, tuple(map(int, version)))
    return newest


def main(cmake, build, python, out):
    with tempfile.TemporaryDirectory() as work:
        tree = Path(work) / "python"
        shutil.copytree(python, tree, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build", "dist"))
        package = tree / "kiln"
        subprocess.run([cmake, "--install", build, "--prefix", package, "--component", "runtime", "--strip"], check=True, stdout=subprocess.DEVNULL)
        for licence in (package / "share").rglob("*"):
            if licence.is_file():
                licence.rename(tree / ("LICENSE" if licence.name == "LICENSE" else f"LICENSE.{licence.name}"))  # setuptools packs LICENSE*
        shutil.rmtree(package / "share")
        keep_sonames(package / "lib")
        glibc = check(package)
        machine = sysconfig.get_platform().removeprefix("linux-").replace("-", "_")
        (tree / "setup.py").write_text(SETUP.replace("PLATFORM", f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"))
        os.makedirs(out, exist_ok=True)
        for old in Path(out).glob("kiln_gpu-*.whl"):
            old.unlink()
        make = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
        made = subprocess.run([sys.executable, "-c", make, str(Path(out).resolve())], cwd=tree, capture_output=True, text=True)
        if made.returncode != 0:
            sys.exit(f"wheel: setuptools (70.1 or newer) could not make it:\n{made.stdout}{made.stderr}")
        print(Path(out) / made.stdout.split()[-1])


if __name__ == "__main__":
    main(*sys.argv[1:])
