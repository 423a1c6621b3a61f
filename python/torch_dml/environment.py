"""The environment variables, and their valid values. An invalid value is reported and ignored.

The table is variables.toml, the package's copy of crates/environment/variables.toml. The engine
reads some of the variables itself and ignores the same values; they are reported here, once.
"""

from __future__ import annotations

import difflib
import os
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


def _one_of(words: list[str]) -> Callable[[str], bool]:
    return lambda value: value.strip().lower() in words


def _whole_number(low: int, high: int) -> Callable[[str], bool]:
    return lambda value: re.fullmatch(r"\d{1,9}", value.strip()) is not None and low <= int(value) <= high


def _seconds(value: str) -> bool:
    try:
        return 0 < float(value) < 1e9
    except ValueError:
        return False


def _folder(value: str) -> bool:
    # A folder that does not exist is created.
    return Path(value).is_dir() or not os.path.lexists(value)


def _log_filter(value: str) -> bool:
    level, target = "(trace|debug|info|warn|error|off)", r"[a-z_][\w:]*(\[[^\]]*\])?"
    return all(re.fullmatch(f"{level}|{target}(={level})?", part.strip(), re.I | re.A) for part in value.split(","))


def _some_of(names: list[str]) -> Callable[[str], bool]:
    def understood(value: str) -> bool:
        chosen = value.split(",")
        without = {name.startswith("-") for name in chosen}
        return value == "none" or (len(without) == 1 and {name.removeprefix("-") for name in chosen} <= set(names))

    return understood


# The kinds of values in the table, other than words, numbers and names.
_FOLDER = "a folder"
_KINDS = {_FOLDER: _folder, "a number of seconds": _seconds, "a level, or TARGET=LEVEL,...": _log_filter}
_NUMBER = re.compile(r"a number from (\d+) to (\d+)")
_NAMES = re.compile(r"none, or some of (.*) with commas between, all with or all without - before")
_WORDS = re.compile(r"[\w-]+(, [\w-]+)*( or [\w-]+)?")


def _check(values: str) -> Callable[[str], bool] | None:
    """Return a function that tells whether a value is one of `values`; None if any may be valid."""
    if found := _NUMBER.fullmatch(values):
        return _whole_number(int(found[1]), int(found[2]))
    if found := _NAMES.fullmatch(values):
        return _some_of(found[1].split(", "))
    if _WORDS.fullmatch(values):
        return _one_of(re.split(", | or ", values))
    return _KINDS.get(values)


@dataclass(frozen=True)
class Variable:
    """An entry of the table."""

    values: str  # the valid values, in words
    meaning: str
    check: Callable[[str], bool] | None

    def understands(self, value: str) -> bool:
        """Return whether a value is valid, as far as that can be decided here."""
        return self.check is None or self.check(value)

    @property
    def is_path(self) -> bool:
        """Whether a value may be a path, or any text."""
        return self.check is None or self.values == _FOLDER


def _read_table() -> dict[str, Variable]:
    table = Path(__file__).with_name("variables.toml").read_text(encoding="utf-8")
    entries = [dict(re.findall(r'^(\w+) = "(.*)"$', part, re.MULTILINE)) for part in table.split("[[variable]]")[1:]]
    return {entry["name"]: Variable(entry["values"], entry["meaning"], _check(entry["values"])) for entry in entries}


VARIABLES = _read_table()

# The libraries for which torch_dml.integrations has a file.
INTEGRATIONS: tuple[str, ...] = tuple(_NAMES.sub(r"\1", VARIABLES["TORCH_DML_INTEGRATIONS"].values).split(", "))


def get(name: str) -> str | None:
    """Return a variable's value; None if it is unset, empty, or invalid."""
    value = os.environ.get(name)
    variable = VARIABLES[name]
    if not value or not variable.understands(value):
        return None
    return value if variable.is_path else value.strip().lower()


def chosen_integrations() -> list[str]:
    """Return the libraries to integrate with, according to TORCH_DML_INTEGRATIONS; all if it is
    unset.
    """
    value = get("TORCH_DML_INTEGRATIONS") or ""
    names = [] if value == "none" else value.split(",")
    if value.startswith("-") or not value:
        return [name for name in INTEGRATIONS if f"-{name}" not in names]
    return names


def warn_of_nonsense() -> None:
    """Warn of every variable with an invalid value, and every unknown variable."""
    for name in sorted(os.environ):
        if not name.startswith("TORCH_DML_"):
            continue
        if name not in VARIABLES:
            near = difflib.get_close_matches(name, VARIABLES, 1)
            text = f"{name} is ignored: there is no such variable" + (f"; there is {near[0]}" if near else "")
        elif os.environ[name] and get(name) is None:
            text = f"{name}={os.environ[name]} is ignored: {VARIABLES[name].values} is understood"
        else:
            continue
        warnings.warn(text, RuntimeWarning, stacklevel=2)
