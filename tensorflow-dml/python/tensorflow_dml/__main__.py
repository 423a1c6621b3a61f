"""`python -m tensorflow_dml`: see `python -m tensorflow_dml --help`."""

from __future__ import annotations

import sys

from tensorflow_dml.cli import main

if __name__ == "__main__":
    sys.exit(main())
