"""What Python runs when it starts, by the line in `tensorflow_dml.pth`: it makes Keras know what
the device can do, should the program import Keras.

TensorFlow loads the device itself, from `tensorflow-plugins`.
"""

from __future__ import annotations

import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_KERAS = "keras.src.trainers.trainer"


class _Finder(importlib.abc.MetaPathFinder):
    """Finds Keras' trainer through the other finders, and adapts it after its execution."""

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Find the trainer, once."""
        if name != _KERAS:
            return None
        sys.meta_path.remove(self)
        specs = (finder.find_spec(name, path, target) for finder in sys.meta_path)
        spec = next((spec for spec in specs if spec is not None), None)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_and_adapt(module: ModuleType) -> None:
                execute(module)
                _adapt(module)

            spec.loader.exec_module = execute_and_adapt  # type: ignore[method-assign]
        return spec


def _adapt(trainer: ModuleType) -> None:
    from tensorflow_dml import keras

    keras.adapt(trainer)


def start() -> None:
    """Adapt Keras now if it is imported, else when it is. A second call changes nothing."""
    trainer = sys.modules.get(_KERAS)
    if trainer is not None:
        _adapt(trainer)
    elif not any(type(finder).__module__ == __name__ for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


start()
