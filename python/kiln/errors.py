"""What Kiln's calls raise. The text of each is Kiln's own: subject, fact and remedy."""

import linecache
import re
import sys
from pathlib import Path

_PACKAGE = str(Path(__file__).parent)


class Error(Exception):
    """Every error of Kiln."""


class UserError(Error, ValueError):
    """What the program did: a wrong shape, size, spec, setting or device."""


class ArgumentTypeError(Error, TypeError):
    """A tensor of another type than the kernel takes, or an argument that is missing or unknown."""


class MachineError(Error, RuntimeError):
    """What the machine lacks: a library, memory, a disk with room; errors of HIP."""


class CacheMiss(Error, LookupError):
    """The policy is cache_only, and no cache has the kernel."""


class ExecutionError(Error, RuntimeError):
    """Findings of the CPU model: what a GPU must not be asked to do."""


class Rejected(Error, RuntimeError):
    """No schedule gave machine code that keeps the kernel's contract."""


class InternalError(Error, RuntimeError):
    """A bug in Kiln."""


# By kiln_status of kiln_c.h.
BY_STATUS = {1: UserError, 2: MachineError, 3: CacheMiss, 4: ExecutionError, 5: Rejected, 6: InternalError}


def at_callers_line(text):
    """A UserError with the place in the program that wrote what is wrong: the innermost line outside of this package."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None:
        return UserError(text)
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line).strip()
    return UserError(f"{Path(file).name}, line {line}, in {frame.f_code.co_name}: {text}" + (f"\n    {source}" if source else ""))


def with_cited_line(error, spec):
    """The same error; where it cites a place of the spec's text, with that line and a mark below the column."""
    cited = re.search(r"spec text, line (\d+), column (\d+)", str(error))
    lines = spec.split("\n")
    if cited is None or int(cited.group(1)) > len(lines):
        return error
    line, column = lines[int(cited.group(1)) - 1], int(cited.group(2))
    before = line.encode()[: column - 1].decode(errors="replace")  # columns count bytes
    cut = max(0, len(before) - 80)  # long lines by what is around the place
    mark = re.sub(r"\S", " ", before[cut:]) + "^"
    return type(error)(f"{error}\n    {line[cut : cut + 120]}\n    {mark}")
