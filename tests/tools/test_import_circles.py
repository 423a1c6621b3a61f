"""`scripts/import_circles.py`: circles of files, and folders that import from layers above."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.environment import ROOT

SCRIPT = ROOT / "scripts" / "import_circles.py"


class Crate:
    """A crate whose files consist of imports, and the list of known upward imports."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "crates" / "made" / "src"
        self.plugin = folder / "plugin"
        self.list = folder / "upward.txt"
        self.list.write_text("# known\n")

    def write(self, **files: str) -> None:
        """Write files by module path: write(a__b="c::d") is src/a/b.rs, which imports
        crate::c::d.
        """
        for name, imported in files.items():
            file = self.source.joinpath(*name.split("__")).with_suffix(".rs")
            file.parent.mkdir(parents=True, exist_ok=True)
            for folder in {*file.parents} & {*self.source.rglob("*")}:
                (folder / "mod.rs").touch()
            file.write_text("".join(f"use crate::{path};\n" for path in imported.split()))

    def check(self) -> list[str]:
        """Run the script; return the faults that it finds."""
        command = [sys.executable, str(SCRIPT), "--crates", str(self.source.parents[1]), "--upward", str(self.list)]
        command += ["--plugin", str(self.plugin)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == bool(done.stderr), done.stderr
        return done.stderr.splitlines()


@pytest.fixture
def crate(tmp_path: Path) -> Crate:
    return Crate(tmp_path)


def test_folders_in_order_pass(crate: Crate) -> None:
    crate.write(top__one="middle::one bottom::one", middle__one="bottom::one", bottom__one="", lib="top::one")
    assert crate.check() == []


def test_the_import_against_the_others_is_named(crate: Crate) -> None:
    crate.write(top__one="bottom::one::Thing", top__two="bottom::one", bottom__one="", bottom__two="top::two")
    assert crate.check() == ["points upward: made: bottom/two -> top/two"]


def test_a_circle_through_several_folders_is_found(crate: Crate) -> None:
    crate.write(a__one="b::one b::two", a__two="", b__one="c::one", b__two="c::one", c__one="a::two")
    assert crate.check() == ["points upward: made: c/one -> a/two"]


def test_folders_in_folders_have_an_order_too(crate: Crate) -> None:
    crate.write(out__a__one="out::b::one", out__a__two="out::b::one", out__b__one="", out__b__two="out::a::one")
    assert crate.check() == ["points upward: made: out/b/two -> out/a/one"]


def test_a_file_beside_a_folder_counts(crate: Crate) -> None:
    crate.write(file="folder::one", folder__one="", folder__two="file", folder__three="file")
    assert crate.check() == ["points upward: made: file -> folder/one"]


def test_files_of_one_folder_may_make_small_circles(crate: Crate) -> None:
    crate.write(a__one="a::two", a__two="a::one")
    assert crate.check() == []
    crate.write(a__one="a::two", a__two="a::three", a__three="a::four", a__four="a::one")
    (fault,) = crate.check()
    assert "a circle of 4 files" in fault


def test_tests_in_files_do_not_count(crate: Crate) -> None:
    crate.write(a__one="b::one", b__one="")
    for condition in ("test", "all(test, not(loom))"):
        with (crate.source / "b" / "one.rs").open("a") as file:
            file.write(f"#[cfg({condition})]\nmod tests {{ use crate::a::one; }}\n")
        assert crate.check() == []


def test_known_ones_pass_and_the_list_only_shrinks(crate: Crate) -> None:
    crate.write(top__one="bottom::one bottom::two", bottom__one="", bottom__two="top::one")
    crate.list.write_text("made: bottom/two -> top/one\n")
    assert crate.check() == []
    crate.write(bottom__two="")
    assert crate.check() == ["points upward no longer, take it off the list: made: bottom/two -> top/one"]
    crate.write(top__one="", bottom__two="top::one")
    assert crate.check() == ["points upward no longer, take it off the list: made: bottom/two -> top/one"]
    crate.list.write_text("gone: a/b -> c/d\n")
    assert crate.check() == ["no longer there: gone: a/b -> c/d"]


def test_an_entry_that_says_nothing_is_refused(crate: Crate) -> None:
    crate.write(a__one="")
    crate.list.write_text("bottom/two\n")
    assert "is not `crate: from -> to`" in crate.check()[0]


def test_the_plugins_folders_have_an_order_too(crate: Crate) -> None:
    crate.write(lib="")
    for folder, file, included in (
        ("core", "a.h", ""),
        ("operators", "b.h", "core/a.h"),
        ("core", "a.cpp", "core/a.h"),
    ):
        (crate.plugin / folder).mkdir(parents=True, exist_ok=True)
        (crate.plugin / folder / file).write_text(f'#include "{included}"\n' if included else "")
    (crate.plugin / "init.cpp").write_text('#include "core/a.h"\n#include "operators/b.h"\n')
    assert crate.check() == []
    (crate.plugin / "core" / "a.cpp").write_text('#include "core/a.h"\n#include "operators/b.h"\n')
    (crate.plugin / "operators" / "c.cpp").write_text('#include "core/a.h"\n')
    assert crate.check() == ["points upward: plugin: core/a -> operators/b"]
