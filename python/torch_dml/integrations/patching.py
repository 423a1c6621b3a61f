"""Modifications of a library that are made all together or not at all."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from contextvars import ContextVar
from types import CodeType, FunctionType, ModuleType
from typing import Any

from torch_dml import on_import
from torch_dml.backend import DEVICE

_Action = Callable[[Any], None]


class Changes:
    """The modifications of one library. If one fails, the earlier ones are undone, and no others
    follow.
    """

    def __init__(self, library: str) -> None:
        """Start without modifications."""
        self.library = library
        self.failed = False
        self._undo: list[Callable[[], None]] = []

    def make(self, action: _Action, module: ModuleType) -> None:
        """Call `action` with a module; modifications that it makes through this file are recorded.
        An error becomes a warning.
        """
        if self.failed:
            return
        token = _current.set(self)
        try:
            # A package may have replaced itself in sys.modules.
            action(sys.modules.get(module.__name__, module))
        except Exception as error:
            self.failed = True
            while self._undo:
                self._undo.pop()()
            warnings.warn(
                f"torch-dml leaves {self.library} as it is, it does not look as expected "
                f"({type(error).__name__}: {error}). TORCH_DML_INTEGRATIONS=-{self.library} silences this",
                RuntimeWarning,
                stacklevel=2,
            )
        finally:
            _current.reset(token)

    def remember(self, undo: Callable[[], None]) -> None:
        """Call `undo` if a later modification fails."""
        self._undo.append(undo)


_current: ContextVar[Changes] = ContextVar("changes")


def when_imported(name: str, action: _Action) -> None:
    """Make further modifications when a module of the same library is imported."""
    changes = _current.get()
    on_import.when_imported(name, lambda module: changes.make(action, module))


def remember(undo: Callable[[], None]) -> None:
    """Call `undo` if a later modification of the same library fails."""
    _current.get().remember(undo)


def put(owner: Any, name: str, value: Any) -> None:
    """Set an attribute of a module or class, or an entry of a dict. An attribute has to exist
    already.
    """
    if isinstance(owner, dict):
        entries: Any = owner
        before = entries.get(name, _ABSENT)
        entries[name] = value
        remember(lambda: entries.pop(name) if before is _ABSENT else entries.update({name: before}))
        return
    original = vars(owner)[name]  # not getattr, which resolves static methods and inherited attributes
    setattr(owner, name, value)
    remember(lambda: setattr(owner, name, original))


def take_cuda_branch(function: Any, **helpers: Any) -> None:
    """Redirect a function's branch for CUDA, which this process cannot use, to the device.

    `torch.cuda.device_count()` becomes `torch.dml.device_count()`, and `"cuda:0"` becomes
    `"dml:0"`: in the names and constants of this one function, wherever it was imported to.
    `helpers` replace names of its module that are about CUDA: `is_dml_available` for
    `is_cuda_available`. Raises LookupError for a function without such a branch, and for a missing
    helper.
    """
    function = _innermost(function)
    code = _translated(function.__code__)
    if code == function.__code__:
        raise LookupError(f"{function.__qualname__} has no branch for CUDA")
    for old in _names(function.__code__):
        new = _renamed(old)
        if new != old and old in function.__globals__ and new not in helpers:
            raise LookupError(f"{function.__qualname__} calls {old}")
    for name, helper in helpers.items():
        put(function.__globals__, name, helper)
    original = function.__code__
    function.__code__ = code
    _changed.add(function)
    remember(lambda: setattr(function, "__code__", original))
    remember(lambda: _changed.discard(function))


def has_taken_cuda_branch(function: Any) -> bool:
    """Return whether a function's branch for CUDA was redirected to the device."""
    return _innermost(function) in _changed


_ABSENT = object()
_changed: set[FunctionType] = set()


def _innermost(function: Any) -> FunctionType:
    """Return the function inside of a property, a cache or a decorator."""
    while True:
        inner = [getattr(function, name) for name in ("fget", "func", "__wrapped__") if hasattr(function, name)]
        if not inner:
            assert isinstance(function, FunctionType)
            return function
        function = inner[0]


def put_everywhere(original: Any, replacement: Any) -> None:
    """Replace a function in all of the library's modules that have it, since it may be imported by
    name.
    """
    library = original.__module__.partition(".")[0]
    for name, module in list(sys.modules.items()):
        if name == library or name.startswith(f"{library}."):
            for attribute, value in list(vars(module).items()):
                if value is original:
                    put(vars(module), attribute, replacement)


def _renamed(word: str) -> str:
    # A whole word, or a part of a name: torch.cuda, is_cuda_available, CUDAAccelerator. Not in a
    # path.
    if "/" in word:
        return word
    word = re.sub(r"(?<![A-Za-z])cuda(?![A-Za-z])", DEVICE, word)
    return re.sub(r"(?<![A-Za-z])CUDA(?![a-z])", DEVICE.upper(), word)


def _translated(code: CodeType) -> CodeType:
    # A name with dots is an imported module: the library's own modules are not renamed.
    names = tuple(name if "." in name else _renamed(name) for name in code.co_names)
    return code.replace(co_names=names, co_consts=tuple(map(_translated_constant, code.co_consts)))


def _translated_constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _translated(value)
    if isinstance(value, str):
        return _renamed(value)
    if isinstance(value, tuple | frozenset):
        # Whole words only, since a call's keyword names, such as include_cuda, are a tuple too.
        return type(value)(_renamed(item) if re.match(r"cuda(:|$)", str(item)) else item for item in value)
    return value


def _names(code: CodeType) -> set[str]:
    inner = [_names(value) for value in code.co_consts if isinstance(value, CodeType)]
    return {name for name in code.co_names if "." not in name}.union(*inner)
