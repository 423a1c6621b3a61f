"""What every test has: a seed, the device, and a check that no operator fell back to the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

# Two devices on every machine. Read when the first device is asked for.
os.environ.setdefault("TORCH_DML_DEVICES_PER_ADAPTER", "2")

import torch
import torch_dml
from torch_dml import engine

ROOT = Path(__file__).resolve().parents[1]

# The running torch, as (major, minor).
TORCH = tuple(int(part) for part in torch.__version__.split(".")[:2])

# Largest differences from the CPU: relative, absolute.
TOLERANCES = {
    torch.float64: (1e-12, 1e-12),
    torch.float32: (1e-5, 1e-6),
    torch.float16: (2e-3, 1e-3),
    torch.bfloat16: (1.6e-2, 1e-2),
}


def pytest_report_header() -> list[str]:
    names = [torch.dml.get_device_name(index) for index in range(torch.dml.device_count())]
    return [f"torch {torch.__version__}, torch-dml {torch_dml.__version__} from {Path(torch_dml.__file__).parent}"] + [
        f"dml:{index} {name}" for index, name in enumerate(names)
    ]


# What `in_threads` runs.
THREADS = 8


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
        assert torch_dml.fallbacks() == {}, "operators fell back to the CPU"


@pytest.fixture(autouse=True)
def no_validation_errors() -> Iterator[None]:
    """Fails the test that does what Vulkan's validation layer objects to, with TORCH_DML_VALIDATION=1."""
    if os.environ.get("TORCH_DML_VALIDATION", "0") in ("", "0"):
        yield
        return
    before = {message["id"]: message["count"] for message in engine.validation_messages()}
    yield
    for index in range(torch.dml.device_count()):  # What is still pending would be another test's.
        try:
            torch.dml.synchronize(index)
        except RuntimeError:  # The test may have broken the device or left a bad index behind.
            pass
    new = [m for m in engine.validation_messages() if m["count"] > before.get(m["id"], 0)]
    assert not new, "the validation layer objects:\n" + "\n".join(message["text"] for message in new)


def to_device(value: Any, device: torch.device | str) -> Any:
    """A copy of `value` with every tensor in it on `device`, as leaves of their own."""
    if isinstance(value, torch.Tensor):
        return value.detach().to(device).requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_device(item, device) for item in value)
    if isinstance(value, dict):
        return {key: to_device(item, device) for key, item in value.items()}
    return value


def assert_same(actual: Any, expected: Any, rtol: float | None = None, atol: float | None = None) -> None:
    """What the device gave equals what the CPU gave: value, dtype, shape; NaN equals NaN."""
    if isinstance(expected, torch.Tensor):
        relative, absolute = TOLERANCES.get(expected.dtype, (0.0, 0.0))
        torch.testing.assert_close(
            actual.detach().cpu(),
            expected.detach(),
            rtol=relative if rtol is None else rtol,
            atol=absolute if atol is None else atol,
            equal_nan=True,
        )
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for one, other in zip(actual, expected, strict=True):
            assert_same(one, other, rtol, atol)
    else:
        assert actual == expected or (actual != actual and expected != expected)


def assert_matches_cpu(
    function: Callable[..., Any],
    *args: Any,
    rtol: float | None = None,
    atol: float | None = None,
    device: torch.device | str = "dml",
    **kwargs: Any,
) -> Any:
    """Run `function` on CPU tensors and on copies on the device, and compare the results.

    Where an argument requires a gradient, gradients are compared too: those of the sum of all results, each element
    with a weight of its own (with equal ones the gradients of many functions vanish, normalisation's among them).
    Returns the device's result.
    """
    cpu_args, cpu_kwargs = to_device(args, "cpu"), to_device(kwargs, "cpu")
    dml_args, dml_kwargs = to_device(args, device), to_device(kwargs, device)
    expected, actual = function(*cpu_args, **cpu_kwargs), function(*dml_args, **dml_kwargs)
    assert_same(actual, expected, rtol, atol)
    leaves = [
        (ours, theirs)
        for ours, theirs in zip(_tensors((dml_args, dml_kwargs)), _tensors((cpu_args, cpu_kwargs)), strict=True)
        if theirs.requires_grad
    ]
    if leaves:
        for result in (actual, expected):
            parts = [part for part in _tensors(result) if part.requires_grad]
            torch.autograd.backward(parts, [cosines(part) for part in parts])
        for ours, theirs in leaves:
            assert (ours.grad is None) == (theirs.grad is None)
            if theirs.grad is not None:
                assert_same(ours.grad, theirs.grad, rtol, atol)
    return actual


def cosines(like: torch.Tensor) -> torch.Tensor:
    """The cosines of 0, 1, 2, ... in a tensor's shape, dtype and place; made on the CPU, so that places agree."""
    angles = torch.arange(like.numel(), dtype=torch.float64).reshape(like.shape)
    return angles.cos().to(like.dtype).to(like.device)


def words(text: str) -> list[str]:
    """The names in a list of them."""
    return text.split()


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in _tensors(item)]
    return []


def in_threads(work: Callable[[int], None]) -> None:
    """Run `work(0)` to `work(7)` at once, each in a thread of its own; raise the first error."""
    errors: list[BaseException] = []
    start = threading.Barrier(THREADS)

    def run(index: int) -> None:
        try:
            start.wait()
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def run_python(*arguments: str, timeout: float = 300, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a new Python, from the repository's root, with variables added to the environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
