"""Calls of the functions of neural networks, as in programs: windows, padding, sizes, norms."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import torch

from . import tensors, values
from .arguments import require_gradients
from .calls import BACKWARD, DOUBLE, FORWARD, Call

Made = tuple[list[Any], dict[str, Any]]


def make(rng: random.Random, name: str) -> Call:
    """A call of one of these functions."""
    args, kwargs = FUNCTIONS[name](rng, values.dtype(rng) if rng.random() < 0.15 else rng.choice(values.FLOATS))
    stage = rng.choices((FORWARD, BACKWARD, DOUBLE), (5, 4, 1))[0]
    if stage != FORWARD:
        # Running statistics and class weights require no gradients.
        given = {"F.batch_norm": [args[0], *kwargs.values()], "F.cross_entropy": args}
        require_gradients(rng, given.get(name, [*args, *kwargs.values()]))
    return Call(name, args, kwargs, stage, rng.getrandbits(31))


def _image(rng: random.Random, dtype: torch.dtype, spatial: int, channels: int | None = None) -> torch.Tensor:
    sizes = tuple(rng.choice((1, 2, 3, 5, 7, 8, 9, 12)) for _ in range(spatial))
    channels = channels or rng.choice((1, 2, 3, 4, 6))
    batch = (rng.choice((0, 1, 1, 2, 3)),) if rng.random() < 0.85 else ()
    return tensors.tensor(rng, (*batch, channels, *sizes), dtype, rng.choice(("normal", "unit", "whole")))


def _each(rng: random.Random, spatial: int, *choices: int) -> Any:
    """A number for each dimension, or one for all."""
    return rng.choice(choices) if rng.random() < 0.5 else tuple(rng.choice(choices) for _ in range(spatial))


def _convolution(spatial: int, transposed: bool) -> Callable[[random.Random, torch.dtype], Made]:
    def made(rng: random.Random, dtype: torch.dtype) -> Made:
        groups, per_group, out = rng.choice((1, 1, 1, 2, 3)), rng.choice((1, 2, 3)), rng.choice((1, 2, 4))
        x = _image(rng, dtype, spatial, groups * per_group)
        kernel = tuple(rng.choice((1, 2, 3, 3, 5)) for _ in range(spatial))
        sizes = (groups * per_group, out, *kernel) if transposed else (groups * out, per_group, *kernel)
        weight = tensors.tensor(rng, sizes, dtype, "normal")
        bias = tensors.tensor(rng, (groups * out,), dtype, "normal") if rng.random() < 0.5 else None
        kwargs = {
            "stride": _each(rng, spatial, 1, 1, 2, 3),
            "padding": _each(rng, spatial, 0, 1, 2),
            "dilation": _each(rng, spatial, 1, 1, 2),
            "groups": groups,
        }
        if transposed:
            kwargs["output_padding"] = _each(rng, spatial, 0, 0, 0, 1)
        return [x, weight, bias], kwargs

    return made


def _pool(spatial: int, average: bool) -> Callable[[random.Random, torch.dtype], Made]:
    def made(rng: random.Random, dtype: torch.dtype) -> Made:
        kwargs: dict[str, Any] = {
            "kernel_size": _each(rng, spatial, 1, 2, 3, 4),
            "padding": _each(rng, spatial, 0, 0, 1),
        }
        if rng.random() < 0.6:
            kwargs["stride"] = _each(rng, spatial, 1, 2, 3)
        kwargs["ceil_mode"] = rng.random() < 0.3
        if average:
            kwargs["count_include_pad"] = rng.random() < 0.5
        else:
            kwargs["dilation"] = _each(rng, spatial, 1, 1, 2)
        return [_image(rng, dtype, spatial)], kwargs

    return made


def _adaptive(spatial: int) -> Callable[[random.Random, torch.dtype], Made]:
    def made(rng: random.Random, dtype: torch.dtype) -> Made:
        return [_image(rng, dtype, spatial), _each(rng, spatial, 1, 2, 3, 7, 0)], {}

    return made


def _interpolate(rng: random.Random, dtype: torch.dtype) -> Made:
    spatial = rng.choice((1, 2, 2, 3))
    smooth = {1: ("linear",), 2: ("bilinear", "bicubic"), 3: ("trilinear",)}[spatial]
    mode = rng.choice(("nearest", "nearest-exact", *smooth, *smooth))
    kwargs: dict[str, Any] = {"mode": mode}
    if rng.random() < 0.5:
        kwargs["size"] = [rng.choice((1, 2, 5, 8, 13)) for _ in range(spatial)]
    else:
        kwargs["scale_factor"] = rng.choice((0.5, 2, 1.7, 3, [rng.choice((0.5, 1.5, 2.0)) for _ in range(spatial)]))
        if rng.random() < 0.3:
            kwargs["recompute_scale_factor"] = True
    if not mode.startswith("nearest"):
        kwargs["align_corners"] = rng.random() < 0.5
        if mode in ("bilinear", "bicubic") and rng.random() < 0.3:
            kwargs["antialias"] = True
    x = _image(rng, dtype, spatial)
    factor = kwargs.get("scale_factor", 1)
    width = x.shape[-1] * (factor[-1] if isinstance(factor, list) else factor)
    if kwargs.get("size", [width])[-1] < 2:
        # The CPU reads its first row only, so its result and its gradient do not agree.
        kwargs.pop("antialias", None)
    return [x if x.dim() == spatial + 2 else x[None]], kwargs


def _pad(rng: random.Random, dtype: torch.dtype) -> Made:
    spatial = rng.choice((1, 2, 2, 3))
    mode = rng.choice(("constant", "constant", "reflect", "replicate", "circular"))
    low = -2 if rng.random() < 0.3 else 0
    widths = [rng.randint(low, 4) for _ in range(2 * spatial)]
    if mode == "circular":
        # If there is also a crop, it copies uninitialised memory.
        widths = [max(width, 0) for width in widths]
    kwargs: dict[str, Any] = {"mode": mode}
    if mode == "constant" and rng.random() < 0.7:
        kwargs["value"] = values.scalar(rng, dtype)
    return [_image(rng, dtype, spatial), widths], kwargs


# Possible arguments of F.unfold.
WINDOW = {"kernel_size": (1, 2, 3), "dilation": (1, 1, 2), "padding": (0, 0, 1), "stride": (1, 2, 3)}


def _unfold(rng: random.Random, dtype: torch.dtype) -> Made:
    kwargs = {name: _each(rng, 2, *choices) for name, choices in WINDOW.items()}
    return [_image(rng, dtype, 2)], kwargs


def _layer_norm(rng: random.Random, dtype: torch.dtype) -> Made:
    x = tensors.tensor(rng, tensors.shape(rng, least=1, most=5), dtype, rng.choice(("normal", "unit", "whole")))
    shape = tuple(x.shape[rng.randrange(x.dim()) :])
    kwargs: dict[str, Any] = {"eps": rng.choice((1e-5, 1e-3))}
    if rng.random() < 0.7:
        kwargs["weight"] = tensors.tensor(rng, shape, dtype, "normal")
        kwargs["bias"] = tensors.tensor(rng, shape, dtype, "normal") if rng.random() < 0.7 else None
    return [x, shape], kwargs


def _rms_norm(rng: random.Random, dtype: torch.dtype) -> Made:
    args, kwargs = _layer_norm(rng, dtype)
    kwargs.pop("bias", None)
    return args, kwargs


def _group_norm(rng: random.Random, dtype: torch.dtype) -> Made:
    groups = rng.choice((1, 2, 3))
    channels = groups * rng.choice((1, 2, 4))
    x = tensors.tensor(rng, (rng.choice((1, 2, 5)), channels, *tensors.shape(rng, most=3)), dtype, "normal")
    kwargs: dict[str, Any] = {}
    if rng.random() < 0.6:
        kwargs = {name: tensors.tensor(rng, (channels,), dtype, "normal") for name in ("weight", "bias")}
    return [x, groups], kwargs


def _batch_norm(rng: random.Random, dtype: torch.dtype) -> Made:
    channels = rng.choice((1, 2, 5))
    x = tensors.tensor(rng, (rng.choice((1, 2, 5)), channels, *tensors.shape(rng, most=3)), dtype, "normal")
    running = [tensors.tensor(rng, (channels,), dtype, "unit", plain=True) for _ in range(2)]
    kwargs: dict[str, Any] = {"training": rng.random() < 0.6, "momentum": rng.choice((0.1, 0.5)), "eps": 1e-5}
    if rng.random() < 0.6:
        kwargs |= {name: tensors.tensor(rng, (channels,), dtype, "normal") for name in ("weight", "bias")}
    return [x, *running], kwargs


def _linear(rng: random.Random, dtype: torch.dtype) -> Made:
    given, wanted = (rng.choice((1, 2, 3, 8, 17, 64, 100)) for _ in range(2))
    x = tensors.tensor(rng, (*tensors.shape(rng, most=3), given), dtype, "normal")
    bias = tensors.tensor(rng, (wanted,), dtype, "normal") if rng.random() < 0.6 else None
    return [x, tensors.tensor(rng, (wanted, given), dtype, "normal"), bias], {}


def _embedding(rng: random.Random, dtype: torch.dtype) -> Made:
    rows = rng.choice((1, 3, 10, 300))
    index = tensors.indices(rng, tensors.shape(rng), rows, rng.choice((torch.int64, torch.int32)))
    kwargs: dict[str, Any] = {"padding_idx": rng.choice((None, 0, -1))}
    return [index, tensors.tensor(rng, (rows, rng.choice((1, 3, 16, 33))), dtype, "normal")], kwargs


def _cross_entropy(rng: random.Random, dtype: torch.dtype) -> Made:
    classes, rest = rng.choice((1, 2, 5, 100)), tensors.shape(rng, most=2)
    batch = rng.choice((1, 3, 8))
    target = tensors.indices(rng, (batch, *rest), classes)
    kwargs: dict[str, Any] = {
        "reduction": rng.choice(("none", "mean", "sum")),
        "label_smoothing": rng.choice((0.0, 0.0, 0.1)),
        "ignore_index": rng.choice((-100, 0)),
    }
    if rng.random() < 0.4:
        kwargs["weight"] = tensors.tensor(rng, (classes,), dtype, "unit")
    return [tensors.tensor(rng, (batch, classes, *rest), dtype, "normal"), target], kwargs


FUNCTIONS: dict[str, Callable[[random.Random, torch.dtype], Made]] = {
    **{f"F.conv{n}d": _convolution(n, transposed=False) for n in (1, 2, 3)},
    **{f"F.conv_transpose{n}d": _convolution(n, transposed=True) for n in (1, 2, 3)},
    **{f"F.max_pool{n}d": _pool(n, average=False) for n in (1, 2, 3)},
    **{f"F.avg_pool{n}d": _pool(n, average=True) for n in (1, 2, 3)},
    **{f"F.adaptive_{kind}_pool{n}d": _adaptive(n) for n in (1, 2, 3) for kind in ("max", "avg")},
    "F.interpolate": _interpolate,
    "F.pad": _pad,
    "F.unfold": _unfold,
    "F.layer_norm": _layer_norm,
    "F.rms_norm": _rms_norm,
    "F.group_norm": _group_norm,
    "F.batch_norm": _batch_norm,
    "F.linear": _linear,
    "F.embedding": _embedding,
    "F.cross_entropy": _cross_entropy,
}
