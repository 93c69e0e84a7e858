"""The commands kiln and isa_lint of a wheel: its own programs take the place of this process."""

import os
import sys
from pathlib import Path


def _run(name):
    program = Path(__file__).with_name("bin") / name
    if not program.exists():
        sys.exit(f"error: {name}: this installation of the Python package holds no programs; install Kiln's own wheel, or Kiln itself")
    os.execv(program, [str(program), *sys.argv[1:]])


def kiln():
    _run("kiln")


def isa_lint():
    _run("isa_lint")
