"""What Kiln's calls raise. The text of each is Kiln's own: subject, fact and remedy."""


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
