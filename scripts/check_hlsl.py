"""Compiles every HLSL kernel of a folder, as programs write them under TORCH_DML_HLSL_DIR, with
Microsoft's compiler, DXC.

Each kernel becomes DXIL (cs_6_2 with 16-bit types; cs_6_6 with 64-bit atomics), which the compiler
validates, and, unless it has 64-bit atomics, SPIR-V. The SPIR-V is written next to the HLSL, and a
program that runs with the same TORCH_DML_HLSL_DIR uses it. Kernels that passed are not compiled
again. Exits with status 1 when a kernel fails or when the folder is empty.

With --ran nothing is compiled: the script counts the kernels that ran since as the compiler's
SPIR-V and those that ran as the emitter's module, and why. Exits with status 1 when no kernel ran
as the compiler's SPIR-V, or when some of that SPIR-V was not understood.

The library is libdxcompiler.so of DXC 1.6 or 1.7, which PyPI's source distribution of compushady
contains, or dxcompiler.dll.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from ctypes import POINTER, byref, c_char_p, c_int32, c_size_t, c_uint32, c_void_p, c_wchar_p
from functools import partial
from pathlib import Path
from typing import Any

# Direct3D's limits: bytes of workgroup memory, and invocations of a workgroup.
SHARED_BYTES, INVOCATIONS = 32 << 10, 1024
FACTS = re.compile(r"// (\d+) bytes shared, (\d+) invocations, (\d+) atomics, (\d+) atomics of 64 bits")
# Indices in the method table: Release, and the first method of a class. Elsewhere than on Windows
# two destructors stand between them.
RELEASE, FIRST = 2, 3 if sys.platform == "win32" else 5
UTF8 = 65001
# Notes in *.origin files (crates/kernel/src/hlsl/compiled.rs).
COMPILED, NOT_UNDERSTOOD = "compiled", "the compiler's SPIR-V is not understood"
# The maximum number of failures that are printed.
SHOWN = 5


class Buffer(ctypes.Structure):
    """DxcBuffer."""

    _fields_ = (("data", c_char_p), ("size", c_size_t), ("encoding", c_uint32))


def guid(text: str) -> Any:
    return ctypes.create_string_buffer(uuid.UUID(text).bytes_le, 16)


def method(object_: c_void_p, place: int, returns: Any, *types: Any) -> Callable[..., Any]:
    """Return a method of a COM object by its index in the method table."""
    table = ctypes.cast(ctypes.cast(object_, POINTER(c_void_p))[0], POINTER(c_void_p))
    return partial(ctypes.CFUNCTYPE(returns, c_void_p, *types)(table[place]), object_)


def content(blob: c_void_p) -> bytes:
    """Return the bytes of an IDxcBlob."""
    pointer = method(blob, FIRST, c_void_p)()
    return ctypes.string_at(pointer, method(blob, FIRST + 1, c_size_t)()) if pointer else b""


class Compiler:
    """An IDxcCompiler3."""

    def __init__(self, path: str) -> None:
        self.library, self.object = ctypes.CDLL(path), c_void_p()
        of, interface = guid("73e22d93-e6ce-47f3-b5bf-f0664f39c1b0"), guid("228b4687-5a6a-4730-900c-9702b2203f54")
        status = self.library.DxcCreateInstance(of, interface, byref(self.object))
        if status != 0:
            raise OSError(f"{path}: DxcCreateInstance returned {status & 0xFFFFFFFF:#x}")

    def compile(self, source: bytes, profile: str, *options: str) -> bytes:
        """Return the compiled object; raise ValueError with the compiler's messages."""
        words = ("-T", profile, "-E", "main", "-HV", "2021", "-enable-16bit-types", *options)
        arguments = (c_wchar_p * len(words))(*words)
        buffer, result, status, out = Buffer(source, len(source), UTF8), c_void_p(), c_int32(), c_void_p()
        types = (c_void_p, POINTER(c_wchar_p), c_uint32, c_void_p, c_void_p, c_void_p)
        compile_ = method(self.object, FIRST, c_int32, *types)
        interface = guid("58346cda-dde7-4497-9461-6f87af5e0659")
        made = compile_(ctypes.addressof(buffer), arguments, len(words), None, interface, ctypes.addressof(result))
        if made != 0:
            raise ValueError(f"Compile returned {made & 0xFFFFFFFF:#x}")
        method(result, FIRST, c_int32, c_void_p)(ctypes.addressof(status))
        method(result, FIRST + (1 if status.value == 0 else 2), c_int32, c_void_p)(ctypes.addressof(out))
        found = content(out)
        for object_ in (out, result):
            method(object_, RELEASE, c_uint32)()
        if status.value != 0:
            raise ValueError(found.decode(errors="replace").strip())
        return found


_compiler: Compiler


def open_compiler(path: str) -> None:
    """Open the compiler of a worker process."""
    global _compiler
    _compiler = Compiler(path)


def check(file: Path) -> tuple[str, str]:
    """Return a kernel's result, and the compiler's messages if it failed."""
    source = file.read_bytes()
    facts = FACTS.match(source.decode())
    if facts is None:
        return "failed", f"{file.name}: the first line says nothing of the kernel"
    shared, invocations, _, wide = map(int, facts.groups())
    try:
        if shared <= SHARED_BYTES and invocations <= INVOCATIONS:
            _compiler.compile(source, "cs_6_6" if wide else "cs_6_2", "-Gis")
        if wide == 0:
            module = _compiler.compile(source, "cs_6_2", "-spirv", "-fspv-target-env=vulkan1.2")
            copy = file.with_suffix(f".{os.getpid()}")
            copy.write_bytes(module)
            copy.rename(file.with_suffix(".spv"))
    except ValueError as error:
        return "failed", f"{file.name}: {error}"
    if shared > SHARED_BYTES or invocations > INVOCATIONS:
        return "larger than Direct3D's workgroups, SPIR-V alone", ""
    return ("DXIL alone" if wide else "DXIL and SPIR-V"), ""


def report(folder: Path) -> int:
    """Print how the kernels ran since the folder was compiled, from the notes that programs wrote,
    and return the exit status.
    """
    ran = Counter(note.read_text() for note in folder.glob("*.origin"))
    compiled = ran.pop(COMPILED, 0)
    reasons = "".join(f"; {number} as the emitter's module: {reason}" for reason, number in ran.most_common())
    print(f"{compiled + ran.total()} kernels ran: {compiled} as the compiler's SPIR-V{reasons}")
    return 0 if compiled and NOT_UNDERSTOOD not in ran else 1


def main() -> int:
    """Check the folder that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dxc", default="libdxcompiler.so", metavar="FILE", help="the compiler (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--ran", action="store_true", help="count what ran since, instead of compiling")
    options = parser.parse_args()
    if options.ran:
        return report(options.folder)
    kernels = sorted(options.folder.glob("*.hlsl"))
    if not kernels:
        print(f"error: no kernels in {options.folder}: nothing ran with TORCH_DML_HLSL_DIR there", file=sys.stderr)
        return 1
    noted = options.folder / "compiled.txt"
    known = set(noted.read_text().split()) if noted.exists() else set()
    unseen = [kernel for kernel in kernels if kernel.name not in known]
    counts, failures = Counter[str](), []
    pool = ProcessPoolExecutor(options.jobs, initializer=open_compiler, initargs=(options.dxc,))
    with noted.open("a") as notes, pool:
        for kernel, (became, words) in zip(unseen, pool.map(check, unseen, chunksize=4), strict=True):
            counts[became] += 1
            if words:
                failures.append(words)
            else:
                notes.write(f"{kernel.name}\n")
    # Notes of earlier runs, which did not have this SPIR-V yet.
    for note in options.folder.glob("*.origin"):
        note.unlink()
    for failure in failures[:SHOWN]:
        print(failure, file=sys.stderr)
    found = ", ".join(f"{number} {became}" for became, number in counts.most_common()) or "none unseen"
    print(f"{len(kernels)} kernels in {options.folder}: {found}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
