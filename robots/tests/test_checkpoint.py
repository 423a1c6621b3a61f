"""Checkpoints that are missing, foreign, damaged or hostile, and disks that are full."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from dml_robot import policy
from dml_robot.errors import CheckpointError
from dml_robot.learn import checkpoint
from dml_robot.policy import Policy
from torch import nn


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = tmp_path / "checkpoint.pt"
    made = Policy([nn.Linear(24, 8), nn.Linear(8, 6)], "elu", "clip")
    checkpoint.write(path, {"policy": made.describe(), "training": None})
    return path


def one_line(error: pytest.ExceptionInfo[CheckpointError]) -> str:
    text = str(error.value)
    assert "\n" not in text and text
    return text


def test_what_is_written_is_read(tmp_path: Path):
    contents = {
        "numbers": [1, 2.5, None, True, "text", 2**100],
        "tensor": torch.arange(3),
        "array": np.arange(4, dtype=np.float64),
        "nested": {"tuple": (1, torch.ones(2))},
        5: np.float32(0.5),
    }
    checkpoint.write(tmp_path / "c.pt", contents)
    found = checkpoint.read(tmp_path / "c.pt")
    assert found["numbers"] == contents["numbers"] and found[5] == 0.5
    assert torch.equal(found["tensor"], torch.arange(3))
    assert isinstance(found["array"], np.ndarray) and found["array"].dtype == np.float64
    assert found["nested"]["tuple"][0] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["c.pt"]


def test_a_missing_one(tmp_path: Path):
    with pytest.raises(CheckpointError) as error:
        policy.load(tmp_path / "none.pt")
    assert one_line(error) == f"there is no checkpoint at {tmp_path / 'none.pt'}"
    with pytest.raises(CheckpointError):
        policy.load(tmp_path)  # a folder


def test_damaged_ones(saved: Path):
    whole = saved.read_bytes()
    for length in {0, 1, 3, *range(10, len(whole), max(1, len(whole) // 40))}:
        saved.write_bytes(whole[:length])
        with pytest.raises(CheckpointError) as error:
            policy.load(saved)
        assert str(saved) in one_line(error)


def test_one_with_a_changed_byte_is_refused_or_harmless(saved: Path):
    """Torch checks stored data; a changed byte in unused data may have no effect."""
    whole = bytearray(saved.read_bytes())
    for place in range(0, len(whole), max(1, len(whole) // 60)):
        changed = bytes(whole[:place]) + bytes([whole[place] ^ 0x55]) + bytes(whole[place + 1 :])
        saved.write_bytes(changed)
        try:
            policy.load(saved)
        except CheckpointError as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("contents", [b"hello", b"\x89PNG\r\n\x1a\n" + bytes(100)])
def test_foreign_bytes(contents: bytes, tmp_path: Path):
    (tmp_path / "c.pt").write_bytes(contents)
    with pytest.raises(CheckpointError, match="damaged, or no checkpoint"):
        policy.load(tmp_path / "c.pt")


@pytest.mark.parametrize("contents", [{"model": torch.ones(2)}, [1, 2], torch.ones(3)])
def test_checkpoints_of_others(contents: object, tmp_path: Path):
    torch.save(contents, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match=r"is no checkpoint of dml-robot"):
        policy.load(tmp_path / "c.pt")


def test_a_version_to_come(tmp_path: Path):
    torch.save({"format": checkpoint.FORMAT, "version": 99}, tmp_path / "c.pt")
    with pytest.raises(CheckpointError, match="version 99"):
        policy.load(tmp_path / "c.pt")


@pytest.mark.parametrize(
    "description",
    [
        None,
        {},
        {"layers": [], "activation": "elu", "bound": "clip"},
        {"layers": [{"weight": torch.ones(2)}], "activation": "elu", "bound": "clip"},
        {"layers": [{"weight": torch.ones(2, 2), "bias": torch.ones(2)}], "activation": "none", "bound": "clip"},
    ],
)
def test_a_policy_that_is_none(description: object, tmp_path: Path):
    checkpoint.write(tmp_path / "c.pt", {"policy": description})
    with pytest.raises(CheckpointError, match="cannot be used"):
        policy.load(tmp_path / "c.pt")


class _Hostile:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (self.path, "w")


def test_nothing_in_a_checkpoint_is_run(tmp_path: Path):
    for index, write in enumerate((lambda value, path: torch.save(value, path), _pickle)):
        touched = tmp_path / f"touched{index}"
        write({"format": checkpoint.FORMAT, "version": 1, "policy": _Hostile(str(touched))}, tmp_path / "c.pt")
        with pytest.raises(CheckpointError):
            policy.load(tmp_path / "c.pt")
        assert not touched.exists()


def _pickle(value: object, path: Path) -> None:
    path.write_bytes(pickle.dumps(value))


def test_a_full_disk_leaves_the_old_one(saved: Path):
    """The system refuses writes beyond the file size limit, as it does on a full disk."""
    resource = pytest.importorskip("resource", reason="POSIX alone limits the size of files")
    before, limits = saved.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, limits[1]))
    try:
        with pytest.raises(CheckpointError, match=f"cannot write {saved}: .*; {saved} is still the one before"):
            checkpoint.write(saved, {"weights": torch.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_folder_that_is_not_to_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot write"):
        checkpoint.write(tmp_path / "file" / "c.pt", {})
