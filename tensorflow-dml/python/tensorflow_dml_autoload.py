"""What Python runs when it starts, by the line in `tensorflow_dml.pth`: it adapts two modules,
should the program import them. Keras learns what the device can do, and TensorFlow's context what
it does not ask a plugin for.

TensorFlow loads the device itself, from `tensorflow-plugins`.
"""

from __future__ import annotations

import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Which module of the package has the function `adapt` for a module of Keras or TensorFlow.
_ADAPTED = {
    "keras.src.trainers.trainer": "tensorflow_dml.keras",
    "tensorflow.python.eager.context": "tensorflow_dml.context",
}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds those modules through the other finders, and adapts each after its execution."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find one of the modules."""
        if name not in _ADAPTED:
            return None
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path if finder is not self)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_adapt(module: ModuleType) -> None:
                execute(module)
                _adapt(name, module)

            spec.loader.exec_module = execute_and_adapt  # type: ignore[method-assign]
        return spec


def _adapt(name: str, module: ModuleType) -> None:
    importlib.import_module(_ADAPTED[name]).adapt(module)


def start() -> None:
    """Adapt what is imported now, and the rest when it is. A second call changes nothing."""
    imported = [name for name in _ADAPTED if name in sys.modules]
    for name in imported:
        _adapt(name, sys.modules[name])
    if len(imported) < len(_ADAPTED) and not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


start()
