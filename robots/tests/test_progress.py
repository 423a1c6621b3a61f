"""The progress line of a run."""

from __future__ import annotations

import io

from dml_robot.learn.progress import Bar
from rich.console import Console


def test_success_and_distance_are_of_the_latest_episodes():
    bar = Bar(Console(file=io.StringIO()), 1000, 0)
    row = {"steps": 1.0, "reward": 0.0}
    bar.show({**row, "episodes": 0})
    assert bar.recent() == {}
    bar.show({**row, "episodes": 100, "success": 0.0, "distance": 1.0})
    bar.show({**row, "episodes": 100, "success": 1.0, "distance": 0.0})
    assert bar.recent() == {"success": 0.5, "distance": 0.5}
    bar.show({**row, "episodes": 500, "success": 1.0, "distance": 0.25})
    assert bar.recent() == {"success": 1.0, "distance": 0.25}


def test_without_a_terminal_the_last_line_is_printed():
    out = io.StringIO()
    with Bar(Console(file=out, width=200), 1000, 0) as bar:
        bar.show({"steps": 500.0, "reward": 0.5, "episodes": 0})
        bar.show({"steps": 1000.0, "reward": 0.25, "episodes": 4, "success": 0.5, "distance": 0.02})
    (line,) = out.getvalue().splitlines()
    assert line.startswith("100%") and "reward +0.250" in line and "success 50.0%" in line
    assert "distance 20 mm" in line and "steps/s" in line
