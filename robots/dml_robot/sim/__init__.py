"""Two simulators of the arm with one interface; `make` is the way in."""

from .make import make

__all__ = ["make"]
