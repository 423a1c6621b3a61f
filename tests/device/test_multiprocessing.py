"""Processes: fork, spawn, and what may be sent to them. Each test runs in a new Python that has not
used a device.
"""

from __future__ import annotations

import sys

import pytest

from tests.support.processes import run_python

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script runs from standard input")

HEAD = """
import os, sys, torch, torch_dml
import torch.multiprocessing as mp

def attempt(function):
    try:
        return repr(function())
    except Exception as error:
        return f"{type(error).__name__}: {error}"

def compute(queue):
    queue.put(attempt(lambda: (torch.ones(3, device="dml") * 2).tolist()))

def child_of(method):
    context = mp.get_context(method)
    queue = context.Queue()
    process = context.Process(target=compute, args=(queue,))
    process.start()
    print(queue.get(timeout=120))
    process.join(60)
    print("exit", process.exitcode)
"""


def run(tmp_path, body: str) -> str:
    script = tmp_path / "script.py"
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    script.write_text(f'{HEAD}\nif __name__ == "__main__":\n{lines}\n')
    result = run_python(str(script))
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_fork_after_the_device_was_used(tmp_path):
    out = run(tmp_path, 'kept = torch.ones(2, device="dml")\nchild_of("fork")\nprint(kept.tolist())')
    assert "RuntimeError: Cannot re-initialize dml in forked subprocess" in out and "'spawn'" in out
    assert "exit 0" in out and "[1.0, 1.0]" in out


def test_fork_before_the_device_is_used(tmp_path):
    body = 'torch.manual_seed(3)\nchild_of("fork")\nprint(torch.ones(2, device="dml").tolist())'
    out = run(tmp_path, body)  # seeding starts no driver
    assert "[2.0, 2.0, 2.0]" in out and "exit 0" in out and "[1.0, 1.0]" in out


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_spawn(tmp_path, method):
    out = run(tmp_path, f'kept = torch.ones(2, device="dml")\nchild_of("{method}")')
    assert "[2.0, 2.0, 2.0]" in out and "exit 0" in out


def test_a_forked_child_that_drops_what_it_inherited(tmp_path):
    body = """
kept, pinned = torch.ones(3, device="dml"), torch.ones(100_000).pin_memory()
event = torch.dml.current_stream().record_event()
graph = torch.dml.Graph()
with torch.dml.graph(graph):
    kept.add_(0)
pid = os.fork()
if pid == 0:
    del kept, pinned
    for function in (
        lambda: torch.ones(1, device="dml"),
        lambda: torch.dml.synchronize(),
        lambda: event.query(),
        lambda: graph.replay(),
        lambda: torch.ones(3).pin_memory(),
        lambda: torch.dml.memory_allocated(),
        lambda: torch.dml.current_device(),
    ):
        assert "forked subprocess" in attempt(function), attempt(function)
    assert torch.dml.device_count() > 0 and torch.dml._is_in_bad_fork() and not torch.dml.is_initialized()
    torch.manual_seed(1)
    torch.dml.empty_cache()
    del event, graph
    sys.exit(7)
print("status", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), kept.tolist(), event.query())
"""
    assert "status 7 [1.0, 1.0, 1.0] True" in run(tmp_path, body)


def test_tensors_are_not_shared(tmp_path):
    body = """
queue = mp.get_context("spawn").SimpleQueue()
for tensor in (torch.ones(3, device="dml"), torch.nn.Parameter(torch.ones(3, device="dml")), torch.empty(0).dml()):
    print(attempt(lambda: queue.put(tensor)))
queue.put(torch.ones(3, device="dml").cpu())
print(queue.get().dml().tolist())
"""
    out = run(tmp_path, body)
    assert out.count("RuntimeError: a tensor on dml:0 cannot be shared with another process: send tensor.cpu()") == 3
    assert "[1.0, 1.0, 1.0]" in out
