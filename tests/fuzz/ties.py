"""Results that select one of several equal elements: which one is not specified, nor what depends
on it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch

from ..opinfo.execution import tensors
from ..opinfo.judging import named
from .calls import Call
from .judging import Difference
from .outcome import Flat, Outcome


@dataclass(frozen=True)
class Ties:
    """An operator's call, and its outcomes on the CPU and on the device."""

    call: Call
    want: Outcome
    got: Outcome

    def explain(self, difference: Difference) -> bool:
        """Whether only the order of equal elements differs."""
        label, _, kind = difference.kind.rpartition(": ")
        if kind == "zero sign" and label in ("", "argument"):
            return True
        if kind not in ("value", "zero sign"):
            return False
        return self._of_gradients(difference) if "gradient" in label else self._of_indices(difference)

    def _of_indices(self, difference: Difference) -> bool:
        expected, actual = self.want.results[-1], self.got.results[-1]
        if not isinstance(expected, Flat) or not isinstance(actual, Flat) or expected.shape != actual.shape:
            return False
        last = f"results {len(self.want.results) - 1}:"
        if "inf" in difference.message or (difference.kind == "value" and not difference.message.startswith(last)):
            return False
        return self._named_alike()

    def _named_alike(self) -> bool:
        """Whether the last results are different indices of equal elements."""
        expected, actual = self.want.results[-1], self.got.results[-1]
        if not isinstance(expected, Flat) or not isinstance(actual, Flat) or expected.dtype != torch.int64:
            return False
        source = self.call.tensors()[0]
        if source.dim() == 0:
            return True
        if expected.data == actual.data or len(expected.shape) not in (source.dim(), source.dim() - 1):
            return False
        pairs = zip(*(named(source, flat.values.reshape(flat.shape)) for flat in (expected, actual)), strict=True)
        return any(a is not None and b is not None and _equal(a, b) for a, b in pairs)

    def _of_gradients(self, difference: Difference) -> bool:
        """Whether equal elements have the same gradients, in some order."""
        found = re.match(r"(gradients|second) (\d+):", difference.message)
        if found is None:
            return False
        leaves = [tensor for tensor in tensors((self.call.args, self.call.kwargs)) if tensor.requires_grad]
        floats = [result for result in self.want.results if isinstance(result, Flat) and result.dtype.is_floating_point]
        of = [leaf.detach().reshape(-1) for leaf in leaves] + [result.values for result in floats]
        index = int(found[2])
        one, other = (getattr(outcome, found[1])[index] for outcome in (self.want, self.got))
        if index >= len(of) or not isinstance(one, Flat) or not isinstance(other, Flat):
            return False
        if _equal(*(_paired(of[index], gradient.values) for gradient in (one, other))):
            return True
        # The gradient of a gradient belongs to another element.
        return found[1] == "second" and self._named_alike()


def _paired(elements: torch.Tensor, gradients: torch.Tensor) -> torch.Tensor:
    """Pairs of an element and its gradient, sorted."""
    order = torch.argsort(gradients, stable=True)
    order = order[torch.argsort(elements[order], stable=True)]
    return torch.stack((elements[order].double(), gradients[order].double()))


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(((one == other) | (one.isnan() & other.isnan())).all())
