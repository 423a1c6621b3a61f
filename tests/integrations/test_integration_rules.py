"""torch_dml.integrations: when a library is modified, by what, and how that is undone."""

from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch_dml import environment, integrations, on_import
from torch_dml.integrations import patching


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A library of version 1.5 that chooses between CUDA and the CPU, and nothing else; its
    integration is empty.
    """
    module = types.ModuleType("some_library")
    code = """
import torch
__version__ = "1.5rc2"
def is_cuda_available(): return torch.cuda.is_available()
def choose(index=0): return torch.device(f"cuda:{index}") if is_cuda_available() else torch.device("cpu")
def count(): return [torch.cuda.device_count() for _ in range(2)]
def accepts(device): return device.type in ("cuda", "xpu")
def plain(include_cuda=False): return include_cuda
def calls(): return plain(include_cuda=True), "cuda"
"""
    exec(code, vars(module))
    integration = SimpleNamespace(TESTED=("1.2", "2"), apply=lambda module: None)
    monkeypatch.setitem(sys.modules, "some_library", module)
    monkeypatch.setitem(sys.modules, "torch_dml.integrations.some_library", integration)
    yield module
    integrations._active.pop("some_library", None)


def integrate(module: ModuleType, apply: Callable[[Any], None] | None = None, **changes: Any) -> None:
    integration: Any = sys.modules["torch_dml.integrations.some_library"]
    vars(integration).update(changes)
    if apply is not None:
        integration.apply = apply
    integrations._integrate("some_library", module)


def test_the_branch_for_cuda_becomes_the_devices(library: Any) -> None:
    def apply(module: Any) -> None:
        patching.take_cuda_branch(module.choose, is_dml_available=lambda: True)
        for function in (module.count, module.accepts, module.calls):
            patching.take_cuda_branch(function)

    choose = library.choose
    integrate(library, apply)
    assert choose is library.choose and choose(1) == torch.device("dml", 1)
    assert library.count() == [torch.dml.device_count()] * 2
    assert [library.accepts(torch.device(name)) for name in ("dml", "cpu", "xpu")] == [True, False, True]
    assert library.calls() == (True, "dml")
    assert patching.has_taken_cuda_branch(choose) and not patching.has_taken_cuda_branch(library.plain)
    assert integrations.active()["some_library"] == "1.5rc2"


@pytest.mark.parametrize("tested", [("1.6", "2"), ("1", "1.5"), ("0.1", "1.4.9")])
def test_a_version_that_was_not_tried_is_left_alone(library: Any, tested: tuple[str, str]) -> None:
    with pytest.warns(RuntimeWarning, match=f"some_library 1.5rc2 as it is: it was tried with {tested[0]}") as seen:
        integrate(library, lambda module: pytest.fail("applied"), TESTED=tested)
    assert len(seen) == 1 and "some_library" not in integrations.active()


def test_an_integration_that_fails_is_undone(library: Any) -> None:
    def apply(module: Any) -> None:
        patching.take_cuda_branch(module.count)
        patching.put(module, "plain", None)
        patching.put_everywhere(module.accepts, None)
        patching.take_cuda_branch(module.choose)  # calls is_cuda_available, for which there is no replacement

    before = dict(vars(library))
    codes = library.count.__code__, library.choose.__code__
    with pytest.warns(RuntimeWarning, match="some_library as it is.*choose calls is_cuda_available") as seen:
        integrate(library, apply)
    assert len(seen) == 1 and "some_library" not in integrations.active()
    assert dict(vars(library)) == before and (library.count.__code__, library.choose.__code__) == codes


def test_a_module_imported_later_belongs_to_the_same_changes(library: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("some_first", "some_second"):
        (tmp_path / f"{name}.py").write_text("value = 1")

    def apply(module: Any) -> None:
        patching.take_cuda_branch(module.count)
        patching.when_imported("some_first", lambda first: patching.take_cuda_branch(len))
        patching.when_imported("some_second", lambda second: patching.put(second, "value", 2))

    code = library.count.__code__
    integrate(library, apply)
    assert library.count.__code__ != code and "some_library" in integrations.active()
    with pytest.warns(RuntimeWarning, match="leaves some_library as it is"):
        importlib.import_module("some_first")
    assert library.count.__code__ == code and not patching.has_taken_cuda_branch(library.count)
    assert "some_library" not in integrations.active()
    assert importlib.import_module("some_second").value == 1


def test_nothing_is_changed_beside_an_accelerator_of_torch(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integrations, "_torch_has_an_accelerator", lambda: True)
    integrate(library, lambda module: pytest.fail("applied"), TESTED=("9", "10"))
    assert "some_library" not in integrations.active()


@pytest.mark.parametrize("failing", [False, True])
def test_a_package_that_imports_torch_is_known_when_it_is_done(tmp_path: Path, monkeypatch: Any, failing: bool) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name, of_torch = f"some_package_{failing}", f"some_torch_{failing}"
    (tmp_path / f"{name}.py").write_text(f"import {of_torch}\nvalue = 1 // {int(not failing)}")
    (tmp_path / f"{of_torch}.py").write_text("")
    seen: list[Any] = []

    def register(_: ModuleType) -> None:
        on_import.when_imported(name, lambda module: seen.append(vars(module).get("value")))

    on_import.when_imported(of_torch, register)
    if failing:
        with pytest.raises(ZeroDivisionError):
            importlib.import_module(name)
        assert not seen
        (tmp_path / f"{name}.py").write_text("value = 1")
        importlib.invalidate_caches()
    package = importlib.import_module(name)
    assert seen == [1]
    assert package.__spec__ is not None and not vars(package.__spec__)["_initializing"]
    assert importlib.reload(package) is package


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        (None, environment.INTEGRATIONS),
        ("none", ()),
        ("lightning,accelerate", ("lightning", "accelerate")),
        ("-lightning,-accelerate", set(environment.INTEGRATIONS) - {"lightning", "accelerate"}),
        ("lightning,-accelerate", environment.INTEGRATIONS),
        ("lightening", environment.INTEGRATIONS),
    ],
)
def test_integrations_are_chosen_by_name(value: str | None, chosen: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_DML_INTEGRATIONS", value or "")
    assert set(environment.chosen_integrations()) == set(chosen)


def test_each_has_a_file() -> None:
    files = {path.stem for path in Path(integrations.__file__).parent.glob("*.py")} - {"__init__", "patching"}
    assert files == set(environment.INTEGRATIONS)
