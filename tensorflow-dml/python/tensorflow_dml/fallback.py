"""Operators that run on the CPU because the device has no kernel for them.

TensorFlow's soft placement, which is on in eager mode, puts them there without a word. Python sees
each operator that is executed eagerly, and each that is put into a graph of `tf.function`; not
those in graphs that are loaded from a file, or that other threads make.
"""

from __future__ import annotations

import functools
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

_counts: Counter[str] = Counter()
# Graphs of functions that TensorFlow runs on the CPU whatever kernels there are.
_DATASETS = ("Dataset",)
_OF_THE_CPU = ("string", "resource", "variant")


def fallbacks() -> dict[str, int]:
    """Return how often each operator ran on the CPU for lack of a kernel since `watch_fallbacks`.

    An operator in a graph counts once for each time that the graph is traced, however often it
    runs.
    """
    return dict(_counts)


def reset_fallbacks() -> None:
    """Set the counts back to 0."""
    _counts.clear()


def watch_fallbacks() -> None:
    """Count the operators of this thread that run on the CPU for lack of a kernel, and warn of each
    one the first time. A second call changes nothing.
    """
    from tensorflow.python.eager import context
    from tensorflow.python.framework import op_callbacks

    if _see not in context.context().op_callbacks:
        op_callbacks.add_op_callback(_see)


def _see(
    operator: str | bytes,
    inputs: Sequence[Any],
    attributes: Sequence[Any] | None,
    outputs: Sequence[Any],
    op_name: str | None = None,
    graph: Any = None,
) -> None:
    """TensorFlow's call for each operator."""
    from tensorflow.python.eager import context

    # What is not of numbers is the CPU's, and what changes variables never falls back.
    if not outputs or any(tensor.dtype in _OF_THE_CPU for tensor in (*inputs, *outputs)):
        return
    if _is_asked_for_cpu(context.context().device_name):
        return
    if graph is None:
        if not any(_is_asked_for_cpu(tensor.device) for tensor in outputs):
            return
    # Only the graphs of functions have names.
    elif getattr(graph, "name", "").startswith(_DATASETS) or _is_asked_for_cpu(outputs[0].op.device):
        return
    operator = operator.decode() if isinstance(operator, bytes) else operator
    kernels = _kernels(operator)
    given = _types(attributes or (), kernels.attributes)
    if kernels.lack(given):
        if operator not in _counts:
            warnings.warn(
                f"tensorflow-dml has no kernel of {operator} for {_names(given)}: it runs on the CPU",
                RuntimeWarning,
                stacklevel=2,
            )
        _counts[operator] += 1


def _is_asked_for_cpu(device: str | None) -> bool:
    return device is not None and "CPU:" in device.upper()


class _Kernels(NamedTuple):
    """The kernels of an operator: for each the dtypes of its attributes, by number."""

    cpu: list[dict[str, set[int]]]
    device: list[dict[str, set[int]]]

    @property
    def attributes(self) -> set[str]:
        """The names of the attributes that choose a kernel."""
        return {name for kernel in self.cpu + self.device for name in kernel}

    def lack(self, given: dict[str, int]) -> bool:
        """Whether the CPU has a kernel for these dtypes, and the device none."""

        def has(kernels: list[dict[str, set[int]]]) -> bool:
            # A missing attribute is a list of dtypes, which no kernel here is chosen by.
            return any(all(given.get(a) is None or given[a] in allowed for a, allowed in k.items()) for k in kernels)

        return has(self.cpu) and not has(self.device)


def _types(attributes: Sequence[Any], wanted: set[str]) -> dict[str, int]:
    """The attributes that are one dtype and choose a kernel, by name: their dtypes' numbers."""
    import tensorflow as tf
    from tensorflow.core.framework import attr_value_pb2

    found = {}
    for name, value in zip(attributes[::2], attributes[1::2], strict=False):
        if isinstance(value, attr_value_pb2.AttrValue):
            value = value.type if value.HasField("type") else None
        if isinstance(value, tf.DType):
            value = value.as_datatype_enum
        if name in wanted and isinstance(value, int) and value != 0:
            found[str(name)] = value
    return found


def _names(given: dict[str, int]) -> str:
    import tensorflow as tf

    return ", ".join(f"{name}={tf.as_dtype(number).name}" for name, number in given.items()) or "its arguments"


@functools.cache
def _kernels(operator: str) -> _Kernels:
    from tensorflow.python.framework import kernels

    registered = kernels.get_registered_kernels_for_op(operator).kernel

    def of(*device_types: str) -> list[dict[str, set[int]]]:
        return [
            {constraint.name: set(constraint.allowed_values.list.type) for constraint in kernel.constraint}
            for kernel in registered
            if kernel.device_type in device_types
        ]

    return _Kernels(of("CPU"), of("GPU", "DML", "DEFAULT"))
