"""Call: a kernel for arguments of some kinds and shapes, prepared once. Every later call gives addresses and numbers to C, which checks
them and launches."""

import ctypes
import functools
import math
import operator
import sys

import numpy as np

from . import _library, arrays, dtypes
from .arguments import Arguments, as_python, number, require_device, require_place, require_writable
from .device import _ANY, DeviceArray
from .errors import UserError

MOST_REMEMBERED = 1024  # calls of one kernel or function


def kind_of(value):
    """What a prepared call depends on of an argument. None: nothing is remembered for such a one."""
    kind = type(value)
    if kind is DeviceArray:
        return value._kind
    if kind is float or kind is int or kind is bool:
        return kind
    if kind is np.ndarray:
        return (value.dtype, value.shape, value.strides, value.flags.writeable)
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor) and not (value.requires_grad and torch.is_grad_enabled()):
        return (value.dtype, value.shape, value.stride(), value.device)
    return None


def remember(calls, key, call):
    if len(calls) >= MOST_REMEMBERED:
        calls.pop(next(iter(calls)), None)
    calls[key] = call
    return call


class Call(_library.Owned):
    """`names` and `values`: arguments like those that it is prepared for. Raises what Python has to say about them; C checks the rest."""

    _free = "kiln_call_free"

    def __init__(self, kernel, names, values):
        require_device(kernel)
        self.kernel, self.names = kernel, tuple(names)
        views = {name: self._view(name, value) for name, value in zip(names, values) if arrays.is_array(value)}
        first = next((value for name, value in zip(names, values) if name in views), None)
        self._kinds = {name: view.dtype for name, view in views.items()}
        # Indices of arguments, and no arguments: what was given is the caller's to free.
        self._tensors = [i for i, name in enumerate(self.names) if name in views]
        self._numbers = [i for i, name in enumerate(self.names) if name not in views]
        self._first = self._tensors[0] if self._tensors else None
        kinds = [_kind_of_view(views[self.names[i]]) for i in self._tensors]
        self._on_torch, self._to_host = kinds[:1] == ["torch"], kinds[:1] == ["host"]
        self._getters = None if {"host", "dlpack"} & set(kinds) else [(i, _GETTERS[kind]) for i, kind in zip(self._tensors, kinds)]
        self._own = [i for i, kind in zip(self._tensors, kinds) if kind == "own"]
        self._results, made = self._find_results(views)
        self._makers = [self._maker(output, shape, first) for output, shape in made]
        given = [(name, self._as_argument(views.get(name)), number(name, value) if name not in views else 0.0) for name, value in zip(names, values)]
        given += [(output.name, arrays.View(None, None, output.dtype, shape, None, "device"), 0.0) for output, shape in made]
        self._workspaces = None
        if self._on_torch and kernel.workspace_bytes and "workspace" not in self.names:
            from . import torch_memory

            self._workspaces = torch_memory.Workspaces(kernel.workspace_bytes, first.device)
            given.append(("workspace", arrays.View(None, None, "u8", (kernel.workspace_bytes,), None, "device"), 0.0))
        self._prepare(given)

    def _view(self, name, value, stream=None):
        declared = self.kernel.tensors.get(name)
        view = arrays.as_declared(arrays.view(value, name, stream), declared and declared.dtype)
        require_place(self.kernel, name, view)
        require_writable(self.kernel, name, view)
        return view

    @staticmethod
    def _as_argument(view):
        """Rows with gaps in host memory are packed on their way."""
        if view is None:
            return None
        return arrays.View(None, None, view.dtype, view.shape, None if view.place == "host" else view.strides, view.place)

    def _find_results(self, views):
        """Where each result is found: an argument's or a made one's index. And which are made, with their shapes."""
        sizes, results, made = {}, [], []
        for name, view in views.items():
            declared = self.kernel.tensors.get(name)
            if declared is not None:
                sizes.update((extent, size) for extent, size in zip(declared.shape, view.shape) if isinstance(extent, str))
        for output in self.kernel.outputs:
            given = output.name if output.name in self.names else output.in_place_of
            if given in self.names:
                results.append((True, self.names.index(given)))
            elif not output.in_place_of and all(extent in sizes for extent in output.shape if isinstance(extent, str)):
                results.append((False, len(made)))
                made.append((output, tuple(sizes.get(extent, extent) for extent in output.shape)))
        return results, made

    def _maker(self, output, shape, first):
        if self._on_torch:
            from . import torch_memory

            return torch_memory.result_maker(first, shape, output.dtype)
        kind, count = (self.kernel.device, output.dtype, shape), dtypes.storage_bytes(output.dtype, math.prod(shape))
        return functools.partial(DeviceArray._for_results, kind, count, output.name.encode())

    def _prepare(self, given):
        self._arguments = Arguments(given)
        try:
            self._handle = _library.make(
                "kiln_call_create", self.kernel._handle, self.kernel.device._handle, self._arguments.list, len(given)
            )
        except UserError as error:
            raise as_python(error, self.kernel, self.names, self._kinds) from None
        self._addresses = ctypes.c_void_p * (len(given) - len(self._numbers))
        self._doubles = ctypes.c_double * len(self._numbers)
        self.kernel.device.launched[self.kernel.key] = self.kernel

    def __call__(self, values, stream=None):
        """Launches on values of the kinds that it is prepared for. Returns the results in the order of the spec."""
        if self._on_torch and stream is None:
            from .torch_memory import stream_of

            raw = stream_of(values[self._first].device)
        else:
            raw = stream if stream is None else arrays.stream_address(stream)
        copies = {}
        addresses = [getter(values[i]) for i, getter in self._getters] if self._getters is not None else self._find(values, raw, copies)
        for i in self._own:
            if values[i]._stream != raw:
                values[i]._stream = _ANY
        if self._on_torch:
            made = [maker() for maker in self._makers]
            addresses += [result.data_ptr() for result in made]
            if self._workspaces is not None:
                addresses.append(self._workspaces.address(raw))
        else:
            made = [maker(raw) for maker in self._makers]
            addresses += [result._address for result in made]
        self._launch(addresses, values, raw)
        if self._on_torch and stream is not None:
            from .torch_memory import record

            record(stream, [values[i] for i in self._tensors if i not in copies and arrays.is_torch(values[i])] + made)
        if self._getters is None:
            self._copy_back(values, made, copies, raw)
        return [values[i] if is_given else made[i] for is_given, i in self._results]

    def _find(self, values, stream, copies):
        """Addresses where some arguments lie in host memory, from which they are copied, or are DLPack's, which is told the stream."""
        addresses = []
        for i in self._tensors:
            view = self._view(self.names[i], values[i], stream)
            if view.place == "host":
                copies[i] = DeviceArray(self.kernel.device, view.shape, view.dtype, self.names[i])
                copies[i].write(view, stream)
            addresses.append(copies[i]._address if i in copies else view.address)
        return addresses

    def _copy_back(self, values, made, copies, stream):
        """Results to host memory: those of arguments that came from there, and made ones if the first array did."""
        for is_given, i in self._results:
            if is_given and i in copies:
                _copy_to_host(copies[i], values[i], stream)
            elif not is_given and self._to_host:
                copy, made[i] = made[i], arrays.like(values[self._first], made[i].shape, made[i].dtype)
                _copy_to_host(copy, made[i], stream)

    def _launch(self, addresses, values, stream):
        numbers = self._doubles(*[float(values[i]) for i in self._numbers]) if self._numbers else None
        status = _library.call_launch(self._handle, self._addresses(*addresses), numbers, stream)
        if status:
            try:
                _library.raise_error(status)
            except UserError as error:
                raise as_python(error, self.kernel, self.names, self._kinds) from None


def _kind_of_view(view):
    if view.place == "host":
        return "host"
    return "own" if isinstance(view.owner, DeviceArray) else "torch" if arrays.is_torch(view.owner) else "dlpack"


_GETTERS = {"own": operator.attrgetter("_address"), "torch": operator.methodcaller("data_ptr")}


def _copy_to_host(copy, host, stream):
    target = arrays.as_declared(arrays.view(host), copy.dtype)
    if target.is_contiguous:
        copy.read_into(target.address, stream)
        return
    host = arrays.storage(copy.numpy(stream))
    if isinstance(target.owner, (np.ndarray, arrays.Array)):
        arrays.storage(target.owner)[...] = host
    else:
        there = arrays.strided(target)
        there[...] = host.view(there.dtype)


__all__ = ["Call", "kind_of", "remember"]
