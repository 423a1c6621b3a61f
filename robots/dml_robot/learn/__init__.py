"""Training: three ways to train, and the training loop."""

from dml_robot.learn.settings import Settings

__all__ = ["Settings"]
