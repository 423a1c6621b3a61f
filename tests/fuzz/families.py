"""Families of subjects with separate case numbers: complex numbers, Fourier transforms, sparse
tensors, linear algebra, and random numbers.

Each family has its own range of numbers, from a multiple of SPAN on, so that neither its cases nor
those below SPAN change when another one is added.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache, partial

from ..opinfo.tasks import operators
from . import decompositions, draws, elementwise, fourier, samples, schemas, sparse, values
from .calls import Call
from .makers import MAKERS
from .subjects import Subject

# Size of each family's range of numbers; the first range is for real numbers.
SPAN = 10**9
FIRST = "real"
# Families of OpInfo's operators that the decompositions, or the transforms, cover.
NOT_COMPLEX = ("linalg.", "fft.", "torch.ops.aten._fft", "stft", "istft")


def _in_complex(make: Callable[..., Call], rng: random.Random) -> Call:
    with values.complex_numbers():
        return make(rng)


def _complex() -> list[Subject]:
    """Overloads and samples of operators that accept complex numbers, with complex arguments."""
    import torch

    infos = {name: op for name, op in operators().items() if torch.complex64 in op.dtypes}
    names = {part for op in infos.values() for part in (op.name, op.aten_name, f"_{op.name}")}
    names |= {"copy", "where", "fill", "zero", "conj_physical", "addmv", "addr", "addbmm", "baddbmm", "dot", "vdot"}
    found = []
    for overload in schemas.overloads().values():
        for belongs, make in MAKERS:
            if belongs(overload) and overload.base.removeprefix("_foreach_") in names:
                maker = partial(_in_complex, partial(make, overload=overload))
                pointwise = partial(elementwise.is_elementwise, overload)
                found.append(Subject(f"complex aten::{overload.name}", maker, pointwise, zero_signs=False))
                break
    for name in samples.operators():
        if name in infos and not name.startswith(NOT_COMPLEX):
            maker = partial(_in_complex, partial(samples.make, name=name))
            pointwise = partial(samples.is_pointwise, name)
            found.append(Subject(f"complex {name}", maker, pointwise, zero_signs=False))
    return found


def _named(names: tuple[str, ...], make: Callable[..., Call], drawn: bool = False) -> list[Subject]:
    return [Subject(name, partial(make, name=name), strides=drawn, zero_signs=False, drawn=drawn) for name in names]


MEMBERS: dict[str, Callable[[], list[Subject]]] = {
    "complex": _complex,
    "fft": lambda: _named(fourier.NAMES, fourier.make),
    "sparse": lambda: _named(sparse.NAMES, sparse.make),
    "linalg": lambda: _named(decompositions.NAMES, decompositions.make),
    "random": lambda: _named(draws.NAMES, draws.make, drawn=True),
}
NAMES = (FIRST, *MEMBERS)


def name_of(number: int) -> str:
    """The family of a number."""
    return NAMES[min(number // SPAN, len(NAMES) - 1)]


@cache
def subjects(family: str) -> tuple[Subject, ...]:
    """The subjects of a family, in the order of names."""
    return tuple(sorted(MEMBERS[family](), key=lambda subject: subject.name))


class Interleaved:
    """Numbers of several families, one block of each in turn."""

    def __init__(self, families: list[str], start: int, count: int, block: int) -> None:
        """`count` numbers, in each family from the number `start` on."""
        self.bases = [NAMES.index(family) * SPAN + start for family in families]
        self.count, self.block = count, block

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, chosen: slice | int) -> list[int] | int:
        if isinstance(chosen, slice):
            return [self._number(index) for index in range(*chosen.indices(self.count))]
        return self._number(chosen)

    def _number(self, index: int) -> int:
        block, rest = divmod(index, self.block)
        turn, family = divmod(block, len(self.bases))
        return self.bases[family] + turn * self.block + rest
