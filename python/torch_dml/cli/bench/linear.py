"""Suite `linear`: 200 matrix products of linear layers and 1x1 convolutions in real networks.

The table lists networks, their layers, and the numbers of rows: tokens or pixels of a batch. A
layer in training is three products, forward and two gradients; in inference it is one. Sizes are
those of the networks' published configurations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from torch_dml.cli.bench.measure import Bench, Row


@dataclass(frozen=True)
class Layers:
    """Layers of a network, as (elements in, elements out), at some numbers of rows."""

    network: str
    trained: tuple[int, ...]  # numbers of rows of a training step
    inferred: tuple[int, ...]  # numbers of rows of an inference
    layers: tuple[tuple[int, int], ...]


TABLE = (
    # 1x1 convolutions of bottlenecks, for 32 images of 56x56, 28x28, 14x14 and 7x7 pixels; the
    # classifier of 32 images.
    Layers("ResNet-50, 56x56", (100_352,), (), ((64, 64), (64, 256), (256, 128))),
    Layers("ResNet-50, 28x28", (25_088,), (), ((128, 512), (512, 256))),
    Layers("ResNet-50, 14x14", (6_272,), (), ((256, 1_024), (1_024, 512))),
    Layers("ResNet-50, 7x7", (1_568,), (), ((512, 2_048), (2_048, 512))),
    Layers("ResNet-50, classifier", (32,), (1,), ((2_048, 1_000),)),
    # Expansions and projections of odd and small sizes; squeeze and excitation of 32 images; the
    # classifier.
    Layers("MobileNet-v3-large, 112x112", (401_408,), (), ((16, 64),)),
    Layers("MobileNet-v3-large, 56x56", (100_352,), (), ((64, 24), (24, 72))),
    Layers("MobileNet-v3-large, 28x28", (25_088,), (), ((72, 40), (40, 240))),
    Layers("MobileNet-v3-large, 14x14", (6_272,), (196,), ((200, 80), (80, 184), (480, 112), (112, 672))),
    Layers("MobileNet-v3-large, 7x7", (1_568,), (49,), ((672, 160), (160, 960))),
    Layers("MobileNet-v3-large, squeeze", (32,), (), ((72, 24), (672, 168), (240, 960))),
    Layers("MobileNet-v3-large, classifier", (32,), (1,), ((960, 1_280), (1_280, 1_000))),
    # 197 tokens an image, for 32 images and for one.
    Layers("ViT-B/16", (6_304,), (197,), ((768, 2_304), (768, 768), (768, 3_072), (3_072, 768))),
    Layers("ViT-L/16", (), (197,), ((1_024, 3_072), (1_024, 4_096), (4_096, 1_024))),
    # 32 sequences of 128 tokens, and one sequence.
    Layers("BERT-base", (4_096,), (128,), ((768, 768), (768, 3_072), (3_072, 768))),
    Layers("BERT-base, vocabulary", (640,), (), ((768, 30_522),)),
    Layers("BERT-large", (), (384,), ((1_024, 1_024), (1_024, 4_096), (4_096, 1_024))),
    # 8 sequences of 1,024 tokens; one token, and a prompt of 100.
    Layers("GPT-2", (8_192,), (1, 100), ((768, 2_304), (768, 768), (768, 3_072), (3_072, 768))),
    Layers("GPT-2, vocabulary", (8_192,), (1,), ((768, 50_257),)),
    # A sequence of 2,048 tokens; one token, 16 tokens, a prompt of 500.
    Layers("Llama-3.2-1B", (2_048,), (1, 16), ((2_048, 2_048), (2_048, 512), (2_048, 8_192), (8_192, 2_048))),
    Layers("Llama-2-7B", (), (1, 16, 500), ((4_096, 4_096), (4_096, 11_008), (11_008, 4_096))),
    Layers("Llama-2-7B, vocabulary", (), (1,), ((4_096, 32_000),)),
    # 1,500 frames of 30 seconds, for 8 recordings and for one; one token of 5 hypotheses.
    Layers("Whisper tiny", (12_000,), (1_500, 5), ((384, 384), (384, 1_536), (1_536, 384))),
    Layers("Whisper base", (), (1_500,), ((512, 512), (512, 2_048), (2_048, 512))),
    Layers("Whisper small", (), (1_500,), ((768, 3_072), (3_072, 768))),
    Layers("Whisper, vocabulary", (), (5,), ((384, 51_865), (512, 51_865))),
)
_QUICK = (Layers("a network", (24,), (1,), ((20, 33), (16, 16))),)


@dataclass(frozen=True)
class Product:
    """A product of a layer: [m, k] by [k, n], with the memory layouts of the layer's tensors."""

    name: str
    m: int
    n: int
    k: int
    # Whether each operand is transposed in memory.
    transposed: tuple[bool, bool]


def products(table: tuple[Layers, ...] = TABLE) -> Iterator[Product]:
    """Yield the products of a table."""
    for of in table:
        for given, made in of.layers:
            for rows in (*of.trained, *of.inferred):
                layer = f"{of.network}, {rows:,} rows, {given:,} to {made:,}"
                yield Product(f"{layer}: forward", rows, made, given, (False, True))
                if rows in of.trained:
                    yield Product(f"{layer}: gradient of the input", rows, given, made, (False, False))
                    yield Product(f"{layer}: gradient of the weight", made, given, rows, (True, False))


def run(bench: Bench) -> list[Row]:
    """Measure each product in float32 and in float16. Small ones measure the host as much as the
    device.
    """
    rows = []
    for dtype in (torch.float32, torch.float16):
        kind = str(dtype).removeprefix("torch.")
        for product in products(_QUICK if bench.quick else TABLE):
            bound = "float32" if dtype == torch.float32 else "half"
            row = Row(f"{product.name}, {kind}", "TFLOP/s", more_is_better=True, bound=bound, group=kind)
            amount = 2 * product.m * product.n * product.k / 1e12
            for device in bench.devices:
                bench.take(row, device, _work(product, dtype, device), amount)
            rows.append(row)
    return rows


def _work(product: Product, dtype: torch.dtype, device: torch.device) -> Callable[[], object]:
    sizes = (product.m, product.k), (product.k, product.n)
    a, b = (
        (torch.rand(*(reversed(size) if turned else size), device=device) - 0.5).to(dtype)
        for size, turned in zip(sizes, product.transposed, strict=True)
    )
    x, y = (t.t() if turned else t for t, turned in zip((a, b), product.transposed, strict=True))
    return lambda: x @ y
