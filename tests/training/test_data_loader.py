"""DataLoader: batches from worker processes to the device."""

from __future__ import annotations

import sys

import pytest
import torch
from torch.utils.data import DataLoader, Dataset, TensorDataset

from tests.support.processes import run_python


class Squares(Dataset):
    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"x": torch.full((3,), float(index)), "y": torch.tensor(index * index)}


class OnTheDevice(Squares):
    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index), device="dml")


def check(loader: DataLoader, pinned: bool) -> None:
    seen = []
    for batch in loader:
        assert batch["x"].is_pinned() == batch["y"].is_pinned() == pinned
        x, y = (batch[key].to("dml", non_blocking=True) for key in ("x", "y"))
        assert torch.equal((x[:, 0] * x[:, 1]).long().cpu(), y.cpu())
        seen += y.tolist()
    assert sorted(seen) == [i * i for i in range(40)]


@pytest.mark.parametrize("pinned", [False, True])
def test_in_this_process(pinned):
    check(DataLoader(Squares(), batch_size=8, shuffle=True, pin_memory=pinned), pinned)


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
@pytest.mark.parametrize("pinned", [False, True])
def test_forked_workers(pinned):
    """The workers inherit a device that is in use, and do not use it."""
    kept = torch.ones(3, device="dml")
    check(DataLoader(Squares(), batch_size=8, num_workers=2, pin_memory=pinned, multiprocessing_context="fork"), pinned)
    assert kept.tolist() == [1, 1, 1]


def test_spawned_workers():
    check(
        DataLoader(
            Squares(),
            batch_size=8,
            num_workers=1,
            pin_memory=True,
            multiprocessing_context="spawn",
            persistent_workers=True,
        ),
        True,
    )


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_the_device_in_a_forked_worker_is_refused():
    torch.ones(1, device="dml")
    loader = DataLoader(OnTheDevice(), batch_size=8, num_workers=1, multiprocessing_context="fork")
    with pytest.raises(RuntimeError, match="Cannot re-initialize dml in forked subprocess"):
        next(iter(loader))


def test_data_on_the_device():
    data = TensorDataset(torch.arange(20.0, device="dml"), torch.arange(20, device="dml"))
    for x, y in DataLoader(data, batch_size=5, shuffle=True):
        assert x.is_dml and torch.equal(x.long().cpu(), y.cpu())
    with pytest.raises(RuntimeError, match="pin"):
        next(iter(DataLoader(data, batch_size=5, pin_memory=True)))


def test_a_whole_program():
    """Seeds, forked workers and the device, in the order of a usual script."""
    body = """
import torch, torch_dml
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
model = torch.nn.Linear(4, 1).to("dml")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for a, b in DataLoader(data, batch_size=16, shuffle=True, num_workers=2, pin_memory=True):
        loss = (model(a.to("dml", non_blocking=True)) - b.to("dml", non_blocking=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print("loss", loss.item() < 3, torch_dml.fallbacks())
"""
    result = run_python("-c", body)
    assert "loss True {}" in result.stdout, result.stderr
