"""TensorFlow's test files, in a source tree: no wheel has them."""

from __future__ import annotations

import re
from pathlib import Path

HOW_TO_GET_IT = "git clone --depth 1 --branch v{version} https://github.com/tensorflow/tensorflow"

# Below tensorflow/python. Left out is what has nothing to do with a device (parsing, strings,
# protocol buffers), what is of other devices alone, and what only takes apart the operators of
# these files (linear_operator_*, ragged).
FAMILIES: dict[str, tuple[str, ...]] = {
    "arrays": (
        *("kernel_tests/array_ops/*_test.py", "kernel_tests/data_structures/dynamic_*_test.py"),
        *("ops/array_grad_test.py", "ops/array_ops_test.py"),
        *("kernel_tests/v1_compat_tests/*scatter_nd_ops_test.py", "kernel_tests/v1_compat_tests/array_ops_test.py"),
    ),
    "mathematics": (
        *("kernel_tests/math_ops/*_test.py", "ops/bitwise_ops_test.py", "ops/clip_ops_test.py"),
        *("ops/math_grad_test.py", "ops/math_ops_test.py", "ops/special_math_ops_test.py"),
        *("ops/bincount_ops_test.py", "ops/sort_ops_test.py", "ops/math_ops_linspace_test.py"),
        "kernel_tests/numerics_test.py",
    ),
    "neural networks": (
        *("kernel_tests/nn_ops/*_test.py", "ops/nn_*test.py", "kernel_tests/sparse_ops/sparse_xent_op_test.py"),
        *("kernel_tests/quantization_ops/*_test.py", "ops/rnn_grad_test.py", "ops/embedding_ops_test.py"),
    ),
    "linear algebra": ("kernel_tests/linalg/[!ls]*_test.py", "kernel_tests/linalg/[ls][!il]*_test.py"),
    "random numbers": ("kernel_tests/random/*_test.py",),
    "signals": ("kernel_tests/signal/*_test.py",),
    "images": ("kernel_tests/image_ops/*patches*_test.py", "ops/image_*test.py"),
    "variables": ("kernel_tests/variables/*_test.py", "kernel_tests/v1_compat_tests/dense_update_ops_test.py"),
    "sparse tensors": ("kernel_tests/sparse_ops/sparse_tensor_dense_matmul_*_test.py",),
}


class SourceError(Exception):
    """There are no tests to run, and why."""


class Tree:
    """A source tree of TensorFlow."""

    def __init__(self, folder: Path) -> None:
        """Open a tree.

        Raises:
            SourceError: if the folder holds none.
        """
        self.folder = folder.resolve()
        self.python = self.folder / "tensorflow" / "python"
        if not (self.python / "kernel_tests").is_dir():
            raise SourceError(f"{folder} is no source tree of TensorFlow: it has no tensorflow/python/kernel_tests")

    @property
    def version(self) -> str:
        """The version that the tree says it is, such as "2.22.0"."""
        for name, pattern in (
            ("tensorflow/tf_version.bzl", r'^TF_VERSION = "(.+?)"'),
            ("tensorflow/tools/pip_package/setup.py", r"^_VERSION = '(.+?)'"),
        ):
            path = self.folder / name
            found = re.search(pattern, path.read_text(encoding="utf-8"), re.M) if path.exists() else None
            if found:
                return found[1]
        return "unknown"

    def families(self) -> dict[str, list[str]]:
        """The files that run by default, by family."""
        return {
            family: sorted({self.name(path) for pattern in patterns for path in self.python.glob(pattern)})
            for family, patterns in FAMILIES.items()
        }

    def name(self, path: Path) -> str:
        """A file's name: its path below tensorflow/python."""
        return path.relative_to(self.python).as_posix()

    def choose(self, wanted: list[str]) -> list[str]:
        """The files that names, families or patterns below tensorflow/python name; all families for
        none.

        Raises:
            SourceError: if one names no file.
        """
        families = self.families()
        if not wanted:
            return [name for names in families.values() for name in names]
        found: list[str] = []
        for one in wanted:
            names = families.get(one) or sorted(self.name(path) for path in self.python.glob(one))
            if not names:
                raise SourceError(f"{one} names no file of {self.python}, and no family of {', '.join(families)}")
            found += [name for name in names if name not in found]
        return found
