"""What the training loop asks of a way to train."""

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
        """Do one iteration and return its numbers."""
        ...

    def policy(self) -> Policy:
        """Return a copy, on the CPU, of the policy as it is, deterministic."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return all that the next iterations depend on, copied; between iterations only."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on where `state_dict` was asked, with the bits of a run that was not interrupted."""
        ...

    def close(self) -> None:
        """End threads and simulators."""
        ...


def per_episode(metrics: Metrics) -> Metrics:
    """Replace sums over the iteration's ended episodes by means; without an ended episode there are
    none.
    """
    episodes = metrics["episodes"]
    found = {name: value for name, value in metrics.items() if name not in ("successes", "distances")}
    if episodes:
        found["success"] = metrics["successes"] / episodes
        found["distance"] = metrics["distances"] / episodes
    return found
