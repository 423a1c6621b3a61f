"""Families of kernels: what the page has a column for."""

from __future__ import annotations

import re

from torch_dml.cli.kernels import Program

FAMILIES = (
    "products f32",
    "products f16",
    "products bf16",
    "products int8",
    "convolution",
    "attention",
    "rows",
    "sort",
    "fft",
    "linear algebra",
    "elements",
    "the rest",
)

# By the folder of crates/compute that a kernel's specialisation stands in.
_FOLDERS = {
    "convolution": "convolution",
    "attention": "attention",
    "normalization": "rows",
    "reduction": "rows",
    "sorting": "sort",
    "fft": "fft",
    "linear_algebra": "linear algebra",
    "pointwise": "elements",
    "complex": "elements",
}
_DTYPES = (("BF16", "bf16"), ("F16", "f16"), ("I8", "int8"), ("U8", "int8"))


def family(program: Program) -> str:
    """The family of a kernel."""
    folders = re.findall(r"\bdml_compute::(\w+)", program.source)
    folder = folders[0] if folders else ""
    if folder in ("matmul", "quantization"):
        found = re.search(r"dtype: (\w+)", program.specialisation)
        dtype = found.group(1) if found else ""
        return f"products {next((name for prefix, name in _DTYPES if dtype == prefix), 'f32')}"
    if "fusion" in program.source:
        return "elements"
    return _FOLDERS.get(folder, "the rest")
