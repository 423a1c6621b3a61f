"""Learning: three ways to train, and the loop around them."""

from dml_robot.learn.settings import Settings

__all__ = ["Settings"]
