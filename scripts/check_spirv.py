"""Validates every SPIR-V module of a folder, as programs write them under TORCH_DML_SPIRV_DIR, with
`spirv-val`.

Valid modules are listed in `valid.txt` of the folder and not validated again. Invalid ones are
named, and saved as `*.invalid`. Modules with cooperative matrices are skipped when `spirv-val` does
not support them: 2025.1 supports those of float16, 2026.4 all. Exits with status 1 when a module
fails or when the folder is empty.
"""

from __future__ import annotations

import argparse
import os
import shutil
import struct
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# The Vulkan version whose rules apply, by the module's SPIR-V version.
TARGETS = {0x10500: "vulkan1.2", 0x10600: "vulkan1.3"}
# The maximum number of failures that are printed in full.
SHOWN = 5
# Messages of older validators about the capabilities of cooperative matrices, of bfloat16 and of
# bfloat16 matrices.
TOO_OLD = tuple(f"Invalid capability operand: {number}" for number in (6022, 5116, 5118))


def complaint(module: Path) -> str | None:
    """Return what is wrong with a module, or None."""
    header = module.read_bytes()[:8]
    if len(header) < 8 or (version := struct.unpack("<II", header)[1]) not in TARGETS:
        return "neither SPIR-V 1.5 nor 1.6"
    command = ["spirv-val", "--target-env", TARGETS[version], "--scalar-block-layout", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else (done.stdout + done.stderr).strip() or f"status {done.returncode}"


def main() -> int:
    """Check the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if shutil.which("spirv-val") is None:
        print("error: spirv-val is missing (Debian: spirv-tools)", file=sys.stderr)
        return 1
    modules = sorted(folder.glob("*.spv"))
    if not modules:
        print(f"error: no modules in {folder}: nothing was emitted under TORCH_DML_SPIRV_DIR={folder}", file=sys.stderr)
        return 1
    noted = folder / "valid.txt"
    known = set(noted.read_text().split()) if noted.exists() else set()
    unseen = [module for module in modules if module.name not in known]
    failures, left = [], 0
    with noted.open("a") as notes, ThreadPoolExecutor(os.cpu_count()) as pool:
        for module, wrong in zip(unseen, pool.map(complaint, unseen), strict=True):
            if wrong is None:
                notes.write(f"{module.name}\n")
            elif any(words in wrong for words in TOO_OLD):
                left += 1
            else:
                failures.append(f"{module.name}: {wrong}")
                module.rename(module.with_suffix(".invalid"))
    for failure in failures[:SHOWN]:
        print(failure, file=sys.stderr)
    counts = f"{len(unseen)} of them unseen, {len(failures)} invalid"
    if left:
        counts += f", {left} left for a newer spirv-val"
    print(f"{len(modules)} modules in {folder}, {counts}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
