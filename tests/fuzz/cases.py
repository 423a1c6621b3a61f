"""Cases by number: the number determines the operator, its arguments, and what is done with it."""

from __future__ import annotations

import random
import re
import warnings
from dataclasses import dataclass
from functools import cache, partial

from . import elementwise, families, networks, samples, schemas
from .calls import Call
from .makers import MAKERS
from .subjects import Subject

# Number of consecutive cases with the same operator, which reuse its kernels and samples.
BLOCK = 16


@dataclass(frozen=True)
class Case:
    """A call with its number."""

    number: int
    subject: Subject
    call: Call


@cache
def subjects() -> tuple[Subject, ...]:
    """Everything that is called for numbers below families.SPAN, in the order of names."""
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
    family = families.name_of(number)
    members = subjects() if family == families.FIRST else families.subjects(family)
    return random.Random(f"operator {number // BLOCK}").choice(members)


def matches(name: str, pattern: str) -> bool:
    """Whether a regular expression matches a part of an operator's name."""
    return re.search(pattern, name) is not None


def make(number: int) -> Case:
    """The case of a number, which is always the same."""
    chosen = subject(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Case(number, chosen, chosen.make(random.Random(f"case {number}")))
