"""The main loop of a kernel, from the machine code that a driver shows.

A loop is what lies between a branch backwards and its target. The main loop is the one with the
most multiply-adds of its own: those of loops inside it are not counted, and neither are their other
instructions. A branch that the loop may skip, such as the copy of a last tile, counts as run.

The unit is an issue slot:

* AMD: an instruction is a slot, whatever the subgroup's size; a pair of instructions (VOPD) too.
* Intel: a slot is one pass of an engine of 8 lanes of 32 bits, of 16 from Xe2 on. So `mad(16)` of
  floats takes two before Xe2 and one on it, and one everywhere for halves.
* Adreno: a repeated instruction takes a slot each time, and `(nop3)` three more.
* NVIDIA: an instruction is a slot.

A matrix instruction is one slot, though it keeps its unit busy for 8 to 32 cycles.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum


class Kind(Enum):
    """What an instruction does."""

    MULTIPLY_ADD = "multiply-adds"
    MATRIX = "matrix instructions"
    SHARED_LOAD = "loads from shared memory"
    SHARED_STORE = "stores to shared memory"
    GLOBAL = "accesses to memory"
    WAIT = "waits"
    MOVE = "moves"
    CONVERSION = "conversions"
    ADDRESS = "integer arithmetic"
    BRANCH = "branches"
    OTHER = "others"


@dataclass(frozen=True)
class Instruction:
    """One line of machine code."""

    kind: Kind
    slots: int = 1
    multiply_adds: int = 0
    """Multiply-adds of a lane: two in a pair, two of packed halves."""
    dual: bool = False
    """Whether it is a pair of instructions in one slot."""
    waits: int = 0
    """Whether it waits for an earlier load, as an instruction of its own or as a flag."""


@dataclass(frozen=True)
class Loop:
    """What the main loop of a kernel consists of."""

    slots: Counter[Kind]
    """Issue slots."""
    counts: Counter[Kind]
    """Instructions."""
    multiply_adds: int
    """Multiply-adds of a lane."""
    dual: int
    """Pairs of instructions in one slot."""
    waits: int
    """Instructions that wait for earlier loads."""

    @property
    def uses_matrix_units(self) -> bool:
        """Whether the loop has matrix instructions."""
        return self.counts[Kind.MATRIX] > 0

    @property
    def work(self) -> Kind:
        """What the loop is for: multiply-adds, or matrix instructions."""
        return Kind.MATRIX if self.uses_matrix_units else Kind.MULTIPLY_ADD

    @property
    def share(self) -> float:
        """The share of issue slots that do the loop's work."""
        return self.slots[self.work] / max(1, self.slots.total())

    @property
    def loads(self) -> float:
        """Loads from shared memory for each multiply-add of a lane, or each matrix instruction."""
        work = self.counts[Kind.MATRIX] or self.multiply_adds
        return self.counts[Kind.SHARED_LOAD] / max(1, work)


@dataclass
class _Code:
    """Machine code: instructions, labels by the instruction that follows, and branches."""

    instructions: list[Instruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    branches: list[tuple[int, str]] = field(default_factory=list)

    def loops(self) -> list[tuple[int, int]]:
        """First and last instruction of each loop; a label may have several branches to it."""
        last: dict[int, int] = {}
        for at, label in self.branches:
            target = self.labels.get(label)
            if target is not None and target <= at:
                last[target] = max(last.get(target, 0), at)
        return list(last.items())


def main_loop(text: str, *, lanes: int = 8) -> Loop | None:
    """The main loop of the last program in a file of TORCH_DML_PIPELINE_DISASSEMBLY.

    `lanes` is the width of Intel's engines. None if no loop has a multiply-add.
    """
    program = re.split(r"^program .*\n", text, flags=re.M)[-1]
    code, parse = _Code(), _parser(program, lanes)
    for line in program.splitlines():
        parse(line, code)
    loops = code.loops()
    bodies = [[code.instructions[i] for i in _own(loop, loops)] for loop in loops]
    best = max(bodies, key=_weight, default=[])
    if not _weight(best):
        return None
    slots: Counter[Kind] = Counter()
    for instruction in best:
        slots[instruction.kind] += instruction.slots
    return Loop(
        slots,
        Counter(instruction.kind for instruction in best),
        sum(instruction.multiply_adds for instruction in best),
        sum(instruction.dual for instruction in best),
        sum(instruction.waits for instruction in best),
    )


def _own(loop: tuple[int, int], loops: Sequence[tuple[int, int]]) -> Iterator[int]:
    first, last = loop
    inner = [other for other in loops if other != loop and first <= other[0] and other[1] <= last]
    return (i for i in range(first, last + 1) if not any(start <= i <= end for start, end in inner))


def _weight(body: Sequence[Instruction]) -> int:
    # A matrix instruction does the work of many multiply-adds.
    return sum(64 if each.kind is Kind.MATRIX else each.multiply_adds for each in body)


_Parser = Callable[[str, _Code], None]


def _parser(program: str, lanes: int) -> _Parser:
    if re.search(r"^BB\d+:", program, re.M):
        return _amd
    if re.search(r"^block", program, re.M):
        return _nvidia
    if re.search(r"\{ align\d+ ", program):
        return lambda line, code: _intel(line, code, lanes)
    return _adreno


def _kind(name: str, table: Sequence[tuple[str, Kind]]) -> Kind:
    """The kind of an instruction: that of the first pattern that matches the start of its name."""
    return next((kind for pattern, kind in table if re.match(pattern, name)), Kind.OTHER)


_AMD = (
    (r"v_s?wmma|v_swmmac|v_mfma", Kind.MATRIX),
    (r"v_(dual_)?(fma|fmac|fmaak|fmamk|mac|mad|madak|madmk)(_legacy)?_(mix\w*|f16|f32|f64)", Kind.MULTIPLY_ADD),
    (r"v_(fma_mix|mad_mix|pk_fma|pk_mad|pk_fmac|dual_dot|dot\d)", Kind.MULTIPLY_ADD),
    (r"ds_(read|load)", Kind.SHARED_LOAD),
    (r"ds_(write|store)", Kind.SHARED_STORE),
    (r"(global|flat|buffer|scratch|s_buffer|s)_(load|store|atomic)", Kind.GLOBAL),
    (r"s_wait|s_delay_alu|s_nop|s_clause|s_barrier|s_sleep", Kind.WAIT),
    (r"(v_(dual_)?mov|s_c?mov|v_readfirstlane|v_readlane|v_swap|v_accvgpr)", Kind.MOVE),
    (r"v_cvt|v_pack|v_perm", Kind.CONVERSION),
    (r"s_c?branch", Kind.BRANCH),
    (r"v_\w*_(f16|f32|f64)", Kind.OTHER),
    (r"[vs]_", Kind.ADDRESS),
)


def _amd(line: str, code: _Code) -> None:
    if label := re.match(r"(BB\d+):", line):
        code.labels[label[1]] = len(code.instructions)
        return
    parts = line.split(";")[0].strip().split(" :: ")
    names = [part.split()[0] for part in parts if part.strip()]
    if not names:
        return
    kinds = [_kind(name, _AMD) for name in names]
    if target := re.match(r"s_c?branch\w* (BB\d+)", parts[0].strip()):
        code.branches.append((len(code.instructions), target[1]))
    work = [name for name, kind in zip(names, kinds, strict=True) if kind is Kind.MULTIPLY_ADD]
    code.instructions.append(
        Instruction(
            Kind.MULTIPLY_ADD if work else kinds[0],
            multiply_adds=sum(map(_amd_multiply_adds, work)),
            dual=len(names) > 1,
            waits=names[0].startswith("s_wait"),
        )
    )


def _amd_multiply_adds(name: str) -> int:
    if dot := re.match(r"v_(?:dual_)?dot(\d)", name):
        return int(dot[1])
    return 2 if name.startswith("v_pk_") else 1


_INTEL = (
    (r"dpas", Kind.MATRIX),
    (r"mad|mac|dp4a", Kind.MULTIPLY_ADD),
    (r"sync|wait|nop", Kind.WAIT),
    (r"mov|sel$", Kind.MOVE),
    (r"if|else|endif|while|break|cont|jmpi|brd|brc|halt|goto|join", Kind.BRANCH),
    (r"math|pln|lrp|rnd", Kind.OTHER),
    (r"add|add3|mul|mach|shl|shr|asr|and|or|xor|not|cmp|bfe|bfi|rol|ror|sel|csel|avg|lzd|cbit|fb[hl]", Kind.ADDRESS),
)
_FLOATS = {"F", "HF", "BF", "DF"}
_BYTES = {"B": 1, "UB": 1, "W": 2, "UW": 2, "HF": 2, "BF": 2, "Q": 8, "UQ": 8, "DF": 8}


def _intel(line: str, code: _Code, lanes: int) -> None:
    if label := re.match(r"(LABEL\d+):", line):
        code.labels[label[1]] = len(code.instructions)
        return
    if line[:1].isspace():  # The second line of a send says what it is.
        if code.instructions and "MsgDesc" in line and code.instructions[-1].kind is Kind.OTHER:
            code.instructions[-1] = Instruction(_intel_message(line), waits=code.instructions[-1].waits)
        return
    found = re.match(r"(?:\([^)]*\)\s*)?([a-z]\w*)(?:\.[\w.]+| \w+)?\((\d+)\)\s*(.*)", line)
    if found is None:
        if line.startswith("nop"):
            code.instructions.append(Instruction(Kind.WAIT))
        return
    name, width, rest = found[1], int(found[2]), found[3]
    if name == "while" and (target := re.search(r"JIP:\s*(LABEL\d+)", rest)):
        code.branches.append((len(code.instructions), target[1]))
    kind = Kind.OTHER if name.startswith("send") else _kind(name, _INTEL)
    type_ = re.match(r"[^\s<]*<\d+>([A-Z]+)", rest)
    is_float = bool(type_ and type_[1] in _FLOATS)
    if kind is Kind.MULTIPLY_ADD and name != "dp4a" and not is_float:
        kind = Kind.ADDRESS
    if kind is Kind.ADDRESS and is_float:
        kind = Kind.OTHER
    source = re.search(r"\s\S*>([A-Z]+)\b", rest)
    if name == "mov" and type_ and source and source[1] != type_[1] and {source[1], type_[1]} & _FLOATS:
        kind = Kind.CONVERSION
    passes = width * _BYTES.get(type_[1] if type_ else "", 4) / (lanes * 4)
    slots = 1 if kind in (Kind.MATRIX, Kind.WAIT, Kind.BRANCH) or name.startswith("send") else max(1, round(passes))
    each = 4 if name == "dp4a" else 1
    waits = bool(name in ("sync", "wait") or re.search(r"\$\d+(\.dst|\.src)", rest))
    code.instructions.append(
        Instruction(kind, slots, each if kind is Kind.MULTIPLY_ADD else 0, waits=waits),
    )


def _intel_message(line: str) -> Kind:
    shared = "slm MsgDesc" in line or "Surface = 254" in line
    if "barrier" in line or "fence" in line:
        return Kind.WAIT
    if shared:
        return Kind.SHARED_LOAD if re.search(r"\bload|read", line) else Kind.SHARED_STORE
    return Kind.GLOBAL


_ADRENO = (
    (r"mad\.f|dp4acc|dp2acc", Kind.MULTIPLY_ADD),
    (r"ldl(v|w)?\.", Kind.SHARED_LOAD),
    (r"stl(w)?\.", Kind.SHARED_STORE),
    (r"(ld|st)[a-z]*\.|isam|resinfo|atomic", Kind.GLOBAL),
    (r"nop|bar|fence|sleep", Kind.WAIT),
    (r"mov\.|swz|gat|sct|movmsk", Kind.MOVE),
    (r"cov\.", Kind.CONVERSION),
    (r"br|jump|getone|shps|shpe|b(any|all)|call|ret|end|predt|predf|prede", Kind.BRANCH),
    (r"\w+\.[us]|\w+\.b\b|madsh|mull|cmps\.[us]|shl|shr|ashr|bary", Kind.ADDRESS),
)


def _adreno(line: str, code: _Code) -> None:
    if label := re.match(r"(l\d+):", line):
        code.labels[label[1]] = len(code.instructions)
        return
    found = re.match(r"\s*((?:\([a-z]+\d*\)\s*)*)([a-z][\w.]*)(.*)", line)
    if found is None:
        return
    flags, name, rest = found.groups()
    for target in re.findall(r"#(l\d+)", rest):
        code.branches.append((len(code.instructions), target))
    kind = _kind(name, _ADRENO)
    times = 1 + sum(map(int, re.findall(r"\(rpt(\d+)\)", flags)))
    idle = sum(map(int, re.findall(r"\(nop(\d+)\)", flags)))
    each = {"dp4acc": 4, "dp2acc": 2}.get(name.split(".")[0], 1) if kind is Kind.MULTIPLY_ADD else 0
    waits = "(sy)" in flags or "(ss)" in flags
    if idle:
        code.instructions.append(Instruction(Kind.WAIT, idle))
    code.instructions.append(Instruction(kind, times, times * each, waits=waits))


_NVIDIA = (
    (r"[hi]mma|qmma|bmma", Kind.MATRIX),
    (r"ffma|hfma2|dfma|idp", Kind.MULTIPLY_ADD),
    (r"ld\.shared|ldsm", Kind.SHARED_LOAD),
    (r"st\.shared|stsm", Kind.SHARED_STORE),
    (r"(ld|st|atom|ldc|red)\b", Kind.GLOBAL),
    (r"bar|depbar|nop|warpsync|nanosleep|membar", Kind.WAIT),
    (r"mov|r2ur|s2r|prmt|sel|cs2r", Kind.MOVE),
    (r"[fi]2[fi]|f2fp", Kind.CONVERSION),
    (r"bra|bsync|bssy|break|exit|bclear|bmov|warpsync", Kind.BRANCH),
    (r"i|lea|shf|shl|shr|lop|plop|popc|bmsk", Kind.ADDRESS),
)


def _nvidia(line: str, code: _Code) -> None:
    if block := re.match(r"block\S* \d+ (L\d+)", line):
        code.labels[block[1]] = len(code.instructions)
        return
    text = re.sub(r"^\s*(@!?\w+)?\s*", "", line.split("//")[0]).strip()
    found = re.match(r"(?:[^=]*\s=\s+)?([a-z][\w.]*)(.*)", text)
    if found is None:
        return
    name, rest = found.groups()
    if name == "bra" and (target := re.search(r"\b(L\d+)", rest)):
        code.branches.append((len(code.instructions), target[1]))
    kind = _kind(name, _NVIDIA)
    each = {"hfma2": 2, "idp": 4}.get(name.split(".")[0], 1) if kind is Kind.MULTIPLY_ADD else 0
    code.instructions.append(Instruction(kind, 1, each, waits=bool(re.search(r"wt=0*1", line))))
