"""Two simulators of the arm with one interface; `make` creates them."""

from .make import make

__all__ = ["make"]
