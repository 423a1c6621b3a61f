"""Ctrl-C, and other signals, while the main thread waits for a device or gets ahead of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from support.environment import ROOT
from support.processes import run_python


def soon() -> float:
    """
    Seconds within which a program is to end.

    One submit is a tenth of a second of work, or one command where that takes longer: here, some ten milliseconds. The
    rest is for a machine that has other things to do, which then takes longer for the minutes of work as well.
    """
    busy = os.getloadavg()[0] / (os.cpu_count() or 1) if hasattr(os, "getloadavg") else 1.0
    return 30.0 * max(busy, 1.0)


PRELUDE = """
import signal, sys, threading, time
# A shell's background jobs, and what they start, ignore it.
signal.signal(signal.SIGINT, signal.default_int_handler)
import torch, torch_dml
x = torch.randn(SIZE, SIZE, device="dml") / SIZE
y = (x @ x).tanh()
y.sum().item()
def enqueue(steps):
    y = x
    for _ in range(steps):
        y = (x @ y).tanh()
    return y
step, count = 0.0, 3
while step * count < 0.2:  # GPUs take a while to reach their clock.
    count *= 2
    start = time.time()
    enqueue(count).sum().item()
    step = (time.time() - start) / count
steps = int(240 / step) + 1  # Minutes of work, half of it at least.
"""


def program(body: str, size: int = 512) -> subprocess.Popen[str]:
    """Start a program, and return when it has written a line."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", PRELUDE.replace("SIZE", str(size)) + body],
        cwd=ROOT,
        # Optimised kernels, unlike the other tests': unoptimised, one of these runs for seconds.
        env={**os.environ, "GALLIVM_PERF": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def interrupt(body: str, delay: float = 1.0) -> tuple[float, int, str, str]:
    """Send SIGINT to a program that is ready; return the seconds until it ended, and what it said."""
    with program(body) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n", child.communicate()[1]
        time.sleep(delay)
        sent = time.time()
        os.kill(child.pid, signal.SIGINT)
        try:
            out, err = child.communicate(timeout=3 * soon())
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        return time.time() - sent, child.returncode, out, err


WAITS = {
    "enqueuing": "enqueue(steps)",
    "item": "y = enqueue(steps // 2); print(y.sum().item())",
    "synchronize": "enqueue(steps // 2); torch.dml.synchronize()",
    "event": "enqueue(steps // 2); e = torch.Event('dml'); e.record(); e.synchronize()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupted_program_ends_soon(wait: str) -> None:
    seconds, status, _, err = interrupt(f"print('ready')\n{WAITS[wait]}\n")
    assert "KeyboardInterrupt" in err, err
    assert status in (-signal.SIGINT, 128 + signal.SIGINT), (status, err)
    assert seconds < soon(), f"{seconds:.1f} s"


def test_what_comes_after_an_interrupt_is_right() -> None:
    body = """
print('ready')
try:
    enqueue(steps)
except KeyboardInterrupt:
    caught = time.time()
    a = torch.arange(10, device="dml")
    print((a + a).sum().item(), time.time() - caught)
    del a
"""
    seconds, status, out, err = interrupt(body)
    assert status == 0, err
    total, late = out.split()
    assert total == "90"
    assert float(late) < soon()
    assert seconds < soon()


def test_a_handlers_exception_arrives_unchanged() -> None:
    body = """
class Mine(Exception): pass
error = Mine("of the handler", 3)
def handler(number, frame):
    raise error
signal.signal(signal.SIGINT, handler)
print('ready')
try:
    enqueue(steps // 3).sum().item()
except Mine as e:
    assert e is error and e.args == ("of the handler", 3), e
    print('done')
"""
    seconds, status, out, err = interrupt(body)
    assert (status, out) == (0, "done\n"), err
    assert seconds < soon()


def test_a_handler_that_returns_does_not_end_the_wait() -> None:
    body = """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(time.time()))
print('ready')
begin = time.time()
value = enqueue(int(4 / step)).sum().item()
ended = time.time()
assert seen and seen[0] < ended - 0.2, (seen, begin, ended)
print('done')
"""
    _, status, out, err = interrupt(body)
    assert (status, out) == (0, "done\n"), err


def test_other_threads_wait_on() -> None:
    """Python runs handlers in its main thread alone; here, that one waits for another thread."""
    body = """
results = []
def work():
    results.append(enqueue(int(3 / step)).isfinite().all().item())
thread = threading.Thread(target=work)
thread.start()
print('ready')
try:
    while thread.is_alive():
        time.sleep(0.05)
    print("not interrupted")
except KeyboardInterrupt:
    while thread.is_alive():
        time.sleep(0.05)
    print(results)
"""
    _, status, out, err = interrupt(body)
    assert (status, out) == (0, "[True]\n"), err


def test_late_users_of_the_device_get_right_results() -> None:
    """What was registered before torch-dml runs after its end, at which pending work is left alone."""
    program = """
import atexit
late = []
atexit.register(lambda: print((late[0] + 1).sum().item()))
import torch, torch_dml
late.append(torch.zeros(100, device="dml") + 1)
"""
    done = run_python("-c", program)
    assert done.stdout == "200.0\n", done.stderr
