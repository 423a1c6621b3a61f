"""Does something to a module when it is imported, and nothing before: what is not used is not
loaded.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

Action = Callable[[ModuleType], None]


def when_imported(name: str, action: Action) -> None:
    """Call `action` with a module after it was executed: now where that is done, else once it is
    imported.
    """
    module = sys.modules.get(name)
    if module is None:
        _finder.waiting.setdefault(name, []).append(action)
    elif not getattr(module.__spec__, "_initializing", False):
        action(module)
    else:
        # It is importing torch, and torch imported us. No loader will be asked for it any more.
        _finder.waiting.setdefault(name, []).append(action)
        if type(module.__spec__) is ModuleSpec:
            module.__spec__.__class__ = _SpecOfExecuting


class _SpecOfExecuting(ModuleSpec):
    """The spec of a module that is being executed. Python's import sets this attribute when that
    has ended.
    """

    @property
    def _initializing(self) -> bool:
        return True

    @_initializing.setter
    def _initializing(self, initializing: bool) -> None:
        self.__class__ = ModuleSpec  # type: ignore[assignment]
        self._initializing = initializing
        module = sys.modules.get(self.name)
        if module is not None:  # None where its execution has failed
            _finder.tell(module, self.name)


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find a module that somebody waits for, and has its loader tell when it
    is done.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, list[Action]] = {}

    def tell(self, module: ModuleType, name: str) -> None:
        """Do what waits for a module that was executed."""
        for action in self.waiting.pop(name, []):
            action(module)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find what is waited for, through the finders after this one."""
        if name not in self.waiting:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                break
        else:
            return None
        loader = spec.loader
        if loader is not None:
            execute = loader.exec_module

            def execute_and_tell(module: ModuleType) -> None:
                execute(module)
                self.tell(module, name)

            loader.exec_module = execute_and_tell  # type: ignore[method-assign]
        return spec


_finder = _Finder()
sys.meta_path.insert(0, _finder)
