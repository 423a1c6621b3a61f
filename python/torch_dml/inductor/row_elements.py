"""Reductions whose invocations have several elements of a row at a time. Loads of several elements
are on their way at once, and a row that fits the registers is read once.

The elements of an invocation are as far apart as a row has invocations. Its sums have the order of
a loop with one element a turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from torch_dml.inductor.costs import long_calls
from torch_dml.inductor.lanes import Accesses, Repeated, renamed

# Elements of a row that an invocation should keep in registers, and has at most.
KEPT = 8
MOST_KEPT = 16
# Words that all its elements of all tensors may have together. Gen9 has 128 registers for an
# invocation of 8, and float64 functions take many.
MOST_WORDS = 32
# Elements of a turn of a loop, and those of 16 bits.
TURN = 4
TURN_OF_HALVES = 8
# Functions, unless they are short, of all elements of a turn: code beyond that takes long to
# compile.
MOST_CALLS = 64

# Comments around the loop over a row.
ROW, END_OF_ROW = "// row", "// end of the row"
# Comments around what invocations compute for their rows, between what they compute for elements.
TOGETHER, APART = "// together", "// apart"


def in_registers(lines: Sequence[str], first: Sequence[str], lanes: int, along: int, kind: str) -> list[str]:
    """Return the lines of a kernel that keeps a row, for so many elements of an invocation.
    `first` are the lines that compute the position of one. `along` invocations have a row.
    """
    if lanes == 1:
        return [*first, *lines]
    repeated = Repeated(Accesses(), lanes, kind)
    repeated.begin("%rfirst", along)
    section, together = list(first), False
    for line in [*lines, TOGETHER]:
        if line not in (TOGETHER, APART):
            section.append(line)
            continue
        if together:
            repeated.once(section)
        else:
            repeated.repeat(section)
        section, together = [], line == TOGETHER
    return repeated.text()


def unrolled(lines: Sequence[str], numel: str, static: int | None, along: int, widest: int, kind: str) -> list[str]:
    """Return the lines of a kernel with loops over rows, whose turns have several elements. `numel`
    is a row's number of elements, a literal or a value, `static` the same if it is known, and
    `widest` the size of the largest dtype.
    """
    found: list[str] = []
    at, number = 0, 0
    while at < len(lines):
        if lines[at] != ROW:
            found.append(lines[at])
            at += 1
            continue
        end = lines.index(END_OF_ROW, at)
        begin, *head = lines[at + 1 : at + 6]
        index, content, tail = lines[at + 6], lines[at + 7 : end - 3], lines[end - 3 : end]
        at = end + 1
        count = _turn(content, static, along, widest)
        loop, more, *condition = head
        plain = [*head, index, *content, *tail]
        if count == 1:
            found += [begin, *plain]
            continue
        number += 1
        repeated = Repeated(Accesses(), count, kind)
        repeated.begin("%r0_index", along)
        repeated.repeat(content)
        following, *rest = tail
        found += [
            f"%rlimit{number}: {kind} = sub {numel}, {(count - 1) * along}:{kind}",
            begin,
            *(loop, more, *(line.replace(numel, f"%rlimit{number}") for line in condition), index),
            *repeated.text(),
            following.replace(f", {along}:", f", {along * count}:"),
            *rest,
        ]
        if static is None or static % (along * count):
            found += renamed(plain, f"_rest{number}")
    return found


def _turn(content: Sequence[str], static: int | None, along: int, widest: int) -> int:
    """Return how many elements a turn has."""
    if any("atomic" in line for line in content):
        return 1
    count = TURN_OF_HALVES if widest <= 2 else TURN
    most = count if static is None else static // along
    calls = long_calls(content)
    while count > 1 and (count > most or calls * count > MOST_CALLS):
        count //= 2
    return count
