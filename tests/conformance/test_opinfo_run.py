"""The infrastructure around OpInfo's judgement: worker processes, saved results, known differences
and the page.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.opinfo import differences, page, worker
from tests.opinfo.differences import Difference
from tests.opinfo.results import Result, ResultFile, Subject, Verdict, read_all
from tests.opinfo.tasks import DTYPES, Task, all_tasks, select
from tests.support.shards import Shard

SUBJECT = Subject("2.11", "a GPU", "0123", seed=0, max_samples=0, backward=True)


def result(name: str, verdict: Verdict = Verdict.PASS, dtype: str = "float32", *fallbacks: str) -> Result:
    return Result(Task(name, dtype), verdict, message=verdict.value, fallbacks=dict.fromkeys(fallbacks, 1))


def act(task: Task) -> Result:
    """A worker's reaction to a task in these tests: its name says what it does."""
    if task.operator == "crash":
        print("the last words", flush=True)
        os._exit(3)
    if task.operator == "sleep":
        time.sleep(600)
    words = "the device was lost" if task.operator == "lose" else ""
    return Result(task, Verdict.PASS, f"{words} {os.getpid()}")


def perform(*names: str, jobs: int = 1, timeout: float = 300) -> dict[str, Result]:
    tasks = [Task(name, "float32") for name in names]
    return {result.task.operator: result for result in worker.run(tasks, act, jobs, timeout)}


class TestWorker:
    def test_a_crash_costs_one_task(self) -> None:
        found = perform("before", "crash", "after")
        assert [found[name].verdict for name in ("before", "after")] == [Verdict.PASS] * 2
        assert found["crash"].verdict is Verdict.CRASH
        assert found["crash"].message == "the process ended with 3: the last words"
        assert found["before"].message != found["after"].message

    def test_a_task_that_takes_too_long(self) -> None:
        found = perform("sleep", "after", timeout=1)
        assert found["sleep"].verdict is Verdict.TIMEOUT and found["sleep"].message == "more than 1 s"
        assert found["after"].verdict is Verdict.PASS

    def test_a_lost_device_is_not_handed_on(self) -> None:
        found = perform("before", "lose", "after")
        assert found["before"].message.split()[-1] == found["lose"].message.split()[-1]
        assert found["after"].message.split()[-1] != found["lose"].message.split()[-1]

    def test_several_processes(self) -> None:
        names = [str(index) for index in range(20)]
        found = perform(*names, jobs=2)
        assert set(found) == set(names)
        assert perform() == {}


class TestResults:
    def test_json(self) -> None:
        one = replace(result("add", Verdict.FAIL), samples={"pass": 3, "fail": 1}, unchecked=2, seconds=0.5)
        assert Result.from_line(json.loads(json.dumps(one.to_line()))) == one

    @pytest.fixture
    def kept(self, tmp_path: Path) -> Callable[..., dict[Task, Result]]:
        """Opens a file, and returns the results that it has saved."""

        def open_file(
            subject: Subject = SUBJECT, add: tuple[Result, ...] = (), fresh: bool = False
        ) -> dict[Task, Result]:
            file = ResultFile(tmp_path / "results.jsonl", subject, fresh)
            before = dict(file.results)
            for one in add:
                file.add(one)
            file.close()
            return before

        return open_file

    def test_a_run_goes_on(self, kept: Callable[..., dict[Task, Result]], tmp_path: Path) -> None:
        ended = (result("add"), result("mul", Verdict.FAIL))
        assert kept(add=(*ended, result("sub", Verdict.CRASH), result("div", Verdict.TIMEOUT))) == {}
        with (tmp_path / "results.jsonl").open("a") as file:
            file.write('{"operator": "ha')  # the process was killed while writing
        assert kept() == {one.task: one for one in ended}
        assert kept() == {one.task: one for one in ended}
        assert kept(fresh=True) == {}

    def test_all_of_a_file(self, kept: Callable[..., dict[Task, Result]], tmp_path: Path) -> None:
        crashed = result("sub", Verdict.CRASH)
        kept(add=(result("add"), crashed))
        subject, results = read_all(tmp_path / "results.jsonl")
        assert subject == SUBJECT and results[crashed.task] == crashed and len(results) == 2

    def test_another_subject_starts_anew(self, kept: Callable[..., dict[Task, Result]]) -> None:
        kept(add=(result("add"),))
        assert kept(replace(SUBJECT, libraries="4567")) == {}
        assert kept() == {}


class TestDifferences:
    known = (Difference("because", ("add", "mul"), ("float32", "bool")),)

    def test_unexplained(self) -> None:
        failed = [result("add", Verdict.FAIL), result("add", Verdict.FAIL, "int64"), result("sub", Verdict.CRASH)]
        fine = [result("div"), result("exp", Verdict.UNIMPLEMENTED), result("log", Verdict.SKIP)]
        assert differences.unexplained(failed + fine, list(self.known)) == failed[1:]

    def test_outdated(self) -> None:
        tasks = [Task(name, dtype) for name in ("add", "mul") for dtype in ("float32", "bool", "int64")]
        right = [result("add"), result("add", dtype="bool")]
        assert differences.outdated(right, self.known, tasks) == ["add no longer differs: because"]
        assert differences.outdated(right[:1], self.known, tasks) == []  # bool was not run
        assert differences.outdated([right[0], result("add", Verdict.FAIL, "bool")], self.known, tasks) == []

    def test_operators_that_do_not_exist(self) -> None:
        assert differences.outdated([], self.known, []) == [
            "add no longer differs: because",
            "mul no longer differs: because",
        ]

    def test_file(self, tmp_path: Path) -> None:
        path = tmp_path / "differences.toml"
        path.write_text('[[difference]]\nwhy = "because"\noperators = ["add", "mul"]\ndtypes = ["float32", "bool"]\n')
        assert differences.read(path, "2.11") == list(self.known)

    def test_differences_of_older_torches(self, tmp_path: Path) -> None:
        path = tmp_path / "differences.toml"
        path.write_text(
            '[[difference]]\nwhy = "because"\noperators = ["add"]\ndtypes = ["bool"]\nbefore_torch = "2.15"\n'
        )
        assert [len(differences.read(path, version)) for version in ("2.9", "2.11", "2.15", "2.16")] == [1, 1, 0, 0]


class TestPage:
    def test_round_trip(self, tmp_path: Path) -> None:
        results = [
            result("sub", Verdict.UNIMPLEMENTED, "bool"),
            result("add", Verdict.FAIL),
            result("add", Verdict.PASS, "int64", "aten::add", "aten::copy"),
            result("add", dtype="float16"),
            replace(result("mul", Verdict.SKIP), message="sample 0: the CPU has none. This may b"),
        ]
        path = tmp_path / "operators.md"
        path.write_text(page.render(results, [Difference("because", ("add",), ("float32",))], SUBJECT))
        assert page.read_marks(path) == {
            Task("add", "float32"): "differs",
            Task("add", "float16"): "native",
            Task("add", "int64"): "cpu",
            Task("sub", "bool"): "no",
        }
        assert page.read_torch(path) == "2.11"
        text = path.read_text()
        assert "- because: `add` (float32)." in text
        assert "- `aten::add`, `aten::copy`: `add` (int64)." in text
        assert "- the CPU has none: `mul` (float32)." in text
        assert "| float32 | 2 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in text
        assert "| all | 5 | 4 | 1 | 1 | 1 | 1 | 0 | 0 | 0 |" in text

    def test_a_page_that_is_not_there_yet(self, tmp_path: Path) -> None:
        assert page.read_marks(tmp_path / "operators.md") == {}


class TestTasks:
    def test_shards_are_a_partition(self) -> None:
        everything = all_tasks()
        parts = [select(everything, shard=Shard(index, 5)) for index in range(5)]
        assert sorted(task for part in parts for task in part) == sorted(everything)
        assert min(map(len, parts)) > len(everything) // 7

    def test_a_shard_is_the_same_everywhere(self) -> None:
        shards = [[index for index in range(100) if Task("add", name) in Shard(index, 100)] for name in DTYPES]
        assert shards == [[68], [6], [94], [67], [35], [57], [80], [40], [9], [65]]

    @pytest.mark.parametrize("text", ["", "3", "4/4", "-1/4", "a/b", "0/0"])
    def test_what_is_no_shard(self, text: str) -> None:
        with pytest.raises(ValueError):
            Shard.parse(text)

    def test_select(self) -> None:
        everything = all_tasks()
        assert len(set(everything)) == len(everything)
        assert select(everything, "^add$", ("float32", "bool")) == [Task("add", "float32"), Task("add", "bool")]
