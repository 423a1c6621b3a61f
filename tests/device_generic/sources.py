"""The files of tests, and PyTorch's source tree, which contains most of them."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch

# Files of PyTorch's `test` folder with the device-generic tests of its operators, modules and
# optimizers.
PYTORCH_FILES = (
    *("test_binary_ufuncs.py", "test_indexing.py", "test_linalg.py", "test_modules.py", "test_ops.py"),
    *("test_optim.py", "test_reductions.py", "test_shape_ops.py", "test_sort_and_select.py", "test_spectral_ops.py"),
    *("test_torch.py", "test_unary_ufuncs.py"),
)
SUITES = Path(__file__).with_name("suites")

HOW_TO_GET_IT = """\
  git clone --depth 1 --filter=blob:none --sparse -b v{version} https://github.com/pytorch/pytorch
  git -C pytorch sparse-checkout set test
and then --pytorch pytorch. Without it: --suites, the tests of this project on PyTorch's machinery."""


class SourceError(Exception):
    """There is no such source tree, or no such file."""


@dataclass(frozen=True)
class Tree:
    """A source tree of PyTorch."""

    folder: Path
    version: str  # the contents of its version.txt
    commit: str = ""  # "" if the tree is not a checkout

    @property
    def exact(self) -> bool:
        """Whether the installed torch was built from this very commit."""
        return bool(self.commit) and self.commit == torch.version.git_version

    def __str__(self) -> str:
        if self.exact:
            return f"the commit that torch {torch.__version__} was built from"
        return f"a source tree of PyTorch {self.version}" + (f", commit {self.commit[:12]}" if self.commit else "")


def released(version: str = torch.__version__) -> str:
    """The release of a version: "2.14.1" for "2.14.1+cpu"."""
    return version.partition("+")[0]


def open_tree(folder: Path) -> Tree:
    """The source tree in a folder. Raises SourceError if its minor version is not that of the
    installed torch.
    """
    how = f"{folder} {{}}. The tests of torch {released()} are in its source tree:\n" + HOW_TO_GET_IT.format(
        version=released()
    )
    try:
        version = (folder / "version.txt").read_text().strip()
    except OSError:
        raise SourceError(how.format("is no source tree of PyTorch (it has no version.txt)")) from None
    if not (folder / "test").is_dir():
        raise SourceError(how.format("has no folder `test`"))
    if minor(version) != minor(released()):
        raise SourceError(how.format(f"is of PyTorch {version}"))
    return Tree(folder.resolve(), version, _commit(folder))


def minor(version: str) -> tuple[str, ...]:
    """("2", "14") for "2.14.1". A release's version.txt may lack the patch version, but not the
    minor version.
    """
    return tuple(version.split(".")[:2])


def _commit(folder: Path) -> str:
    """The commit of a checkout, if the folder is its root; "" for any other folder, even inside of
    another repository.
    """
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "--show-cdup", "HEAD"], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    up, _, commit = found.stdout.partition("\n")
    return "" if up else commit.strip()


def suites() -> dict[str, Path]:
    """This project's files, by name."""
    return {f"suites/{file.name}": file for file in sorted(SUITES.glob("*.py")) if file.name != "__init__.py"}


def choose(names: Iterable[str], tree: Tree | None) -> dict[str, Path]:
    """The files with these names: from the source tree's `test`, from the suites, or paths. Without
    names: all of them.

    Raises SourceError if there is no such file.
    """
    if not names:
        found = suites()
        if tree is not None:
            found.update({name: tree.folder / "test" / name for name in PYTORCH_FILES})
        return _existing(found)
    chosen = {}
    for name in names:
        if name in suites():
            chosen[name] = suites()[name]
        elif tree is not None and (tree.folder / "test" / name).is_file():
            chosen[name] = tree.folder / "test" / name
        elif Path(name).is_file():
            chosen[name] = Path(name).resolve()
        elif tree is None:
            raise SourceError(
                f"there is no file {name} here. Is it PyTorch's?\n" + HOW_TO_GET_IT.format(version=released())
            )
        else:
            raise SourceError(f"there is no file {name}, here or in {tree.folder / 'test'}")
    return chosen


def _existing(files: dict[str, Path]) -> dict[str, Path]:
    for file in files.values():
        if not file.is_file():
            raise SourceError(f"{file} is missing: is the source tree's `test` folder whole?")
    return files
