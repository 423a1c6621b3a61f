"""The functions that create calls of overloads."""

from __future__ import annotations

from collections.abc import Callable

from . import elementwise, indexing, lists, products, reductions
from .calls import Call
from .schemas import Overload

MAKERS: tuple[tuple[Callable[[Overload], bool], Callable[..., Call]], ...] = (
    (elementwise.is_elementwise, elementwise.make),
    (lambda overload: overload.base in elementwise.LOSSES, elementwise.make),
    (lambda overload: overload.base in reductions.OPERATORS, reductions.make),
    (lambda overload: overload.base in indexing.OPERATORS, indexing.make),
    (lambda overload: overload.base in products.SIZES, products.make),
    (lists.is_of_lists, lists.make),
)
