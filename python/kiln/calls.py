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
_address_of = operator.attrgetter("_address")


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


class Call:
    """`names` and `values`: arguments like those that it is prepared for. Raises what Python has to say about them; C checks the rest."""

    def __init__(self, kernel, names, values):
        self._handle = None
        require_device(kernel)
        self.kernel, self.names = kernel, tuple(names)
        views = {name: self._view(name, value) for name, value in zip(names, values) if arrays.is_array(value)}
        first = next((value for name, value in zip(names, values) if name in views), None)
        self._kinds = {name: view.dtype for name, view in views.items()}
        self._tensors = [(i, name, views[name]) for i, name in enumerate(self.names) if name in views]
        self._numbers = [i for i, name in enumerate(self.names) if name not in views]
        places = {view.place for view in views.values()}
        self._on_host = "host" in places
        self._on_torch = "gpu" in places and not self._on_host and arrays.is_torch(first)
        self._getters = [(i, self._getter(view)) for i, _, view in self._tensors]
        self._own = [i for i, _, view in self._tensors if isinstance(view.owner, DeviceArray)]
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

    def _view(self, name, value):
        declared = self.kernel.tensors.get(name)
        view = arrays.as_declared(arrays.view(value, name), declared and declared.dtype)
        require_place(self.kernel, name, view)
        require_writable(self.kernel, name, view)
        return view

    @staticmethod
    def _getter(view):
        """What gives the address of an argument like the one that was seen; of arrays of DLPack, which is asked each time, a view."""
        if view.place == "host":
            return None
        if isinstance(view.owner, DeviceArray):
            return _address_of
        if arrays.is_torch(view.owner):
            return type(view.owner).data_ptr
        return None

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
        if not self._on_host and None in (getter for _, getter in self._getters):
            self._getters = [(i, getter or functools.partial(_borrowed, name)) for (i, getter), (_, name, _) in zip(self._getters, self._tensors)]

    def __call__(self, values, stream=None):
        """Launches on values of the kinds that it is prepared for. Returns the results in the order of the spec."""
        if self._on_host:
            return self._through_host(values, arrays.stream_address(stream))
        if self._on_torch and stream is None:
            from .torch_memory import stream_of

            raw = stream_of(values[self._getters[0][0]].device)
        else:
            raw = stream if stream is None else arrays.stream_address(stream)
        addresses = [getter(values[i]) for i, getter in self._getters]
        if self._on_torch:
            made = [maker() for maker in self._makers]
            addresses += [result.data_ptr() for result in made]
            if self._workspaces is not None:
                addresses.append(self._workspaces.address(raw))
        else:
            for i in self._own:
                if values[i]._stream != raw:
                    values[i]._stream = _ANY
            made = [maker(raw) for maker in self._makers]
            addresses += [result._address for result in made]
        self._launch(addresses, values, raw)
        if self._on_torch and stream is not None:
            from .torch_memory import record

            record(stream, [values[i] for i, _ in self._getters] + made)
        return [values[i] if is_given else made[i] for is_given, i in self._results]

    def _launch(self, addresses, values, stream):
        numbers = self._doubles(*[float(values[i]) for i in self._numbers]) if self._numbers else None
        status = _library.call_launch(self._handle, self._addresses(*addresses), numbers, stream)
        if status:
            try:
                _library.raise_error(status)
            except UserError as error:
                raise as_python(error, self.kernel, self.names, self._kinds) from None

    def _through_host(self, values, stream):
        """Copies what lies in host memory to the device, and results back, to memory of the kind of the first array."""
        device, first, copies = self.kernel.device, None, {}
        addresses, keep = [], []
        for i, name, seen in self._tensors:
            first = values[i] if first is None else first
            view = self._view(name, values[i])
            if view.place == "host":
                copies[i] = DeviceArray(device, view.shape, view.dtype, name)
                copies[i].write(view, stream)
            addresses.append(copies[i]._address if i in copies else view.address)
            keep.append(view)
        made = [maker(stream) for maker in self._makers]
        self._launch(addresses + [result._address for result in made], values, stream)
        results = []
        for is_given, i in self._results:
            copy = copies.get(i) if is_given else made[i]
            host = values[i] if is_given else arrays.like(first, copy.shape, copy.dtype)
            if copy is not None:
                _copy_back(copy, arrays.as_declared(arrays.view(host), copy.dtype), stream)
            results.append(host)
        return results

    def __del__(self):
        if self._handle is not None:
            _library.get("kiln_call_free", self._handle)


def _borrowed(name, value):
    return arrays.view(value, name).address


def _copy_back(copy, target, stream):
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
