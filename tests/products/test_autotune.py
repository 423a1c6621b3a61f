"""Autotuning of products: candidates with the same bits are measured, results are stored on disk,
and nothing is measured where it is disabled.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import notes
from tests.support.environment import needs_timestamps
from tests.support.processes import run_python

# Two products that run often enough, in several threads, compared with their first results.
PROGRAM = """
import sys
import threading
import torch

torch.use_deterministic_algorithms("deterministic" in sys.argv)
torch.manual_seed(0)
pairs = [(torch.randn(m, k), torch.randn(k, n)) for m, n, k in ((96, 80, 128), (130, 70, 33))]
given = [(a.to("dml"), b.to("dml")) for a, b in pairs]
exact = "all" not in sys.argv
expected = [(a @ b).cpu() for a, b in given]
for (a, b), product in zip(pairs, expected):
    torch.testing.assert_close(product, a @ b, rtol=1e-4, atol=1e-4)
failed = []


def work():
    for i in range(160):
        for (a, b), product in zip(given, expected):
            found = (a @ b).cpu() if i % 4 == 0 else a @ b
            if i % 4 == 0 and not (torch.equal(found, product) if exact else torch.allclose(found, product, atol=1e-4)):
                failed.append(i)


threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
assert not failed, failed
graph = torch.dml.Graph()
with torch.dml.graph(graph):
    captured = given[0][0] @ given[0][1]
graph.replay()
assert torch.allclose(captured.cpu(), expected[0], atol=1e-4)
"""


def run(folder: Path, *arguments: str, mode: str = "1") -> str:
    """Run the program; return the engine's log of the products that it measured."""
    done = run_python(
        "-c",
        PROGRAM,
        *arguments,
        TORCH_DML_AUTOTUNE=mode,
        TORCH_DML_CACHE_DIR=str(folder),
        TORCH_DML_LOG="dml_compute=debug,warn",
        TORCH_DML_FALLBACK="error",
    )
    assert done.returncode == 0, done.stderr
    return "\n".join(line for line in done.stderr.splitlines() if " us in " in line)


def products(folder: Path) -> dict[str, str]:
    """Return the stored results of products."""
    return {name: text for name, text in notes.read(folder).items() if name.startswith("product ")}


@pytest.mark.slow
@needs_timestamps
def test_the_fastest_way_is_kept_and_read_back(tmp_path: Path) -> None:
    said = run(tmp_path)
    found = products(tmp_path)
    if len(found) < 2:  # a busy machine disturbed so many runs that there was no time left to try more
        said += run(tmp_path)
        found = products(tmp_path)
    assert len(found) == 2 and said.count("best") == 2
    assert all(f"best {text}" in said for text in found.values())
    # Each candidate was run at most five times.
    assert all(int(part.split(" runs")[0]) <= 5 for part in said.split(" us in ")[1:])
    assert run(tmp_path) == "", "what is known is not timed again"
    assert products(tmp_path) == found
    # An entry that is not among the product's candidates.
    file = notes.file(tmp_path)
    content = "".join(f"{name}\t1x1x1/1x1/1x1/s1/k1 in 9\n" for name in found)
    file.write_bytes(notes.rewritten(file.read_bytes(), content.encode()))
    assert "best" in run(tmp_path), "it is found out again"


@pytest.mark.parametrize(("mode", "argument"), [("0", ""), ("", ""), ("1", "deterministic")])
def test_nothing_is_timed(mode: str, argument: str, tmp_path: Path) -> None:
    assert run(tmp_path, argument, mode=mode) == ""
    assert products(tmp_path) == {}


def test_other_orders_are_as_exact(tmp_path: Path) -> None:
    run(tmp_path, "all", mode="all")
