"""Fixtures of every test: a seed, the device, and a check that no operator fell back to the CPU."""

from __future__ import annotations

import os
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

# Two devices on every machine. Read when the first device is opened.
os.environ.setdefault("TORCH_DML_DEVICES_PER_ADAPTER", "2")
# No warnings of software adapters, and none in addition to GPUs.
os.environ.setdefault("TORCH_DML_SOFTWARE", "0")
# Mesa's software adapter compiles without optimisation: most kernels of the tests are compiled once
# and run a few times.
os.environ.setdefault("GALLIVM_PERF", "nopt")

import torch
import torch_dml
from torch_dml import engine

from tests.support.dtypes import refuses_float64
from tests.support.fallbacks import assert_nothing_fell_back


def pytest_report_header() -> list[str]:
    names = [torch.dml.get_device_name(index) for index in range(torch.dml.device_count())]
    return [f"torch {torch.__version__}, torch-dml {torch_dml.__version__} from {Path(torch_dml.__file__).parent}"] + [
        f"dml:{index} {name}" for index, name in enumerate(names)
    ]


class FailuresAtOnce:
    """Prints a failure when it happens: the summary at the end is lost if a run is stopped."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and reporter is not None:
            reporter.ensure_newline()
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = getattr(crash, "message", report.longreprtext)
            reporter.write_line(f"FAILED {report.nodeid} in {report.duration:.0f} s, {report.when}: {reason}")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # Processes of xdist report to one that prints.
        config.pluginmanager.register(FailuresAtOnce(config), "failures_at_once")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With TEST_SHARD=i/n only the smoke tests and part i of the others are run; with TEST_PART=i/n
    the files of part i.
    """

    def is_in(part: str, name: str) -> bool:
        number, parts = map(int, part.split("/"))
        return zlib.crc32(name.encode()) % parts == number

    chosen = items
    if shard := os.environ.get("TEST_SHARD"):
        chosen = [item for item in chosen if item.get_closest_marker("smoke") is not None or is_in(shard, item.nodeid)]
    if part := os.environ.get("TEST_PART"):
        chosen = [item for item in chosen if is_in(part, item.nodeid.partition("::")[0])]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """On an adapter without float64, a test is skipped if the device refuses it."""
    try:
        return (yield)
    except Exception as error:
        if refuses_float64(error):
            pytest.skip(str(error))
        raise


@pytest.fixture(autouse=True)
def seed() -> int:
    """The same random numbers in every test, on every device."""
    torch.manual_seed(0)
    return 0


@pytest.fixture
def device() -> torch.device:
    return torch.device("dml")


@pytest.fixture(autouse=True)
def no_fallback(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fails a test in which an operator ran on the CPU, unless it is marked allow_fallback."""
    torch_dml.reset_fallbacks()
    yield
    if request.node.get_closest_marker("allow_fallback") is None:
        assert_nothing_fell_back()


@pytest.fixture(autouse=True)
def no_validation_errors() -> Iterator[None]:
    """Fails a test that causes messages of Vulkan's validation layer, with
    TORCH_DML_VALIDATION=1.
    """
    if os.environ.get("TORCH_DML_VALIDATION") != "1":
        yield
        return
    before = {message["id"]: message["count"] for message in engine.validation_messages()}
    yield
    for index in range(torch.dml.device_count()):  # Pending work would be attributed to another test.
        try:
            torch.dml.synchronize(index)
        except RuntimeError:  # The test may have lost the device or left a bad index unreported.
            pass
    new = [m for m in engine.validation_messages() if m["count"] > before.get(m["id"], 0)]
    assert not new, "the validation layer objects:\n" + "\n".join(message["text"] for message in new)
