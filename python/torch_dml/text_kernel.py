"""User-written kernels, in the engine's kernel language.

The rustdoc of `dml_kernel::text` is the language's reference; `examples/own_kernel.py` is an
example.
"""

from __future__ import annotations

import ctypes
import operator
import struct
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from torch_dml import abi, engine
from torch_dml.backend import DEVICE
from torch_dml.device import DeviceLike, index_of

__all__ = ["Kernel", "kernel"]

_DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "u16": torch.uint16,
    "i16": torch.int16,
    "u32": torch.uint32,
    "i32": torch.int32,
    "u64": torch.uint64,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8e4m3fn": torch.float8_e4m3fn,
    "f8e5m2": torch.float8_e5m2,
    "f8e4m3fnuz": torch.float8_e4m3fnuz,
    "f8e5m2fnuz": torch.float8_e5m2fnuz,
}
# Formats of the module struct.
_NUMBERS = {"i32": "=i", "u32": "=I", "i64": "=q", "u64": "=Q", "f32": "=f", "f64": "=d"}


class Kernel:
    """A kernel that was written as text. Calling it enqueues a launch.

    Its arguments are the parameters of the text in their order: tensors, of which it reads inputs
    and writes outputs, and numbers. It accesses a tensor's memory from the first element on, and
    has to handle strides itself. It is compiled for each device with whose tensors it is called;
    one text is compiled once for a device. Autograd does not see what it computes.
    """

    def __init__(self, text: str, device: DeviceLike = None) -> None:
        """Parse a text, and compile it for a first device; the current one by default.

        Raises ValueError, beginning with line and column, if the text is not a kernel, and
        NotImplementedError if the adapter lacks a feature that the kernel needs.
        """
        self._text = text
        self._handles: dict[int, int] = {}
        interface = engine.kernel_interface(self._handle(index_of(device)))
        self.name: str = interface["name"]
        self.workgroup: tuple[int, int, int] = tuple(interface["workgroup"])
        self._bytes: int = interface["bytes"]
        self._params: list[dict[str, Any]] = interface["params"]

    def __repr__(self) -> str:
        """Return the kernel's name and parameters."""
        params = ", ".join(f"{param['kind']} {param['name']}: {param['dtype']}" for param in self._params)
        return f"<kernel {self.name} ({params})>"

    def __call__(self, *arguments: torch.Tensor | float, groups: int | Sequence[int]) -> None:
        """Enqueue a launch of `groups` workgroups: up to three numbers, one for each dimension.

        Raises TypeError if an argument is not of the parameter's kind and dtype, ValueError if a
        number is out of its range, and RuntimeError if tensors are on different devices.
        """
        if len(arguments) != len(self._params):
            raise TypeError(f"{self.name} takes {len(self._params)} arguments, not {len(arguments)}")
        block = ctypes.create_string_buffer(max(self._bytes, 1))
        device: torch.device | None = None
        reads: list[abi.DmlRange] = []
        writes: list[abi.DmlRange] = []
        written: list[torch.Tensor] = []
        for param, argument in zip(self._params, arguments, strict=True):
            if param["kind"] == "param":
                _pack_number(self.name, param, argument, block)
                continue
            tensor = _tensor(self.name, param, argument)
            if device is not None and tensor.device != device:
                raise RuntimeError(f"{self.name}: {param['name']} is on {tensor.device}, and others are on {device}")
            device = tensor.device
            extent = _extent(tensor)
            struct.pack_into("=Q", block, param["offset"], extent.address)
            if param["kind"] == "output":
                written.append(tensor)
            (writes if param["kind"] == "output" else reads).append(extent)
        index = torch.accelerator.current_device_index() if device is None else device.index
        launch = abi.DmlLaunch(
            ctypes.addressof(block),
            self._bytes,
            (abi.DmlRange * len(reads))(*reads),
            len(reads),
            (abi.DmlRange * len(writes))(*writes),
            len(writes),
            (ctypes.c_uint32 * 3)(*_groups(self.name, groups)),
        )
        engine.call("dml_launch", index, self._handle(index), ctypes.byref(launch))
        for tensor in written:
            if not tensor.is_inference():  # Inference tensors have no version counters.
                torch.autograd.graph.increment_version(tensor)

    def _handle(self, device: int) -> int:
        handle = self._handles.get(device)
        if handle is None:
            text = self._text.encode()
            made = ctypes.c_uint64(0)
            engine.call("dml_kernel_from_text", device, text, len(text), ctypes.byref(made))
            handle = self._handles[device] = made.value
            finalizer = weakref.finalize(self, engine.library().dml_kernel_free, handle)
            finalizer.atexit = False  # The process's memory is freed with it.
        return handle


def kernel(text: str, device: DeviceLike = None) -> Kernel:
    """Return the kernel of a text: see :class:`Kernel`."""
    return Kernel(text, device)


def _tensor(name: str, param: dict[str, Any], argument: object) -> torch.Tensor:
    """Return the argument as a tensor, checked against the parameter."""
    what = f"{name}: {param['name']}"
    dtype = _DTYPES[param["dtype"]]
    if not isinstance(argument, torch.Tensor):
        raise TypeError(f"{what} is a tensor of {dtype}, not {type(argument).__name__}")
    if argument.dtype != dtype:
        raise TypeError(f"{what} is a tensor of {dtype}, not of {argument.dtype}")
    if argument.device.type != DEVICE or argument.layout != torch.strided:
        raise RuntimeError(f"{what} is a dense tensor on {DEVICE}, not a {argument.layout} one on {argument.device}")
    if argument.is_neg():
        raise RuntimeError(f"{what} is negated when it is read: give it resolve_neg() of the tensor")
    if argument.requires_grad and torch.is_grad_enabled():
        raise RuntimeError(f"{what} requires grad, and autograd does not see a kernel: call it under torch.no_grad()")
    return argument


def _extent(tensor: torch.Tensor) -> abi.DmlRange:
    """Return the address range from a tensor's first element to its last one."""
    if tensor.numel() == 0:
        return abi.DmlRange(0, 0)
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return abi.DmlRange(tensor.data_ptr(), (last + 1) * tensor.element_size())


def _pack_number(name: str, param: dict[str, Any], argument: object, block: Any) -> None:
    what = f"{name}: {param['name']}"
    dtype = param["dtype"]
    if dtype in ("f32", "f64"):
        if not isinstance(argument, int | float):
            raise TypeError(f"{what} is a number of type {dtype}, not {type(argument).__name__}")
        number: int | float = float(argument)
    else:
        try:
            number = operator.index(argument)  # type: ignore[arg-type]
        except TypeError:
            raise TypeError(f"{what} is an integer of type {dtype}, not {type(argument).__name__}") from None
    try:
        struct.pack_into(_NUMBERS[dtype], block, param["offset"], number)
    except (struct.error, OverflowError):
        raise ValueError(f"{what}: {number} is out of the range of {dtype}") from None


def _groups(name: str, groups: int | Sequence[int]) -> list[int]:
    counts = [groups] if isinstance(groups, int) else list(groups)
    if not 1 <= len(counts) <= 3 or any(not isinstance(n, int) or not 0 <= n < 1 << 32 for n in counts):
        raise ValueError(f"{name}: groups are one to three numbers from 0 to 2**32 - 1, not {groups}")
    return counts + [1] * (3 - len(counts))
