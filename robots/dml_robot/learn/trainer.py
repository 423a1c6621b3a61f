"""The interface between the training loop and a way to train."""

from __future__ import annotations

from typing import Any, Protocol

from dml_robot.policy import Policy

Metrics = dict[str, float]
"""Numbers of an iteration by name; `reward` and `episodes` always, `success` and `distance` once an episode ended."""


class Trainer(Protocol):
    """A way to train: iterations, each of which simulates and learns."""

    steps: int
    """Control steps so far, of all arms together."""

    def iterate(self) -> Metrics:
        """Run one iteration and return its figures."""
        ...

    def policy(self) -> Policy:
        """Return a copy of the present policy, deterministic, on the CPU."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return a copy of the complete state; only between iterations."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state of `state_dict`, bit-identical to a run that was not
        interrupted.
        """
        ...

    def close(self) -> None:
        """Stop threads and simulators."""
        ...


def per_episode(metrics: Metrics) -> Metrics:
    """Replace sums over the iteration's ended episodes by means; omit them if no episode ended."""
    episodes = metrics["episodes"]
    found = {name: value for name, value in metrics.items() if name not in ("successes", "distances")}
    if episodes:
        found["success"] = metrics["successes"] / episodes
        found["distance"] = metrics["distances"] / episodes
    return found
