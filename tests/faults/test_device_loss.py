"""Device loss: every call raises, nothing hangs, the other device works, and the process ends
cleanly.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.processes import run_python

HEAD = """
import ctypes, torch, torch_dml
from torch_dml import engine

def lose(index):
    engine.call("dml_simulate_loss", index)

def attempt(function):
    try:
        function()
    except Exception as error:
        assert "dml:0" in str(error) and "was lost" in str(error), error
        return type(error)
    return None
"""


def run(body: str) -> str:
    result = run_python("-X", "faulthandler", "-c", HEAD + body, timeout=120)
    assert result.returncode == 0, (result.returncode, result.stderr)
    return result.stdout


def test_every_call_raises_and_the_other_device_works():
    out = run("""
x, other = torch.ones(1000, device="dml"), torch.ones(1000, device="dml:1")
pinned, host = torch.ones(100_000).pin_memory(), torch.ones(1000)
event, timed = torch.dml.Event(), torch.dml.Event(enable_timing=True)
event.record(), timed.record()
y = x + 1  # under way
lose(0)
calls = [
    lambda: x + 1,
    lambda: x.add_(1),
    lambda: x.cpu(),
    lambda: x.item() if x.numel() == 1 else x[0].item(),
    lambda: torch.empty(10, device="dml"),
    lambda: torch.ones(10, device="dml"),
    lambda: host.to("dml"),
    lambda: pinned.to("dml", non_blocking=True),
    lambda: x.to("cpu", non_blocking=True),
    lambda: x.to("dml:1"),
    lambda: other.to("dml:0"),
    lambda: torch.dml.synchronize(),
    lambda: torch.accelerator.synchronize(),
    lambda: torch.dml.current_stream().query(),
    lambda: torch.dml.current_stream().synchronize(),
    lambda: event.synchronize(),
    lambda: event.query(),
    lambda: torch.dml.Event().record(),
    lambda: torch.dml.empty_cache(),
    lambda: torch.empty(10).pin_memory(),
    lambda: print(x),
]
raised = [attempt(call) for call in calls]
print("not raised:", [i for i, kind in enumerate(raised) if kind is None])
print("kinds:", sorted({kind.__name__ for kind in raised if kind}))
for _ in range(3):
    assert (other * 2 + 1).sum().item() == 3000
assert torch.ones(5, device="dml:1").tolist() == [1] * 5
torch.dml.synchronize(1)
assert torch.dml.memory_allocated(0) > 0 and torch.dml.get_device_name(0)
del x, y, pinned
print("done")
""")
    assert "not raised: []" in out and "done" in out
    assert "kinds: ['AcceleratorError']" in out


def test_a_loss_in_the_middle_of_training():
    out = run("""
def train(device, steps):
    weight = torch.ones(64, 64, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([weight])
    for step in range(steps):
        if device == "dml:0" and step == 3:
            lose(0)
        loss = (torch.ones(8, 64, device=device) @ weight).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()

print(attempt(lambda: train("dml:0", 6)) is not None, train("dml:1", 6) > 0)
""")
    assert out == "True True\n"


def test_a_loss_met_by_a_thread_that_waits():
    """A thread that waits for work returns with the error."""
    out = run("""
import threading, time
x = torch.ones(1 << 20, device="dml")
results = []
def wait():
    for _ in range(100_000):
        kind = attempt(lambda: (x * 2).sum().item())
        if kind is not None:
            results.append(kind)
            return
threads = [threading.Thread(target=wait) for _ in range(3)]
for thread in threads:
    thread.start()
time.sleep(0.3)
lose(0)
for thread in threads:
    thread.join(30)
print([thread.is_alive() for thread in threads], len(results))
""")
    assert out == "[False, False, False] 3\n"


def test_the_process_ends_though_nobody_caught_it():
    result = run_python("-c", HEAD + 'x = torch.ones(3, device="dml")\nlose(0)\nx + 1\n', timeout=120)
    assert result.returncode == 1
    assert "was lost" in result.stderr.splitlines()[-1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems run every handler")
def test_the_process_ends_though_the_driver_waits_for_the_gpu():
    """An exit handler that never returns takes the place of the driver's; it is registered before
    the driver starts.
    """
    waits = "import ctypes\nlibc = ctypes.CDLL(None)\nassert libc.on_exit(libc.pause, None) == 0\n"
    result = run_python(
        "-c", waits + HEAD + 'lose(0)\nprint(attempt(lambda: torch.ones(3, device="dml") + 1))\n', timeout=60
    )
    assert (result.returncode, result.stdout) == (0, "<class 'torch.AcceleratorError'>\n"), result.stderr
