"""The version of this package, which is the one of Cargo.toml."""

from __future__ import annotations

from importlib import metadata


def _read() -> str:
    try:
        return metadata.version("torch-dml")
    except metadata.PackageNotFoundError:
        return "0+unknown"


__version__: str = _read()
