"""What compiled programs call."""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Sequence
from typing import Any

import torch

from torch_dml import engine
from torch_dml.backend import DEVICE
from torch_dml.device import get_device_properties
from torch_dml.inductor.errors import MissingKernelError
from torch_dml.text_kernel import Kernel

# A number in the low bytes of eight.
_NUMBERS = {"i32": "i4x", "u32": "I4x", "i64": "q", "u64": "Q", "f32": "f4x", "f64": "d"}
_GROUPS = struct.Struct("=3I")
# What every adapter has room for in a dimension.
MOST_GROUPS = 65535
# Of the longest vectors, in bytes.
ALIGNMENT = 16
# What an invocation runs on a software adapter: Mesa's before version 23 silently ends loops after
# 65,535 turns of all together.
MOST_TURNS = 60_000


@functools.cache
def _launch() -> Any:
    """Return the engine's function, which takes arrays as bytes."""
    function = engine.library()["dml_launch_values"]
    function.argtypes = (ctypes.c_int32, ctypes.c_uint64, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p)
    function.restype = ctypes.c_int32
    return function


def _index_fault(device: int) -> tuple[int, int]:
    """Return where a kernel reports an index out of range, and as which error."""
    address, number = ctypes.c_uint64(), ctypes.c_uint32()
    engine.call("dml_index_fault", device, ctypes.byref(address), ctypes.byref(number))
    return address.value, number.value


@functools.lru_cache(maxsize=4096)
def _packed(groups: int) -> bytes:
    """Return a number of workgroups for three dimensions: in the first, or a little more in two."""
    rows = -(-groups // MOST_GROUPS)
    return _GROUPS.pack(-(-groups // rows) if rows else 0, max(rows, 1), 1)


class Program:
    """A kernel of a compiled program. Its arguments are not checked: Dynamo's guards have done
    that.
    """

    def __init__(self, text: str, wide: tuple[str, int] | None) -> None:
        """Parse a text and begin to compile it for the current device. `wide` is the text of the
        same kernel for tensors whose addresses are multiples of `ALIGNMENT`, and how many
        workgroups of the other one of its own replaces; then the other is only compiled if it is
        needed.
        """
        try:
            self.kernel = Kernel(text if wide is None else wide[0])
        except NotImplementedError as error:
            # The adapter lacks a feature: the graph runs operator by operator.
            raise MissingKernelError(str(error)) from error
        self._other = None if wide is None else text
        self._replaces = 1 if wide is None else wide[1]
        params = self.kernel._params
        # Places of tensors among the arguments; those of `fault` follow them.
        self._places = [i for i, param in enumerate(params) if param["kind"] != "param" and param["name"] != "fault"]
        kinds = ["Q" if param["kind"] != "param" else _NUMBERS[param["dtype"]] for param in params]
        self._pack = struct.Struct("=" + "".join(kinds)).pack
        self._count = len(params)
        self._reports = any(param["name"] == "fault" for param in params)
        self._launch = _launch()

    def __call__(self, *arguments: Any, groups: int, turns: int = 0) -> None:
        """Enqueue a launch of so many workgroups. An invocation takes so many turns of loops, if
        that may be too many.

        Raises NotImplementedError if it is.
        """
        values = list(arguments)
        for place in self._places:
            values[place] = values[place].data_ptr()
        device = arguments[self._places[0]].get_device()
        if turns > MOST_TURNS and get_device_properties(device).software:
            raise NotImplementedError(f"{self.kernel.name}: loops of {turns} turns on a software adapter")
        kernel, replaced = self.kernel, self._replaces
        if self._other is not None:
            bits = 0
            for place in self._places:
                bits |= values[place]
            if bits % ALIGNMENT:
                kernel, replaced = _kernel(self._other), 1
        if self._reports:
            values += _index_fault(device)
        handle = kernel._handles.get(device) or kernel._handle(device)
        counts = _packed(-(-groups // replaced))
        status = self._launch(device, handle, self._pack(*values), self._count, counts)
        if status != 0:
            raise engine.error_of("dml_launch_values", status)


@functools.lru_cache(maxsize=4096)
def _kernel(text: str) -> Kernel:
    return Kernel(text)


@functools.lru_cache(maxsize=4096)
def kernel(text: str, wide: tuple[str, int] | None = None) -> Program:
    """Return a kernel, the same for the same text."""
    return Program(text, wide)


def empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """Return an uninitialised tensor on the current device."""
    return torch.empty_strided(size, stride, dtype=dtype, device=DEVICE)
