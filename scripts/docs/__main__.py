"""Write the generated parts of the documentation; with --check, list those that are out of date.

python scripts/docs            # command line, environment variables, performance, README's figures
python scripts/docs --check    # the same without writing
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import command_line
import environment
import performance

ROOT = Path(__file__).parents[2]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python scripts/docs", description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where something is to do")
    check = parser.parse_args().check
    files = {**command_line.files(ROOT), **environment.files(ROOT), **performance.files(ROOT)}
    stale = [path for path, text in files.items() if not path.exists() or path.read_text("utf-8") != text]
    for path in stale:
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(files[path], "utf-8")
        print(f"{path.relative_to(ROOT)}: {'out of date; run `python scripts/docs`' if check else 'written'}")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
