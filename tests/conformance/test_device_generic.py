"""The command that runs PyTorch's device-generic tests, with a file of tests that was written for
this; it needs no source tree.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.device_generic import page, sources
from tests.device_generic.differences import Difference, explanation, outdated, read
from tests.device_generic.results import OtherSubjectError, Result, ResultFile, Subject, Test, Verdict, read_all
from tests.support.processes import run_python
from tests.support.shards import Shard

TESTS = """
import os, time, unittest
import torch
from torch.testing._internal.common_device_type import dtypes, instantiate_device_type_tests, onlyCUDA
from torch.testing._internal.common_utils import TestCase


class TestSmall(TestCase):
    @dtypes(torch.float32, torch.int64)
    def test_right(self, device, dtype):
        self.assertEqual(torch.ones(2, device=device, dtype=dtype).sum().item(), 2)
        self.assertEqual(torch.device(device).type, "dml")

    def test_wrong(self, device):
        expected = torch.ones(2, device=device) if device == "cpu" else torch.zeros(2, device=device)
        self.assertEqual(torch.ones(2, device=device), expected)

    def test_raising(self, device):
        if device != "cpu":
            raise KeyError("no such thing")

    def test_one_of_several(self, device):
        for value in range(3):
            with self.subTest(value=value):
                self.assertNotEqual(value, 1)

    @onlyCUDA
    def test_of_another(self, device):
        self.fail()

    @unittest.expectedFailure
    def test_expected(self, device):
        self.fail("so it is")

    @unittest.expectedFailure
    def test_unexpected(self, device):
        pass

    def test_crash(self, device):
        if device != "cpu":
            print("the last words", flush=True)
            os._exit(3)

    def test_slow(self, device):
        if device != "cpu":
            time.sleep(600)

    def test_through_the_cpu(self, device):
        torch.linalg.eig(torch.eye(2, device=device))

    def test_fault_left_behind(self, device):
        if device != "cpu":
            torch.arange(3, device=device)[torch.tensor([7], device=device)]


class TestOfTheCPU(TestCase):
    def test_nothing(self):
        self.fail()


instantiate_device_type_tests(TestSmall, globals())
"""
VERDICTS = {
    "test_right_dml_float32": Verdict.PASS,
    "test_right_dml_int64": Verdict.PASS,
    "test_wrong_dml": Verdict.FAIL,
    "test_raising_dml": Verdict.ERROR,
    "test_one_of_several_dml": Verdict.FAIL,
    "test_of_another_dml": Verdict.SKIP,
    "test_expected_dml": Verdict.SKIP,
    "test_unexpected_dml": Verdict.FAIL,
    "test_crash_dml": Verdict.CRASH,
    "test_slow_dml": Verdict.TIMEOUT,
    "test_through_the_cpu_dml": Verdict.PASS,
    "test_fault_left_behind_dml": Verdict.ERROR,
}
SUBJECT = Subject("2.11.0", "a GPU", "0123", "no source tree of PyTorch", {"test_ops.py": "0"})


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_python("-m", "tests.device_generic", *arguments, COLUMNS="200")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("device_generic")
    (folder / "test_made_up.py").write_text(TESTS)
    (folder / "known.toml").write_text(
        '[[difference]]\nwhy = "it is made so"\nmessage = "KeyError"\ntests = [".*::test_raising.*"]\n'
        '[[difference]]\nwhy = "it was so"\ntests = [".*::test_right.*"]\n'
    )
    return folder


@pytest.fixture(scope="module")
def options(folder: Path) -> list[str]:
    kept, known = folder / "results.jsonl", folder / "known.toml"
    return [str(folder / "test_made_up.py"), "--results", str(kept), "--differences", str(known)]


@pytest.fixture(scope="module")
def done(folder: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    return command(*options, "--time", "15", "--jobs", "1", "--write", str(folder / "page.md"))


class TestCommand:
    def results(self, folder: Path) -> dict[str, Result]:
        lines = (folder / "results.jsonl").read_text().splitlines()[1:]
        return {one.test.name: one for one in (Result.from_line(json.loads(line)) for line in lines)}

    def test_every_end_is_recognised(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        assert done.returncode == 1, done.stderr
        found = self.results(folder)
        assert {name: one.verdict for name, one in found.items()} == VERDICTS
        assert {one.test.case for one in found.values()} == {"TestSmallDML"}
        assert found["test_raising_dml"].message == "KeyError: 'no such thing"
        assert "Tensor-likes are not" in found["test_wrong_dml"].message
        assert "ended with 3" in found["test_crash_dml"].message
        assert "the last words" in found["test_crash_dml"].message
        assert found["test_slow_dml"].message == "more than 15 s"
        assert "after the test: IndexError" in found["test_fault_left_behind_dml"].message

    def test_what_goes_wrong_on_the_cpu_too_is_known(
        self, done: subprocess.CompletedProcess[str], folder: Path
    ) -> None:
        found = self.results(folder)
        shared = {"test_one_of_several_dml", "test_unexpected_dml"}
        assert {name for name, one in found.items() if one.shared} == shared
        assert {name for name, one in found.items() if one.control is None} == {
            name for name, one in found.items() if not one.wrong
        }

    def test_fallbacks_are_counted(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        found = self.results(folder)
        assert set(found["test_through_the_cpu_dml"].fallbacks) == {"aten::linalg_eig"}
        assert [one.test.name for one in found.values() if one.fallbacks] == ["test_through_the_cpu_dml"]

    def test_what_is_said(self, done: subprocess.CompletedProcess[str]) -> None:
        counts = "3 passed, 5 failed, 2 skipped, 1 crashed, 1 too slow, 2 wrong on the CPU too, 1 through the CPU"
        assert counts in done.stdout
        assert "4 failures that known.toml does not explain:" in done.stdout
        assert ".*::test_right.* no longer fails so: it was so" in done.stdout

    def test_page(self, done: subprocess.CompletedProcess[str], folder: Path) -> None:
        text = (folder / "page.md").read_text()
        assert "| 12 | 12 | 3 | 5 | 2 | 1 | 1 | 2 | 1 |" in text
        assert "- it is made so (1): `test_raising_dml`." in text
        assert "- `aten::linalg_eig`: 1" in text
        assert "::test_wrong_dml`: fail: AssertionError" in text
        assert "**Not run**, for want of a source tree: test_binary_ufuncs.py" in text

    @pytest.mark.slow
    def test_a_run_goes_on(self, done: subprocess.CompletedProcess[str], folder: Path, options: list[str]) -> None:
        before = self.results(folder)
        again = command(*options, "-k", "test_(right|wrong|crash)")
        assert again.returncode == 1 and "2 passed, 1 failed, 0 skipped, 1 crashed" in again.stdout, again.stderr
        after = self.results(folder)
        assert after["test_wrong_dml"] == before["test_wrong_dml"]  # it was not run again
        kept = command(*options, "--kept", "-k", "test_(right|wrong|crash)")
        assert kept.returncode == 1 and "2 passed, 1 failed, 0 skipped, 1 crashed" in kept.stdout, kept.stderr
        assert self.results(folder) == after
        anew = command(*options, "--again", "-k", "test_wrong")
        assert anew.returncode == 1 and "0 passed, 1 failed" in anew.stdout, anew.stderr
        assert self.results(folder).keys() == after.keys()

    def test_a_file_that_cannot_be_imported(self, tmp_path: Path) -> None:
        file = tmp_path / "test_broken.py"
        file.write_text("import no_such_module")
        done = command(str(file), "--results", str(tmp_path / "results.jsonl"))
        assert done.returncode == 1
        assert "1 files that cannot be imported" in done.stdout and "no_such_module" in done.stdout

    @pytest.mark.slow
    def test_without_a_source_tree(self) -> None:
        done = command()
        assert done.returncode == 2
        assert done.stderr.startswith("error: --pytorch is missing")
        assert f"git clone --depth 1 --filter=blob:none --sparse -b v{sources.released()} " in done.stderr


class TestSources:
    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        (tmp_path / "test").mkdir()
        for name in sources.PYTORCH_FILES:
            (tmp_path / "test" / name).touch()
        (tmp_path / "version.txt").write_text(f"{sources.released()}\n")
        return tmp_path

    def test_a_tree_of_this_release(self, tree: Path) -> None:
        found = sources.open_tree(tree)
        assert found.version == sources.released() and not found.exact
        assert set(sources.choose([], found)) == {*sources.PYTORCH_FILES, *sources.suites()}
        assert sources.choose(["test_ops.py"], found) == {"test_ops.py": tree / "test" / "test_ops.py"}

    def test_a_tree_of_another_release(self, tree: Path) -> None:
        (tree / "version.txt").write_text("1.13.1\n")
        with pytest.raises(sources.SourceError, match=r"is of PyTorch 1\.13\.1.*\n.*git clone"):
            sources.open_tree(tree)

    @pytest.mark.parametrize("file", ["test_indexing.py", "no/such/test.py"])
    def test_no_tree(self, file: str) -> None:
        with pytest.raises(sources.SourceError, match=f"there is no file {file} here.*\n.*git clone"):
            sources.choose([file], None)
        with pytest.raises(sources.SourceError, match=r"folder is no source tree of PyTorch.*\n.*git clone"):
            sources.open_tree(Path("no/such/folder"))

    def test_a_tree_without_all_of_its_tests(self, tree: Path) -> None:
        (tree / "test" / "test_ops.py").unlink()
        with pytest.raises(sources.SourceError, match=r"test_ops\.py is missing"):
            sources.choose([], sources.open_tree(tree))

    def test_the_commit_that_torch_was_built_from(self) -> None:
        exact = sources.Tree(Path(), "2.11.0", torch.version.git_version or "")
        assert str(exact) == f"the commit that torch {torch.__version__} was built from"
        assert not sources.Tree(Path(), "2.11.0", "0123").exact


def result(name: str, verdict: Verdict = Verdict.PASS, message: str = "", file: str = "test_ops.py") -> Result:
    return Result(Test(file, "TestCommonDML", name), verdict, message)


class TestDifferences:
    known = (Difference("because", (r".*::test_add_.*", r".*::test_mul_.*"), "not close"),)

    def test_explanation(self) -> None:
        covered = result("test_add_x", Verdict.FAIL, "Tensors are not close")
        assert explanation(covered, self.known) == self.known[0]
        for other in (
            replace(covered, control=Verdict.FAIL),  # a fault that is not the device's
            result("test_add_x", Verdict.FAIL, "another shape"),
            result("test_sub_x", Verdict.FAIL, "not close"),
            result("test_add_x", Verdict.PASS, "not close"),
        ):
            assert explanation(other, self.known) is None

    def test_outdated(self) -> None:
        fails, passes = result("test_add_x", Verdict.FAIL, "not close"), result("test_mul_x")
        tests = [fails.test, passes.test]
        assert outdated([fails, passes], self.known, tests) == [".*::test_mul_.* no longer fails so: because"]
        assert outdated([fails], self.known, tests) == []  # the other did not run

    def test_file(self, tmp_path: Path) -> None:
        path = tmp_path / "known.toml"
        path.write_text('[[difference]]\nwhy = "because"\ntests = ["a"]\nmessage = "b"\nbefore_torch = "2.15"\n')
        assert read(path, "2.14.1") == [Difference("because", ("a",), "b")]
        assert read(path, "2.15.0") == []
        path.write_text('[[difference]]\nwhy = "because"\ntests = ["a"]\nfrom_torch = "2.14"\n')
        assert read(path, "2.14.1") == [Difference("because", ("a",))]
        assert read(path, "2.11.0") == []


class TestKept:
    def test_results(self, tmp_path: Path) -> None:
        path, fine, crashed = tmp_path / "results.jsonl", result("test_x"), result("test_y", Verdict.CRASH)
        file = ResultFile(path, SUBJECT)
        for one in (fine, crashed):
            file.add(one)
        file.close()
        assert ResultFile(path, SUBJECT).results == {fine.test: fine}
        assert ResultFile(path, Subject("2.12.0", "a GPU", "0123", "")).results == {}

    def test_results_beside_those_of_later_libraries(self, tmp_path: Path) -> None:
        path = tmp_path / "results.jsonl"
        crashed, failed = result("test_x", Verdict.CRASH), result("test_y", Verdict.FAIL)
        file = ResultFile(path, SUBJECT)
        for one in (crashed, failed):
            file.add(one)
        file.close()
        for _ in range(2):
            file = ResultFile.of_later_libraries(path, replace(SUBJECT, libraries="4567"), [failed.test])
            file.add(result("test_y"))
            file.close()
        subject, found = read_all(path)
        assert subject == replace(SUBJECT, libraries="0123, then 4567")
        assert found == {crashed.test: crashed, failed.test: result("test_y")}
        assert "again with a later build" in page.render(found.values(), found, [], subject, None)
        with pytest.raises(OtherSubjectError, match="has results of"):
            ResultFile.of_later_libraries(path, replace(SUBJECT, torch="2.12.0"), [])

    def test_results_of_a_file_that_changed(self, tmp_path: Path) -> None:
        path, one, other = tmp_path / "results.jsonl", result("test_x"), result("test_x", file="test_torch.py")
        digests = {"test_ops.py": "0", "test_torch.py": "1"}
        for now, kept in (
            (digests, {}),
            ({"test_ops.py": "0"}, {one.test: one, other.test: other}),  # the other file is not in this run
            ({"test_ops.py": "2"}, {other.test: other}),
        ):
            file = ResultFile(path, replace(SUBJECT, files=now))
            assert file.results == kept
            if not kept:
                file.add(one)
                file.add(other)
            file.close()

    def test_page_of_a_shard(self) -> None:
        results = [result("test_x"), result("suite", Verdict.SKIP, file="suites/operators.py")]
        everything = [*(one.test for one in results), Test("test_ops.py", "TestCommonDML", "test_z")]
        text = page.render(results, everything, [], SUBJECT, Shard(1, 3))
        assert "part 1/3 of the tests" in text
        assert "| test_ops.py | 2 | 1 | 1 | 0 | 0 | 0 | 0 | 0 | 0 |" in text
        assert "| all | 3 | 2 | 1 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
