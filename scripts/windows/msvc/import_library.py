"""import_library.py DLL LIB: makes the import library of a Windows library from the names that the
library exports.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def exports(library: str) -> list[str]:
    """Return the names that a DLL exports."""
    dump = subprocess.run(
        ["x86_64-w64-mingw32-objdump", "-p", library], capture_output=True, text=True, errors="replace", check=True
    ).stdout
    table = dump[dump.index("[Ordinal/Name Pointer] Table") :].splitlines()[1:]
    names = []
    for line in table:
        found = re.match(r"\s*\[\s*\d+\]\s+(?:\+base\[\s*\d+\]\s+[0-9a-f]+\s+)?(\S+)\s*$", line)
        if found:
            names.append(found[1])
        elif names:
            break
    return names


def main() -> None:
    """Write the definitions next to the import library, and build it."""
    library, target = sys.argv[1:]
    definitions = Path(target).with_suffix(".def")
    lines = "".join(f'  "{name}"\n' for name in exports(library))
    definitions.write_text(f'LIBRARY "{Path(library).name}"\nEXPORTS\n{lines}', encoding="utf-8")
    subprocess.run(
        ["lld-link-19", "/lib", "/machine:x64", f"/def:{definitions}", f"/out:{target}"], check=True, stdout=sys.stderr
    )


if __name__ == "__main__":
    main()
