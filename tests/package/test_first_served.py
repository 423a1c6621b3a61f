"""Which GPUs `doctor` says are served first, by the names that drivers give them."""

from __future__ import annotations

import pytest
from torch_dml.first_served import family


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AMD Radeon RX 580 Series (RADV POLARIS10)", "AMD Polaris"),
        ("Radeon RX 570 Series", "AMD Polaris"),
        ("AMD Radeon Graphics (RADV RENOIR)", "AMD Vega"),
        ("AMD Radeon RX 5700 XT (RADV NAVI10)", "AMD RDNA1"),
        ("Radeon RX 5500M", "AMD RDNA1"),
        ("Intel(R) HD Graphics 530 (SKL GT2)", "Intel before Arc"),
        ("Intel(R) Iris(R) Xe Graphics", "Intel before Arc"),
        ("Turnip Adreno (TM) 740", "Qualcomm Adreno"),
        ("Qualcomm(R) Adreno(TM) X1-85 GPU", "Qualcomm Adreno"),
        ("NVIDIA GeForce GTX 1060 6GB", "an old GeForce"),
        ("AMD Radeon RX 7900 XTX (RADV NAVI31)", None),
        ("AMD Radeon RX 6800 (RADV NAVI21)", None),
        ("Intel(R) Arc(tm) A770M Graphics (DG2)", None),
        ("NVIDIA GeForce RTX 4090", None),
        ("NVIDIA H100 80GB HBM3", None),
        ("llvmpipe (LLVM 15.0.6, 256 bits)", None),
    ],
)
def test_families_by_name(name: str, expected: str | None) -> None:
    assert family(name) == expected
