"""Autocast in code of PyTorch that does not pass the device's name."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef, _cast
from torch.torch_version import TorchVersion

from torch_dml.backend import DEVICE
from torch_dml.on_import import when_imported

_KEY = "AutocastPrivateUse1"


def install() -> None:
    """Let autocast queries without a device argument, which are about CUDA, include the device."""
    # Attention modules query it to decide whether operators that do not support autocast have to be
    # avoided, nn.DataParallel to set the same state in its threads.
    _replace("is_autocast_enabled", _is_enabled)
    _replace("set_autocast_enabled", _set_enabled)
    _replace("get_autocast_gpu_dtype", _get_dtype)
    _replace("set_autocast_gpu_dtype", _set_dtype)
    if TorchVersion(torch.__version__) < "2.13":
        _admit_to_register_autocast()
    _let_higher_order_operators_pass()
    when_imported("torch._higher_order_ops.flex_attention", _cast_for_flex_attention)


def _replace(name: str, own: Callable[[Any], Any]) -> None:
    original = getattr(torch._C, name)
    replacement = functools.wraps(original)(own(original))
    # torch.compile has a rule for each function by its name in torch._C, TorchScript an operator by
    # the function object.
    for module in (torch, torch._C):
        setattr(module, name, replacement)
    torch.jit._builtins._register_builtin(replacement, f"aten::{name}")


def _is_enabled(original: Callable[..., bool]) -> Callable[..., bool]:
    def is_autocast_enabled(*device: Any, **named: Any) -> bool:
        if device or named:
            return original(*device, **named)
        return original(DEVICE) or original()

    return is_autocast_enabled


def _set_enabled(original: Callable[..., None]) -> Callable[..., None]:
    def set_autocast_enabled(*arguments: Any, **named: Any) -> None:
        original(*arguments, **named)
        if len(arguments) + len(named) == 1:
            original(DEVICE, *arguments, **named)

    return set_autocast_enabled


def _get_dtype(original: Callable[[], torch.dtype]) -> Callable[[], torch.dtype]:
    def get_autocast_gpu_dtype() -> torch.dtype:
        dtype = original()
        return torch.get_autocast_dtype(DEVICE) if torch.is_autocast_enabled(DEVICE) else dtype

    return get_autocast_gpu_dtype


def _set_dtype(original: Callable[[torch.dtype], None]) -> Callable[[torch.dtype], None]:
    def set_autocast_gpu_dtype(dtype: torch.dtype) -> None:
        original(dtype)
        torch.set_autocast_dtype(DEVICE, dtype)

    return set_autocast_gpu_dtype


def _admit_to_register_autocast() -> None:
    """Let torch.library.register_autocast accept the device, as it does from torch 2.13 on; earlier
    versions have a list of devices.
    """
    register: Callable[..., None] = torch.library.register_autocast
    method: Callable[..., None] = CustomOpDef.register_autocast

    @functools.wraps(register)
    def register_autocast(op: Any, device_type: str, cast_inputs: torch.dtype, /, *, lib: Any = None) -> None:
        if device_type != DEVICE:
            return register(op, device_type, cast_inputs, lib=lib)
        name = op._qualname if isinstance(op, CustomOpDef) else op._name if not isinstance(op, str) else op
        return _register(name, cast_inputs, lib)

    @functools.wraps(method)
    def register_of_own(self: Any, device_type: str, cast_inputs: torch.dtype) -> None:
        if device_type != DEVICE:
            return method(self, device_type, cast_inputs)
        return _register(self._qualname, cast_inputs, None)

    torch.library.register_autocast = register_autocast
    CustomOpDef.register_autocast = register_of_own  # type: ignore[method-assign]


# Libraries, referenced here so that their kernels stay registered.
_libraries: list[torch.library.Library] = []


def _register(name: str, dtype: torch.dtype, lib: torch.library.Library | None) -> None:
    op = torch._library.utils.lookup_op(name)
    namespace, bare_name = torch._library.utils.parse_namespace(name)
    if lib is None:
        lib = torch.library.Library(namespace, "FRAGMENT")
        _libraries.append(lib)
    key = torch._C.DispatchKeySet(getattr(torch._C.DispatchKey, _KEY))

    def kernel(*arguments: Any) -> Any:
        with torch._C._ExcludeDispatchKeyGuard(key):
            return op(*_cast(arguments, DEVICE, dtype))

    lib.impl(bare_name, kernel, _KEY)


def _let_higher_order_operators_pass() -> None:
    """Let higher-order operators, as torch.cond, run under autocast: torch has a list of keys that
    they ignore.
    """
    key = getattr(torch._C.DispatchKey, _KEY)
    ignored = torch._ops._HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS
    if key not in ignored:
        ignored.append(key)
        for operator in torch._ops._higher_order_ops.values():
            operator.fallthrough(key)


def _cast_for_flex_attention(module: ModuleType) -> None:
    """Let flex_attention cast queries, keys and values, as it does for CUDA."""
    operator, key = module.flex_attention, getattr(torch._C.DispatchKey, _KEY)
    if key in operator.py_kernels:
        return

    @operator.py_impl(key)  # type: ignore[untyped-decorator]
    def flex_attention(*arguments: Any) -> Any:
        tensors = _cast(arguments[:3], DEVICE, torch.get_autocast_dtype(DEVICE))
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(key)):
            return operator(*tensors, *arguments[3:])
