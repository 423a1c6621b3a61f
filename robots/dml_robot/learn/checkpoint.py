"""Checkpoints: written atomically, and read without executing code in them."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from dml_robot.errors import CheckpointError

FORMAT = "dml-robot checkpoint"
VERSION = 1
_ARRAY = "numpy array"


def write(path: Path, contents: dict[str, Any]) -> None:
    """Write a dictionary of plain values, tensors and arrays; raise CheckpointError on failure.

    The file is always either the old one or the complete new one: the new one is written next to
    it, flushed to the disk and renamed.
    """
    buffer = io.BytesIO()
    torch.save(_packed({"format": FORMAT, "version": VERSION, **contents}), buffer)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, buffer.getbuffer())
    except OSError as error:
        kept = f"; {path} is still the one before" if path.exists() else ""
        raise CheckpointError(f"cannot write {path}: {error.strerror or error}{kept}") from error


def read(path: Path) -> dict[str, Any]:
    """Return a checkpoint's contents, on the CPU; raise CheckpointError for a missing, foreign or
    damaged file.
    """
    try:
        contents = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"there is no checkpoint at {path}") from error
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:
        # torch.load raises a dozen types of errors for truncated or foreign files.
        raise CheckpointError(f"{path} is damaged, or no checkpoint of dml-robot") from error
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        raise CheckpointError(f"{path} is no checkpoint of dml-robot")
    if contents.get("version") != VERSION:
        raise CheckpointError(f"{path} is of version {contents.get('version')}, and this dml-robot reads {VERSION}")
    found: dict[str, Any] = _unpacked(contents)
    return found


def replace(path: Path, data: Any) -> None:
    """Write bytes to a path atomically; on failure raise OSError and leave the old file."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def copied(value: Any) -> Any:
    """Return a copy of nested dictionaries, lists, tensors and arrays, with the tensors on the
    CPU.
    """
    return _unpacked(_packed(value))


def _packed(value: Any) -> Any:
    """Return a copy that `torch.load` reads with weights_only: arrays become marked tensors, and
    tensors are copied to the CPU.
    """
    if isinstance(value, Tensor):
        return value.detach().to("cpu", copy=True)
    if isinstance(value, np.ndarray):
        return {_ARRAY: torch.from_numpy(np.array(value))}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: _packed(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_packed(part) for part in value]
    return value


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {_ARRAY}:
            return value[_ARRAY].numpy()
        return {key: _unpacked(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_unpacked(part) for part in value]
    return value
