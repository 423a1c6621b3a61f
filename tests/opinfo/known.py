"""Known differences between the device and the CPU in what they accept or return, and their
reasons.
"""

from __future__ import annotations

from dataclasses import dataclass

from .tasks import Task


@dataclass(frozen=True)
class Known:
    """A difference and its reason: for operators by full name, and for dtypes and labels of cases
    if they are given.
    """

    why: str
    operators: str
    dtypes: str = ""
    label: str = ""
    difference: str = ""  # a part of its description

    def covers(self, task: Task, label: str, difference: str) -> bool:
        """Whether this explains a difference."""
        return (
            task.operator in self.operators.split()
            and (not self.dtypes or task.dtype in self.dtypes.split())
            and self.label in label
            and self.difference in difference
        )


INTEGERS = "uint8 int8 int16 int32 int64"

KNOWN = [
    Known(
        "torch before 2.15 truncates the bounds of an int64 range before it counts",
        "arange",
        dtypes="int64",
    ),
    Known(
        "the CPU gives the tensor that addbmm_ works on another shape",
        "addbmm",
        label="in place",
        difference="Bad in-place call",
    ),
    Known(
        "the CPU's avg_pool3d writes a result with strides as if it had none",
        "nn.functional.avg_pool3d",
        label="out= transposed",
    ),
    Known(
        "the CPU has a max_pool1d of its own, without integers and without strides; other devices run max_pool2d",
        "nn.functional.max_pool1d",
    ),
    Known(
        "the CPU interpolates bytes in fixed point with weights of 8 bits",
        "nn.functional.interpolate.bilinear nn.functional.interpolate.bicubic nn.functional.upsample_bilinear "
        "_upsample_bilinear2d_aa",
        dtypes="uint8",
        difference="not equal",
    ),
    Known(
        "the fused attention operator of devices gives the query's order of dimensions",
        "nn.functional.scaled_dot_product_attention",
        difference="strides",
    ),
    Known(
        "the CPU rounds a quotient to half precision before it is truncated",
        "div.trunc_rounding div.floor_rounding floor_divide",
        dtypes="float16 bfloat16",
        difference="not close",
    ),
    Known(
        "random: the samples have so few outcomes that the CPU's two seeds agree by chance",
        "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d",
        difference="not close",
    ),
    Known(
        "the CPU's transposed convolutions of integers have no order of channels last",
        "nn.functional.conv3d nn.functional.conv_transpose3d",
        dtypes=INTEGERS,
        difference="strides",
    ),
]


def is_known(task: Task, label: str, difference: str) -> bool:
    """Whether a difference of a case has a known reason."""
    return any(known.covers(task, label, difference) for known in KNOWN)
