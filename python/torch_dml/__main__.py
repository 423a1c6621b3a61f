"""`python -m torch_dml`: see `python -m torch_dml --help`."""

from __future__ import annotations

import sys

from torch_dml.cli import main

if __name__ == "__main__":
    sys.exit(main())
