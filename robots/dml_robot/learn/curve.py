"""The learning curve: the figures of each iteration, as TensorBoard's events and as a picture."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from dml_robot.learn import checkpoint

Row = dict[str, float]
"""Numbers by name; `steps` and `seconds` always, of the whole run so far."""


def draw(rows: list[Row], path: Path, title: str) -> None:
    """Draw success, distance and reward over the steps into a PNG; raise OSError if it cannot be
    written.
    """
    # Without pyplot: a picture needs no window system and no global state.
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 7), layout="constrained")
    FigureCanvasAgg(figure)
    axes: Any = figure.subplots(3, 1, sharex=True)
    panels = (("success", "success rate"), ("distance", "distance at the end (m)"), ("reward", "reward a step"))
    for panel, (name, label) in zip(axes, panels, strict=True):
        points = [(row["steps"] / 1e6, row[name]) for row in rows if name in row]
        if points:
            panel.plot(*zip(*points, strict=True), linewidth=1)
        panel.set_ylabel(label)
        panel.grid(alpha=0.3)
    axes[0].axhline(0.95, color="gray", linestyle=":")
    axes[0].set_ylim(-0.02, 1.02)
    axes[0].set_title(title)
    axes[-1].set_xlabel("million control steps")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    checkpoint.replace(path, buffer.getbuffer())


class Events:
    """TensorBoard's events of a run. Writes nothing if TensorBoard is not installed."""

    def __init__(self, folder: Path, steps: int) -> None:
        """Open a folder; events after `steps`, from before a run was resumed, are discarded."""
        self._writer: Any = None
        with contextlib.suppress(ImportError):
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder), purge_step=steps or None, flush_secs=30)

    def add(self, row: Row) -> None:
        """Write an iteration's figures."""
        if self._writer is not None:
            for name, value in row.items():
                if name != "steps":
                    self._writer.add_scalar(f"train/{name}", value, int(row["steps"]))

    def close(self) -> None:
        """Write buffered events."""
        if self._writer is not None:
            self._writer.close()
