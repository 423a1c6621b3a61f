"""Removes personal data from a text: paths, addresses, names of the user and of the machine."""

from __future__ import annotations

import getpass
import re
import socket
from pathlib import Path

PATH, ADDRESS, NAME = "<path>", "<address>", "<name>"

_ADDRESSES = re.compile(r"\w+://\S+|[\w.+-]+@[\w.-]+|\b\d{1,3}(?:\.\d{1,3}){3}\b")
# The beginning of a path: a drive, a share, the root, the home folder, or a relative folder.
_BEGINNING = r"(?:[A-Za-z]:[\\/]|\\\\|/|~\w*[\\/]|\.{1,2}[\\/])"
# In quotes a path may contain spaces.
_QUOTED = re.compile(rf"""(['"`])(?:file:)?{_BEGINNING}.*?\1""")
_ABSOLUTE = re.compile(rf"(?<![\w<>.]){_BEGINNING}[^\s'\"`,;)\]]+")
# File names of a program and its data are recognised by their folder or suffix.
_ENDINGS = (
    "py|pyc|ipynb|so|dll|exe|pt|pth|bin|ckpt|safetensors|onnx|npy|npz|csv|json|yaml|yml|toml|txt|log|zip|"
    "png|jpg|jpeg|wav|mp4"
)
_FILE = re.compile(rf"(?<![\w<>])[\w.-]+(?:[\\/][\w.-]+)*\.(?:{_ENDINGS})\b")
# A shorter name may be an ordinary word.
_SHORTEST = 3


def scrub(text: str) -> str:
    """Return `text` with personal data replaced by <path>, <address> and <name>."""
    text = _QUOTED.sub(PATH, _ADDRESSES.sub(ADDRESS, text))
    text = _FILE.sub(PATH, _ABSOLUTE.sub(PATH, text))
    for name in _names():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", NAME, text, flags=re.IGNORECASE)
    return text


def _names() -> set[str]:
    names = {socket.gethostname(), socket.gethostname().partition(".")[0]}
    for ask in (getpass.getuser, lambda: Path.home().name):
        try:
            names.add(ask())
        except (OSError, KeyError, RuntimeError, ImportError):
            continue
    return {name for name in names if len(name) >= _SHORTEST}
