"""The errors that a user can cause, each with one clear line as its message."""

from __future__ import annotations


class RobotError(Exception):
    """Base of the package's own errors. The command line prints the message alone."""


class SettingsError(RobotError, ValueError):
    """An argument is out of range, of a wrong type or shape, or does not fit the others."""


class MissingDependencyError(RobotError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


class CheckpointError(RobotError):
    """A checkpoint is missing, damaged, or was written by something else."""


class DeviceError(RobotError):
    """A device is not there, or went away; what was saved before is still there."""


class RenderError(RobotError):
    """Nothing on this machine can draw off-screen; the message says what to install."""
