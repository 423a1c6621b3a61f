"""The errors that a user can cause, each with one clear line as its message."""

from __future__ import annotations


class RobotError(Exception):
    """Base of the package's own errors. The command line prints only the message."""


class SettingsError(RobotError, ValueError):
    """An argument is out of range, of a wrong type or shape, or does not fit the others."""


class MissingDependencyError(RobotError, ImportError):
    """An optional package is not installed; the message names the command that installs it."""


class CheckpointError(RobotError):
    """A checkpoint is missing, damaged, or of another format."""


class DeviceError(RobotError):
    """A device is missing or lost; anything saved before is still there."""


class RenderError(RobotError):
    """No renderer works off-screen on this machine; the message says what to install."""
