"""Runs actions when a module is imported, and not before: modules that are not used are not
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
    """Call `action` with a module after it was executed: now if it already was, else when it is
    imported.
    """
    module = sys.modules.get(name)
    if module is None:
        _finder.waiting.setdefault(name, []).append(action)
    elif not getattr(module.__spec__, "_initializing", False):
        action(module)
    else:
        # The module is being executed: for example torch, which imported us. Its loader will not be
        # called again.
        _finder.waiting.setdefault(name, []).append(action)
        if type(module.__spec__) is ModuleSpec:
            module.__spec__.__class__ = _SpecOfExecuting


class _SpecOfExecuting(ModuleSpec):
    """The spec of a module that is being executed. Python's import system sets this attribute when
    the execution has ended.
    """

    @property
    def _initializing(self) -> bool:
        return True

    @_initializing.setter
    def _initializing(self, initializing: bool) -> None:
        self.__class__ = ModuleSpec  # type: ignore[assignment]
        self._initializing = initializing
        module = sys.modules.get(self.name)
        if module is not None:  # None if its execution has failed
            _finder.tell(module, self.name)


class _Finder(importlib.abc.MetaPathFinder):
    """Finds modules with pending actions through the other finders, and wraps their loaders to
    learn when they are executed.
    """

    def __init__(self) -> None:
        self.waiting: dict[str, list[Action]] = {}

    def tell(self, module: ModuleType, name: str) -> None:
        """Run the pending actions of a module that was executed."""
        for action in self.waiting.pop(name, []):
            action(module)

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find a module with pending actions, through the finders after this one."""
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
