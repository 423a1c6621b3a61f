"""The cases: each program of the folder `programs`, once for each list of arguments that it names.

A program is a script as users write them, with nothing of torch-dml in it. The first lines of its
docstring say what it does. A line after them may be `modes: cpu, cuda`, where it makes no sense in
the others; a line `arguments: --fp16`, which may be empty, is one for each case. It ends by
printing a line of JSON: the device that it used, the numbers that it came to, and the tolerance,
relative and absolute, that they have:

    {"device": "cuda:0", "numbers": [0.69, 0.42], "tolerance": 1e-4}
"""

from __future__ import annotations

import ast
import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).with_name("programs")
MODES = ("cpu", "cuda", "dml")

# By the beginning of a program's name: the package's name on the index; for torch, a description.
LIBRARIES = {
    "accelerate": "accelerate",
    "diffusers": "diffusers",
    "keras": "keras",
    "lightning": "lightning",
    "peft": "peft",
    "pytorch": "torch",
    "safetensors": "safetensors",
    "stable_baselines3": "stable-baselines3",
    "timm": "timm",
    "torch_geometric": "torch-geometric",
    "torchvision": "torchvision",
    "transformers": "transformers",
    "ultralytics": "ultralytics",
}
# Packages that these libraries import, but their programs do not. There is no torchvision for the
# newest torch.
NEEDS = {"timm": {"torchvision"}, "ultralytics": {"torchvision"}}


@dataclass(frozen=True)
class Case:
    """One way to run one program."""

    program: Path
    what: str
    modes: tuple[str, ...] = MODES
    arguments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name for `--only` and the tests: "lightning_trainer --precision 16-mixed"."""
        return " ".join((self.program.stem, *self.arguments))

    @property
    def library(self) -> str:
        """The key of LIBRARIES with which its name begins."""
        return next(name for name in LIBRARIES if self.program.stem.startswith(f"{name}_"))

    def missing(self) -> list[str]:
        """Return the packages that the program and its library import and that are not
        installed.
        """
        tree = ast.parse(self.program.read_text(encoding="utf-8"))
        imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        packages = {name.partition(".")[0] for name in imported} | NEEDS.get(self.library, set())
        return sorted(name for name in packages if importlib.util.find_spec(name) is None)


def read(folder: Path = PROGRAMS) -> list[Case]:
    """Return the cases of the programs of a folder, by name; raise ValueError for a program in
    another format.
    """
    return [case for path in sorted(folder.glob("*.py")) for case in _cases(path)]


def _cases(path: Path) -> list[Case]:
    what, *rest = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines() or [""]
    while rest and rest[0] and not re.match(r"\w+:", rest[0]):
        what = f"{what} {rest.pop(0)}"
    modes: tuple[str, ...] = MODES
    lists: list[tuple[str, ...]] = []
    for line in rest:
        key, _, value = line.partition(":")
        if key == "modes":
            modes = tuple(value.replace(",", " ").split())
        elif key == "arguments":
            lists.append(tuple(value.split()))
        else:
            raise ValueError(f"{path.name}: a line of its docstring is {line!r}")
    if not what or not {"cpu"} < set(modes) <= set(MODES):
        raise ValueError(f"{path.name} does not say what it does, or in which modes")
    return [Case(path, what, modes, arguments) for arguments in lists or [()]]
