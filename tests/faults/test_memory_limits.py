"""Out of memory, and memory that must not grow."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest
import torch

from tests.support.memory import allocated
from tests.support.processes import run_python

MIB = 1 << 20


def under_the_minimum(program: str) -> str:
    """The output of a program on an adapter with the minimum limits of Vulkan 1.2."""
    done = run_python("-c", "import torch, torch_dml\n" + program, TORCH_DML_PROFILE="minimum")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tensor_above_the_largest_allocation_names_that() -> None:
    said = under_the_minimum(
        """
x = torch.empty(2**30, dtype=torch.uint8, device="dml")  # The largest.
x[-1:] = 7
assert x[-1].item() == 7
del x
for make in (
    lambda: torch.empty(2**30 + 1, dtype=torch.uint8, device="dml"),
    lambda: torch.ones(1, device="dml").expand(2**28 + 1).contiguous(),
):
    base = torch.dml.memory_allocated()
    try:
        make()
    except torch.OutOfMemoryError as error:
        print(error)
    assert torch.dml.memory_allocated() - base <= 512
print(torch.ones(10, device="dml").sum().item())
"""
    ).splitlines()
    assert len(said) == 3 and said[-1] == "10.0", said
    assert all("This driver allocates at most 1.00 GiB at once." in line for line in said[:2]), said


FAILS: dict[str, Callable[[torch.Tensor], object]] = {
    "more than any driver has": lambda x: torch.empty(1 << 45, device=x.device),
    "a result": lambda x: x.expand(1 << 20, 256) + 1,
    "two results": lambda x: x.expand(1 << 19, 256).sort(1),
    "a step within an operator": lambda x: x.expand(1 << 17, 256).cumsum(0).var(0),
    "a list of results": lambda x: torch._foreach_add([x.expand(1 << 14, 256)] * 8, 1),
    "a copy from the host": lambda x: torch.empty(96 * MIB, dtype=torch.uint8).to(x.device),
    "a backward": lambda x: (x.clone().requires_grad_().expand(1 << 15, 256) * 2).exp().sum().backward(),
    "a tensor that grows": lambda x: x.clone().resize_(1 << 25),
}


def test_two_hundred_errors_leave_nothing_behind(device: torch.device) -> None:
    x = torch.randn(256, device=device)
    base = allocated()
    torch.dml.empty_cache()
    ooms = torch.dml.memory_stats()["num_ooms"]
    reserved = torch.dml.memory_reserved()
    torch.dml.set_per_process_memory_fraction(64 * MIB / torch.dml.mem_get_info()[1])
    try:
        for step in range(200):
            name = list(FAILS)[step % len(FAILS)]
            with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
                FAILS[name](x)
            assert torch.dml.memory_allocated() == base, f"{name} keeps memory"
    finally:
        torch.dml.set_per_process_memory_fraction(1.0)
    assert torch.dml.memory_stats()["num_ooms"] == ooms + 200
    torch.dml.empty_cache()
    assert torch.dml.memory_reserved() <= reserved + 20 * MIB
    assert torch.equal((x + x).cpu(), x.cpu() * 2)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_training_takes_no_more_of_the_hosts_memory() -> None:
    """A thousand steps once leaked 3.5 MB in the driver. They have to leak less than a few pages.

    A leak grows in every round; on a busy machine more work is in flight at times, which takes
    memory once.
    """
    done = run_python(
        "-c",
        """
import os
import torch, torch_dml
from tests.support.memory import allocated
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)).to("dml")
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
x = torch.randn(32, 8, device="dml")
y = x.sum(1, keepdim=True)
def train(steps):
    for step in range(steps):
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        if step % 10 == 0:
            loss.item()
    torch.dml.synchronize()
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
train(300)
some, there = torch.ones(256), torch.ones(256, device="dml")
for _ in range(9 << 10):  # The ring of uploads, 8 MiB, is touched once.
    there.copy_(some)
train(100)
grown = []
for _ in range(3):
    before = resident()
    train(1000)
    grown.append(resident() - before)
print(min(grown))
""",
        TORCH_DML_DEVICES_PER_ADAPTER="1",
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 1.5e6
