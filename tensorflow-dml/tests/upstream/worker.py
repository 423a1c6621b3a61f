"""A process that runs the tests of one file: `python -m upstream.worker --help`.

It says what it does on the file descriptor that --report names, as JSON lines: the tests of the
file first, then each test before it starts and after it ended. The parent so knows which test it
was that ended the process.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import random
import re
import sys
import time
import types
import unittest
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_dml
from absl import flags
from absl.testing import absltest
from tensorflow.python.framework import load_library
from tensorflow.python.platform import googletest


class _Helpers(importlib.abc.MetaPathFinder):
    """Modules of tensorflow.python that only the source tree has: what the tests share."""

    def __init__(self, tree: Path) -> None:
        self._tree = tree

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Asked last, after the installed TensorFlow has no such module."""
        if not fullname.startswith("tensorflow.python."):
            return None
        place = self._tree.joinpath(*fullname.split("."))
        if place.is_dir():
            return importlib.util.spec_from_file_location(
                fullname, place / "__init__.py", submodule_search_locations=[str(place)]
            )
        file = place.with_suffix(".py")
        return importlib.util.spec_from_file_location(fullname, file) if file.exists() else None


def _import(tree: Path, name: str) -> types.ModuleType:
    """Run a test file as the program that it is, up to where it would start its tests: many files
    make some of them just before.
    """
    sys.meta_path.append(_Helpers(tree))
    path = tree / "tensorflow" / "python" / name
    googletest.main = absltest.main = lambda *_, **__: None
    flags.FLAGS([str(path)])
    module = types.ModuleType("__main__")
    module.__file__ = str(path)
    sys.argv = [str(path)]
    sys.modules["__main__"] = module
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), module.__dict__)
    return module


def _tests(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _tests(one)
        # A context manager of TensorFlow's class of tests, whose name looks like one.
        elif not one.id().endswith(".test_session"):
            yield one


def _name(test: unittest.TestCase) -> str:
    return f"{type(test).__qualname__}.{test._testMethodName}"


def _chosen(name: str, choice: dict[str, Any]) -> bool:
    only: list[str] | None = choice["only"]
    return name not in choice["done"] and (only is None or name in only) and bool(re.search(choice["pattern"], name))


class _Outcome(unittest.TestResult):
    """How one test ended."""

    def verdict(self) -> tuple[str, str]:
        """The verdict and the message."""
        problems = self.errors + self.failures
        if problems:
            return "failed", "\n".join(text for _, text in problems)[-6000:]
        if self.unexpectedSuccesses:
            return "failed", "unexpected success"
        if self.skipped:
            return "skipped", self.skipped[0][1]
        if self.expectedFailures:
            return "skipped", "TensorFlow expects it to fail"
        return "passed", ""


def _watch() -> None:
    # Tests may have made a new context, which has no callbacks.
    tensorflow_dml.watch_fallbacks()
    tensorflow_dml.reset_fallbacks()


def main() -> None:
    """Run the tests."""
    parser = argparse.ArgumentParser(prog="python -m upstream.worker", description=__doc__)
    parser.add_argument("tree", type=Path)
    parser.add_argument("file", help="below tensorflow/python")
    parser.add_argument("--report", type=int, required=True, metavar="FD")
    parser.add_argument("--library", metavar="PATH", help="the plugin (default: the CPU alone)")
    parser.add_argument("--choice", type=Path, required=True, metavar="FILE", help="JSON: which tests to run")
    options = parser.parse_args()
    report = os.fdopen(options.report, "w", encoding="utf-8", buffering=1)

    def say(**what: Any) -> None:
        report.write(json.dumps(what) + "\n")

    if options.library:
        if not tf.config.list_physical_devices("GPU"):
            load_library.load_pluggable_device_library(options.library)
        assert tf.config.list_physical_devices("GPU"), "the plugin offers no device"
    warnings.filterwarnings("ignore", "tensorflow-dml has no kernel", RuntimeWarning)
    module = _import(options.tree, options.file)
    tests = list(_tests(unittest.defaultTestLoader.loadTestsFromModule(module)))
    say(tests=[_name(test) for test in tests])
    choice = json.loads(options.choice.read_text(encoding="utf-8"))
    for test in tests:
        if not _chosen(_name(test), choice):
            continue
        say(start=_name(test))
        random.seed(1)
        np.random.seed(1)
        outcome = _Outcome()
        began = time.monotonic()
        if options.library:
            _watch()
        unittest.TestSuite([test]).run(outcome)  # with what its class and module prepare
        verdict, message = outcome.verdict()
        fallbacks = sorted(tensorflow_dml.fallbacks()) if options.library else []
        say(end=_name(test), verdict=verdict, message=message, fallbacks=fallbacks, seconds=time.monotonic() - began)
    report.close()
    # What a test left behind may hang at the end.
    os._exit(0)


if __name__ == "__main__":
    main()
