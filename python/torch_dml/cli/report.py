"""`report`: a text file for bug reports, shown as it is written. Nothing is sent.

It contains no paths and no names of persons. Checks that may crash run in a child process, so that
there is a report even if nothing works.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch_dml import environment, record, vulkan
from torch_dml._version import __version__
from torch_dml.cli.child import probe
from torch_dml.scrub import scrub
from torch_dml.sizes import size

# Omitted from a device's description: what distinguishes one machine from another, and the memory
# that is free at the moment.
_LEFT_OUT = {"index", "uuid", "memory_free"}
_QUIET = {"TORCH_DML_RECORD": "0"}


def run(target: str) -> int:
    """Write the report to the file `target`, print it, and return 0; 1 if the file cannot be
    written.
    """
    text = "\n".join(_lines()) + "\n"
    print(text)
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        print(f"error: {target} is not written: {error.strerror}", file=sys.stderr)
        return 1
    print(f"This is in {target} now. It was not sent anywhere: read it before you give it to somebody.")
    return 0


def _lines() -> Iterator[str]:
    # Read before a probe could overwrite it.
    last_run = record.read()
    yield "torch-dml report"
    for title, lines in (
        ("versions", _versions()),
        ("Vulkan", _vulkan()),
        ("devices", _devices()),
        ("operators", _operators()),
        ("environment", _environment()),
        ("last run", _last_run(last_run)),
    ):
        yield f"\n{title}"
        yield from (f"  {line}" for line in lines)


def _versions() -> Iterator[str]:
    yield f"torch-dml    {__version__}"
    yield f"engine       {_answer('engine')}"
    yield f"torch        {_answer('torch', TORCH_DEVICE_BACKEND_AUTOLOAD='0')}"
    yield f"plugins for  {_answer('plugin')}"
    yield f"Python       {platform.python_version()} ({platform.python_implementation()})"
    libc = " ".join(platform.libc_ver()).strip()
    yield f"system       {platform.system()} {platform.release()} {platform.machine()} {libc}".rstrip()
    yield f"kind         {vulkan.system()}"


def _vulkan() -> Iterator[str]:
    error = vulkan.loader_error()
    version = vulkan.loader_version() or "of unknown version"
    yield f"loader       {f'does not load: {scrub(error)}' if error else version}"
    # Their values are paths.
    for name in vulkan.driver_variables():
        yield f"{name} is set"


def _devices() -> Iterator[str]:
    found = probe("devices", **_QUIET)
    if not found["ok"]:
        yield scrub(found["error"])
        return
    tests = probe("kernels", **_QUIET)
    devices = found["value"]["devices"]
    problems = tests["value"] if tests["ok"] else [tests["error"]] * len(devices)
    for device, problem in zip(devices, problems, strict=False):
        yield f"dml:{device['index']}"
        for name, value in device.items():
            if name not in _LEFT_OUT:
                yield f"  {name:20} {_value(name, value)}"
        yield f"  {'a kernel':20} {f'failed: {scrub(problem)}' if problem else 'computed 1 + 2'}"
    if not devices:
        yield "none"
    for adapter in found["value"]["unsupported"]:
        yield f"not usable: {adapter.get('name', '')}: {scrub(str(adapter.get('reason', '')))}"


def _operators() -> Iterator[str]:
    found = probe("operators", **_QUIET)
    if not found["ok"]:
        yield scrub(found["error"])
        return
    yield f"{found['value']['registered']} run on the device"
    for name in found["value"]["changed"]:
        yield f"runs on the CPU, changed in this torch: {name}"


def _environment() -> Iterator[str]:
    names = [name for name in sorted(environment.VARIABLES) if os.environ.get(name)]
    for name in names:
        value = os.environ[name]
        plain = not environment.VARIABLES[name].is_path and environment.get(name) is not None
        yield f"{name}={scrub(value)}" if plain else f"{name} is set"
    if not names:
        yield "no variable of torch-dml is set"


def _last_run(found: dict[str, Any] | None) -> Iterator[str]:
    if found is None:
        yield "not recorded. Run the program again with TORCH_DML_RECORD=1, and then this"
        return
    yield f"torch-dml {found.get('torch_dml')}, torch {found.get('torch')}, {found.get('seconds')} s"
    error = found.get("error")
    yield f"ended with {error['type']}: {error['message']}" if error else "ended without an error"
    fallbacks: dict[str, int] = found.get("fallbacks") or {}
    for name, count in sorted(fallbacks.items(), key=lambda item: -item[1]):
        yield f"ran on the CPU: {name} ({count})"
    if not fallbacks:
        yield "every operator ran on the device"


def _answer(step: str, **variables: str) -> str:
    found = probe(step, **_QUIET, **variables)
    return str(found["value"]) if found["ok"] else f"not usable: {scrub(found['error'])}"


def _value(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return size(value) if name.startswith("memory") and isinstance(value, int) else str(value)
