"""Cases by number: a number says the operator, its arguments, and what is done with it."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from . import elementwise, indexing, lists, networks, products, reductions, samples, schemas
from .calls import Call
from .schemas import Overload

# So many cases one after another are of the same operator, whose kernels and samples are then used again.
BLOCK = 16


# Which overloads are called how.
MAKERS: tuple[tuple[Callable[[Overload], bool], Callable[..., Call]], ...] = (
    (elementwise.is_elementwise, elementwise.make),
    (lambda overload: overload.base in elementwise.LOSSES, elementwise.make),
    (lambda overload: overload.base in reductions.OPERATORS, reductions.make),
    (lambda overload: overload.base in indexing.OPERATORS, indexing.make),
    (lambda overload: overload.base in products.SIZES, products.make),
    (lists.is_of_lists, lists.make),
)


@dataclass(frozen=True)
class Subject:
    """An operator, and what makes calls of it."""

    name: str
    make: Callable[[random.Random], Call]
    is_pointwise: Callable[[], bool] = lambda: False

    @property
    def base(self) -> str:
        """The operator's name without overload: sort of aten::sort.stable, std of std.unbiased."""
        return self.name.removeprefix("aten::").partition(".")[0]


@dataclass(frozen=True)
class Case:
    """A call with a number."""

    number: int
    subject: Subject
    call: Call


@cache
def subjects() -> tuple[Subject, ...]:
    """Everything that is called, in the order of names."""
    found = []
    for overload in schemas.overloads().values():
        for belongs, make in MAKERS:
            if belongs(overload):
                pointwise = partial(elementwise.is_elementwise, overload)
                found.append(Subject(f"aten::{overload.name}", partial(make, overload=overload), pointwise))
                break
    for name in networks.FUNCTIONS:
        found.append(Subject(name, partial(networks.make, name=name)))
    for name in samples.operators():
        found.append(Subject(name, partial(samples.make, name=name), partial(samples.is_pointwise, name)))
    return tuple(sorted(found, key=lambda subject: subject.name))


def subject(number: int) -> Subject:
    """The operator of a case."""
    return random.Random(f"operator {number // BLOCK}").choice(subjects())


def matches(name: str, pattern: str) -> bool:
    """Whether an operator's name has a match of a regular expression."""
    return re.search(pattern, name) is not None


def make(number: int) -> Case:
    """The case of a number, always the same one."""
    chosen = subject(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Case(number, chosen, chosen.make(random.Random(f"case {number}")))
