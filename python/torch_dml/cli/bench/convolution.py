"""Suite `conv`: the convolutions of ResNet-50 at batch size 32, in three passes."""

from __future__ import annotations

from collections.abc import Callable

import torch

from torch_dml.cli.bench.measure import Bench, Row

# Channels in and out, width of the square kernel, stride, width of the square image.
_LAYERS = [
    (3, 64, 7, 2, 224),
    (64, 64, 3, 1, 56),
    (64, 256, 1, 1, 56),
    (256, 128, 1, 1, 56),
    (128, 128, 3, 2, 56),
    (128, 128, 3, 1, 28),
    (512, 256, 1, 1, 28),
    (256, 256, 3, 1, 14),
    (256, 1024, 1, 1, 14),
    (512, 512, 3, 1, 7),
    (512, 2048, 1, 1, 7),
]
_QUICK = [(16, 16, 3, 1, 14), (16, 32, 1, 2, 14)]
# The gradients that convolution_backward computes: of the input, the weight, the bias.
_PASSES = {"forward": None, "backward data": [True, False, False], "backward weight": [False, True, False]}


def run(bench: Bench) -> list[Row]:
    """Measure each layer and pass in float32 and float16."""
    batch = 2 if bench.quick else 32
    rows = []
    for dtype in (torch.float32, torch.float16):
        for layer in _QUICK if bench.quick else _LAYERS:
            rows += _layer(bench, batch, layer, dtype)
    return rows


def _layer(bench: Bench, batch: int, layer: tuple[int, int, int, int, int], dtype: torch.dtype) -> list[Row]:
    given, made, kernel, stride, width = layer
    kind = str(dtype).removeprefix("torch.")
    shape = f"{given} to {made}, {kernel}x{kernel}/{stride} on {width}x{width}, {kind}"
    bound = "float32" if dtype == torch.float32 else "half"
    rows = {
        name: Row(f"{shape}: {name}", "TFLOP/s", more_is_better=True, bound=bound, group=f"{kind} {name}")
        for name in _PASSES
    }
    image = torch.randn(batch, given, width, width)
    weight = torch.randn(made, given, kernel, kernel) / (given * kernel * kernel) ** 0.5
    for device in bench.devices:
        x, w = image.to(device, dtype), weight.to(device, dtype)
        out = torch.conv2d(x, w, None, stride, kernel // 2)
        gradient = torch.randn(out.shape).to(device, dtype)
        amount = 2 * out.numel() * given * kernel * kernel / 1e12
        for name, wanted in _PASSES.items():
            if name == "backward data" and given == 3:
                continue  # the gradient of the network's input is not needed
            bench.take(rows[name], device, _pass(x, w, gradient, stride, kernel // 2, wanted), amount)
    return [row for row in rows.values() if row.values]


def _pass(
    x: torch.Tensor, w: torch.Tensor, gradient: torch.Tensor, stride: int, padding: int, wanted: list[bool] | None
) -> Callable[[], object]:
    if wanted is None:
        return lambda: torch.conv2d(x, w, None, stride, padding)
    return lambda: torch.ops.aten.convolution_backward(
        gradient, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], 1, wanted
    )
