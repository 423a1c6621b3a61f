"""Ctrl-C, and other signals, while the main thread waits for a device or is ahead of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from tests.support.environment import ROOT
from tests.support.processes import run_python

# Seconds until a wait notices a signal, and of the work of one submission (or one command if that
# takes longer).
NOTICED = 0.1
SUBMIT = 0.1
# Tolerances for an idle machine: for waking a thread, and for the end of a Python with torch, which
# takes 0.2 s.
WAKING = 0.2
ENDING = 1.5


def busy() -> float:
    """By how much a busy machine is slower than an idle one."""
    return max(os.getloadavg()[0] / (os.cpu_count() or 1), 1.0) if hasattr(os, "getloadavg") else 2.0


def soon(step: float) -> float:
    """Seconds within which a signal raises in a program whose steps take `step` seconds."""
    return NOTICED + step + WAKING * busy()


def end(step: float) -> float:
    """Seconds within which such a program has to end: one submission is in flight, and one is
    enqueued.
    """
    return soon(step) + 2 * max(SUBMIT, step) + ENDING * busy()


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
def ready():
    print(step)
"""


def program(body: str, size: int = 512) -> subprocess.Popen[str]:
    """Start a program, and return after it has written a line."""
    return subprocess.Popen(
        [sys.executable, "-u", "-c", PRELUDE.replace("SIZE", str(size)) + body],
        cwd=ROOT,
        # With optimisation, unlike the other tests: without it, one of these kernels runs for
        # seconds.
        env={**os.environ, "GALLIVM_PERF": ""},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@dataclass
class Interrupted:
    """A program that got a signal."""

    sent: float  # When, in seconds since the epoch.
    step: float  # Seconds of each of its steps.
    seconds: float  # From the signal to the program's end.
    status: int
    out: str
    err: str

    def ended_soon(self) -> None:
        assert self.seconds < end(self.step), f"{self.seconds:.2f} s, steps of {self.step:.3f} s, {busy():.1f} busy"

    def noticed_soon(self, when: float) -> None:
        late = when - self.sent
        assert late < soon(self.step), f"{late:.2f} s, steps of {self.step:.3f} s, {busy():.1f} busy"


def interrupt(body: str, delay: float = 1.0) -> Interrupted:
    """Send SIGINT to a program that is ready, and wait for its end."""
    with program(body) as child:
        assert child.stdout
        line = child.stdout.readline()
        assert line, child.communicate()[1]
        time.sleep(delay)
        sent = time.time()
        os.kill(child.pid, signal.SIGINT)
        try:
            out, err = child.communicate(timeout=120)
        except subprocess.TimeoutExpired:
            child.kill()
            raise
        return Interrupted(sent, float(line), time.time() - sent, child.returncode, out, err)


WAITS = {
    "enqueuing": "enqueue(steps)",
    "item": "y = enqueue(steps // 2); print(y.sum().item())",
    "synchronize": "enqueue(steps // 2); torch.dml.synchronize()",
    "event": "enqueue(steps // 2); e = torch.Event('dml'); e.record(); e.synchronize()",
}


@pytest.mark.parametrize("wait", WAITS)
def test_an_interrupted_program_ends_soon(wait: str) -> None:
    body = f"""
ready()
try:
    {WAITS[wait]}
except KeyboardInterrupt:
    print(time.time())
    raise
"""
    done = interrupt(body)
    assert "KeyboardInterrupt" in done.err, done.err
    assert done.status in (-signal.SIGINT, 128 + signal.SIGINT), (done.status, done.err)
    done.noticed_soon(float(done.out))
    done.ended_soon()


def test_what_comes_after_an_interrupt_is_right() -> None:
    body = """
ready()
try:
    enqueue(steps)
except KeyboardInterrupt:
    caught = time.time()
    a = torch.arange(10, device="dml")
    print((a + a).sum().item(), caught, time.time() - caught)
    del a
"""
    done = interrupt(body)
    assert done.status == 0, done.err
    total, caught, late = done.out.split()
    assert total == "90"
    done.noticed_soon(float(caught))
    assert float(late) < end(done.step)  # Work in flight is finished first.
    done.ended_soon()


@pytest.mark.slow
def test_a_handlers_exception_arrives_unchanged() -> None:
    body = """
class Mine(Exception): pass
error = Mine("of the handler", 3)
def handler(number, frame):
    raise error
signal.signal(signal.SIGINT, handler)
ready()
try:
    enqueue(steps // 3).sum().item()
except Mine as e:
    assert e is error and e.args == ("of the handler", 3), e
    print('done')
"""
    done = interrupt(body)
    assert (done.status, done.out) == (0, "done\n"), done.err
    done.ended_soon()


def test_a_handler_that_returns_does_not_end_the_wait() -> None:
    body = """
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(time.time()))
ready()
begin = time.time()
value = enqueue(int(4 / step)).sum().item()
ended = time.time()
assert seen and seen[0] < ended - 0.2, (seen, begin, ended)
print('done')
"""
    done = interrupt(body)
    assert (done.status, done.out) == (0, "done\n"), done.err


@pytest.mark.slow
def test_other_threads_wait_on() -> None:
    """Python runs signal handlers in its main thread alone; here, that one waits for another
    thread.
    """
    body = """
results = []
def work():
    results.append(enqueue(int(3 / step)).isfinite().all().item())
thread = threading.Thread(target=work)
thread.start()
ready()
try:
    while thread.is_alive():
        time.sleep(0.05)
    print("not interrupted")
except KeyboardInterrupt:
    while thread.is_alive():
        time.sleep(0.05)
    print(results)
"""
    done = interrupt(body)
    assert (done.status, done.out) == (0, "[True]\n"), done.err


def test_late_users_of_the_device_get_right_results() -> None:
    """Exit handlers that were registered before torch-dml's run after it; pending work is discarded
    at torch-dml's exit.
    """
    program = """
import atexit
late = []
atexit.register(lambda: print((late[0] + 1).sum().item()))
import torch, torch_dml
late.append(torch.zeros(100, device="dml") + 1)
"""
    done = run_python("-c", program)
    assert done.stdout == "200.0\n", done.stderr
