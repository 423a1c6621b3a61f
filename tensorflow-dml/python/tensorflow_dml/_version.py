"""The version of this package."""

from __future__ import annotations

from importlib import metadata


def _read() -> str:
    try:
        return metadata.version("tensorflow-dml")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__: str = _read()
