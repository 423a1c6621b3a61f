"""What has no kernel."""

from __future__ import annotations


class MissingKernelError(NotImplementedError):
    """The kernel language, or what writes it, lacks something that a graph needs."""
