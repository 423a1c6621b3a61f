"""The progress line of a run."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from dml_robot.learn.curve import Row


class Bar:
    """A progress bar with reward, success, distance and steps per second; if the output is not a
    terminal, a line now and then.
    """

    INTERVAL = 10.0
    """Seconds between two lines when the output is not a terminal."""
    EPISODES = 500
    """The number of latest episodes over which success and distance are averaged."""

    def __init__(self, console: Console, total: int, done: int) -> None:
        """Start at `done` of `total` control steps."""
        self._console, self._begun, self._done, self._total = console, time.monotonic(), done, total
        self._printed = self._begun
        self._recent: deque[Row] = deque()
        self._reward = 0.0
        columns = (BarColumn(24), TaskProgressColumn(), TextColumn("{task.description}"), TimeRemainingColumn())
        self._bar = Progress(*columns, console=console, disable=not console.is_terminal)
        self._task = self._bar.add_task("", total=total, completed=done)

    def show(self, row: Row) -> None:
        """Show an iteration's figures."""
        self._reward = row["reward"]
        if row["episodes"]:
            self._recent.append(row)
            while sum(each["episodes"] for each in self._recent) - self._recent[0]["episodes"] >= self.EPISODES:
                self._recent.popleft()
        now = time.monotonic()
        line = self._line(row["steps"], now)
        self._bar.update(self._task, completed=row["steps"], description=line)
        if not self._console.is_terminal and (now - self._printed >= self.INTERVAL or row["steps"] >= self._total):
            self._console.print(f"{row['steps'] / self._total:4.0%}  {line}", highlight=False, soft_wrap=True)
            self._printed = now

    def recent(self) -> Row:
        """Return success and distance over the latest episodes; empty before the first one ends."""
        episodes = sum(row["episodes"] for row in self._recent)
        names = ("success", "distance") if episodes else ()
        return {name: sum(row[name] * row["episodes"] for row in self._recent) / episodes for name in names}

    def __enter__(self) -> Bar:
        """Show the bar until the end of the block."""
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the bar on the terminal."""
        self._bar.stop()

    def _line(self, steps: float, now: float) -> str:
        speed = (steps - self._done) / max(1e-9, now - self._begun)
        recent = self.recent()
        success = f"{recent['success']:.1%}" if recent else "-"
        distance = f"{recent['distance'] * 1000:.0f} mm" if recent else "-"
        return f"reward {self._reward:+.3f}  success {success}  distance {distance}  {speed:,.0f} steps/s"
