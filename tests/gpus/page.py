"""The page of what compilers make of the kernels: docs/reference/gpus.md."""

from __future__ import annotations

import re
import statistics
import textwrap
from collections.abc import Sequence

from torch_dml.cli.kernels import Program

from .compiling import Compiled
from .families import FAMILIES, family
from .main_loops import SUBJECTS, Loops, Reason, goal, reasons, reasons_for

HEAD = """<!-- Written by `make gpus`: do not edit. -->

# GPUs and their compilers

What the drivers' compilers make of the engine's kernels, for GPUs that need not be at hand: Mesa's
drivers compile to each GPU's machine code, and nothing is run.

The kernels are those of every call of an operator that the tests make{bench}
({tests}). A cell is `kernels / spilling`, and where some spill, the most spills in one kernel: such
a kernel keeps values in memory that belong in registers. Calls with float64 are left out on GPUs
without it: compiled in software, a power of float64 takes minutes there. `tests/gpus/known.toml`
says why kernels spill. Most convolutions are kernels of products.

"""


LOOPS = """## Main loops

What the innermost loop of a kernel spends its issue slots on, read from the machine code (`python
-m tests.gpus --loops` lists every kernel): the share of multiply-adds, and in brackets the loads
from shared memory for each multiply-add of a lane. Where matrix units are used, marked `m`, the
share of matrix instructions, and the loads for each. A cell is the kernel with the least share,
among the layouts of a product of 2048 cubed, the passes of causal attention with heads of 64, and
those of a convolution and its gradients. `tests/gpus/loops.py` says what a slot is: a matrix
instruction is one, though it keeps its unit busy for 8 to 32 cycles. An empty cell: no such loop
was found.

"""


def text(found: Sequence[Compiled], loops: Sequence[Loops], tests: str = "all tests", *, bench: bool = True) -> str:
    """The page. `tests` names those whose kernels were compiled."""
    driver = sorted({program.driver for compiled in found for program in compiled.programs})
    parts = [
        HEAD.format(tests=tests, bench=", and of `bench --quick`" if bench else ""),
        _table(found),
        "\n## Occupancy\n\nSubgroups that a compute unit, or the part of it that the driver counts",
    ]
    parts.append(", holds at a time: the fewest / the median over kernels.\n\n")
    parts.append(_occupancy(found))
    parts.append(f"\n{_loops(loops)}")
    parts.append("\nDrivers: " + "; ".join(driver) + ".\n")
    return "".join(parts)


def with_loops(page: str, loops: Sequence[Loops]) -> str:
    """A page with these main loops in place of its own. Raises ValueError if it is not the page."""
    before, drivers, after = page.rpartition("\nDrivers: ")
    if not drivers:
        raise ValueError("the page does not end with its drivers")
    before = re.split(r"^## Main loops\n", before, maxsplit=1, flags=re.M)[0].rstrip("\n")
    return f"{before}\n\n{_loops(loops)}{drivers}{after}"


def _loops(found: Sequence[Loops]) -> str:
    rows = [[f"{loops.gpu}: {loops.adapter}", *(_share(loops, subject) for subject in SUBJECTS)] for loops in found]
    known = reasons()
    lines = [line for reason in known if (line := _reason(reason, found, known))]
    between = "\nWhat stands between these loops and more work:\n\n" + "".join(lines) if lines else ""
    return LOOPS + _markdown(["GPU", *SUBJECTS], rows) + between


def _share(loops: Loops, subject: str) -> str:
    kernels = loops.of(subject)
    if not kernels:
        return ""
    loop = kernels[0].loop
    return f"{loop.share:.2f} ({loop.loads:.2f})" + (" m" if loop.uses_matrix_units else "")


def _reason(reason: Reason, found: Sequence[Loops], known: Sequence[Reason]) -> str:
    subjects = [subject for subject in SUBJECTS if reason.subjects.fullmatch(subject)]
    gpus = [
        loops.gpu
        for loops in found
        if any(
            reason in reasons_for(loops.gpu, subject, known)
            and any(kernel.loop.share < goal(loops.gpu) for kernel in loops.of(subject))
            for subject in subjects
        )
    ]
    if not gpus:
        return ""
    text = f"- {', '.join(gpus)}; {', '.join(subjects)}: {' '.join(reason.text.split())}"
    return textwrap.fill(text, 100, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False) + "\n"


def _table(found: Sequence[Compiled]) -> str:
    head = ["GPU", "all", *FAMILIES]
    rows = [[_name(compiled), *map(_cell, _by_family(compiled))] for compiled in found]
    return _markdown(head, rows)


def _occupancy(found: Sequence[Compiled]) -> str:
    rows = []
    for compiled in found:
        cells = []
        for programs in _by_family(compiled):
            waves = [program.waves for program in programs if program.waves is not None]
            cells.append(f"{min(waves)} / {statistics.median_low(waves)}" if waves else "")
        if any(cells):
            rows.append([_name(compiled), *cells])
    return _markdown(["GPU", "all", *FAMILIES], rows)


def _name(compiled: Compiled) -> str:
    return f"{compiled.gpu}: {compiled.adapter}"


def _by_family(compiled: Compiled) -> list[list[Program]]:
    groups: dict[str, list[Program]] = {name: [] for name in FAMILIES}
    for program in compiled.programs:
        groups[family(program)].append(program)
    return [compiled.programs, *groups.values()]


def _cell(programs: Sequence[Program]) -> str:
    kernels = len({program.id for program in programs})
    spilling = [program for program in programs if program.spills]
    worst = max((program.spills or 0 for program in spilling), default=0)
    count = len({program.id for program in spilling})
    return f"{kernels} / {count}" + (f" ({worst})" if worst else "")


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
