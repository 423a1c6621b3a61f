"""
Object detection: torchvision's Faster R-CNN learns to find circles, squares and triangles that are
drawn on the fly.

Trains from random weights, then tests on new pictures how many shapes it finds and how well the
boxes fit, and writes a picture with the boxes. `--model small` (a few convolutions, 128 x 128
pixels) learns this in a minute or two on a CPU; `--model mobilenet` is
fasterrcnn_mobilenet_v3_large_320_fpn, a model of realistic size. The exit status is 1 if a training
of at least the default length finds too few shapes, or if an operator ran on the CPU because it has
no kernel.

    python examples/detect.py
    python examples/detect.py --model mobilenet --steps 2000 --amp --output shapes.png
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from devices import choose, describe, no_fallbacks, peak_memory, reset_peak_memory, synchronize
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler

try:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from torchvision.models.detection import FasterRCNN, fasterrcnn_mobilenet_v3_large_320_fpn
    from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
    from torchvision.models.detection.rpn import AnchorGenerator
    from torchvision.ops import MultiScaleRoIAlign, box_iou
    from torchvision.utils import draw_bounding_boxes, make_grid, save_image
except ImportError as error:
    sys.exit(f"{error.name} is missing: pip install torchvision rich")

CLASSES = ("background", "circle", "square", "triangle")
COLOURS = ("black", "red", "lime", "deepskyblue")
SIDE = {"small": 128, "mobilenet": 320}
# A shape is found when a box of its class with at least this score overlaps it by at least this.
SCORE, OVERLAP = 0.5, 0.5
# After DEFAULT_STEPS the small model must find at least this fraction of the shapes.
DEFAULT_STEPS, GOAL = 400, 0.8
SHOWN = 8

Target = dict[str, Tensor]


def draw(side: int, generator: torch.Generator) -> tuple[Tensor, Target]:
    """Return a picture of one to three shapes, (3, side, side) from 0 to 1, and their boxes and
    classes.
    """

    def uniform(low: float, high: float) -> float:
        return low + (high - low) * torch.rand(1, generator=generator).item()

    picture = torch.rand(3, 1, 1, generator=generator) * 0.4 + 0.1 * torch.rand(3, side, side, generator=generator)
    y, x = torch.meshgrid(torch.arange(side) + 0.5, torch.arange(side) + 0.5, indexing="ij")
    boxes: list[list[float]] = []
    labels: list[int] = []
    wanted = int(torch.randint(1, 4, (1,), generator=generator))
    for _ in range(20):
        if len(boxes) == wanted:
            break
        half = uniform(0.08, 0.2) * side
        cx, cy = uniform(half, side - half), uniform(half, side - half)
        box = [cx - half, cy - half, cx + half, cy + half]
        if boxes and box_iou(torch.tensor([box]), torch.tensor(boxes)).max() > 0:
            continue
        label = int(torch.randint(1, len(CLASSES), (1,), generator=generator))
        dx, dy = (x - cx) / half, (y - cy) / half
        inside = {
            "circle": dx**2 + dy**2 <= 1,
            "square": (dx.abs() <= 1) & (dy.abs() <= 1),
            "triangle": (dy <= 1) & (dx.abs() <= (dy + 1) / 2),
        }[CLASSES[label]]
        colour = 0.5 + 0.5 * torch.rand(3, 1, generator=generator)
        picture[:, inside] = colour
        boxes.append(box)
        labels.append(label)
    return picture, {"boxes": torch.tensor(boxes), "labels": torch.tensor(labels)}


def draw_batch(
    count: int, side: int, generator: torch.Generator, device: torch.device
) -> tuple[list[Tensor], list[Target]]:
    """Return `count` pictures and their targets on a device."""
    drawn = [draw(side, generator) for _ in range(count)]
    pictures = [picture.to(device) for picture, _ in drawn]
    return pictures, [{name: value.to(device) for name, value in target.items()} for _, target in drawn]


def small_detector() -> FasterRCNN:
    """Return a Faster R-CNN whose backbone is four convolutions: one feature per 8 x 8 pixels."""

    def block(inputs: int, outputs: int, stride: int) -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU())

    width = 64
    backbone = nn.Sequential(block(3, 16, 2), block(16, 32, 2), block(32, width, 2), block(width, width, 1))
    backbone.out_channels = width  # type: ignore[assignment]  # read by FasterRCNN
    return FasterRCNN(
        backbone,
        min_size=SIDE["small"],
        max_size=SIDE["small"],
        rpn_anchor_generator=AnchorGenerator(sizes=((24, 36, 48),), aspect_ratios=((1.0,),)),
        box_roi_pool=MultiScaleRoIAlign(["0"], output_size=5, sampling_ratio=2),
        box_head=TwoMLPHead(width * 5**2, 256),
        box_predictor=FastRCNNPredictor(256, len(CLASSES)),
        rpn_pre_nms_top_n_train=200,
        rpn_post_nms_top_n_train=100,
        rpn_pre_nms_top_n_test=200,
        rpn_post_nms_top_n_test=50,
        box_batch_size_per_image=64,
    )


def detector(name: str) -> FasterRCNN:
    """Return one of the two models, with random weights."""
    if name == "small":
        return small_detector()
    model: FasterRCNN = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=len(CLASSES)
    )
    return model


@dataclass
class Score:
    """The number of shapes, the number of boxes, and the overlaps of the correct boxes."""

    shapes: int
    boxes: int
    overlaps: list[float]

    @property
    def recall(self) -> float:
        """Return the fraction of the shapes that was found."""
        return len(self.overlaps) / self.shapes

    @property
    def precision(self) -> float:
        """Return the fraction of the boxes that is correct."""
        return len(self.overlaps) / max(self.boxes, 1)

    def __str__(self) -> str:
        """Return the score as text."""
        mean = statistics.fmean(self.overlaps) if self.overlaps else 0.0
        return (
            f"found {len(self.overlaps)} of {self.shapes} shapes (recall {self.recall:.1%}), {self.boxes} boxes "
            f"(precision {self.precision:.1%}), mean IoU of what was found {mean:.3f}"
        )


def score(found: list[Target], wanted: list[Target]) -> Score:
    """Assign to each shape the box of its class with the highest score that overlaps it enough and
    belongs to no other shape.
    """
    boxes, overlaps = 0, []
    for one, other in zip(found, wanted, strict=True):
        boxes += len(one["boxes"])
        overlap = box_iou(other["boxes"], one["boxes"]) * (other["labels"][:, None] == one["labels"])
        for row in range(len(overlap)):
            right = (overlap[row] >= OVERLAP).nonzero()
            if len(right):
                best = int(right[0])  # torchvision sorts boxes by score
                overlaps.append(overlap[row, best].item())
                overlap[:, best] = 0
    return Score(sum(len(other["boxes"]) for other in wanted), boxes, overlaps)


@torch.no_grad()
def detect(model: FasterRCNN, pictures: list[Tensor]) -> list[Target]:
    """Return boxes, classes and scores of the model's confident detections, on the CPU."""
    model.eval()
    found = []
    for start in range(0, len(pictures), 8):
        for one in model(pictures[start : start + 8]):
            sure = one["scores"] >= SCORE
            found.append({name: value[sure].cpu() for name, value in one.items()})
    return found


def train(model: FasterRCNN, options: argparse.Namespace, console: Console) -> list[float]:
    """Train with AdamW and a learning rate that rises and falls; return the losses."""
    device: torch.device = options.device
    generator = torch.Generator().manual_seed(options.seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, options.lr, max(options.steps, 2), pct_start=0.1)
    half = options.amp and device.type != "cpu"
    scaler = GradScaler(device.type, enabled=half)
    losses: list[Tensor] = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}  loss {task.fields[loss]:.3f}  {task.fields[ms]:.0f} ms a step"),
        TimeRemainingColumn(),
    )
    started = time.perf_counter()
    model.train()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task(f"training on {device}", total=options.steps, loss=float("nan"), ms=float("nan"))
        for step in range(1, options.steps + 1):
            pictures, targets = draw_batch(options.batch_size, SIDE[options.model], generator, device)
            with torch.autocast(device.type, torch.float16, enabled=half):
                loss = torch.stack(list(model(pictures, targets).values())).sum()
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            losses.append(loss.detach())
            if step == 1:  # includes compilation: not counted in the time per step
                synchronize(device)
                started = time.perf_counter()
            elif step % 10 == 0 or step == options.steps:
                value = loss.item()
                ms = (time.perf_counter() - started) / (step - 1) * 1e3
                progress.update(task, completed=step, loss=value, ms=ms)
    return torch.stack(losses).tolist()


def picture_of(pictures: list[Tensor], found: list[Target]) -> Tensor:
    """Return the pictures in two rows, each with its boxes, classes and scores."""
    drawn = []
    for picture, one in zip(pictures, found, strict=True):
        large = nn.functional.interpolate(picture.cpu()[None], scale_factor=2)[0]
        labels = [f"{CLASSES[c]} {s:.2f}" for c, s in zip(one["labels"], one["scores"].tolist(), strict=True)]
        colours = [COLOURS[c] for c in one["labels"]]
        if labels:  # torchvision warns if there are none
            large = draw_bounding_boxes(large, one["boxes"] * 2, labels, colors=colours, width=2)
        drawn.append(large)
    grid: Tensor = make_grid(drawn, nrow=4, padding=4, pad_value=1)
    return grid


def arguments() -> argparse.Namespace:
    """Return the command line's options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--device", type=choose, default="auto", help="cpu, dml, cuda, ... (default: what PyTorch finds)"
    )
    parser.add_argument("--model", choices=SIDE, default="small", help="(default: %(default)s)")
    parser.add_argument("--steps", type=int, default=DEFAULT_STEPS, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--batch-size", type=int, default=8, metavar="N", help="(default: %(default)s)")
    parser.add_argument("--lr", type=float, default=2e-3, help="largest learning rate (default: %(default)s)")
    parser.add_argument("--amp", action="store_true", help="float16 where that is safe; not on the CPU")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--pictures", type=int, default=64, metavar="N", help="unseen ones (default: %(default)s)")
    parser.add_argument(
        "--output", type=Path, default=Path("shapes.png"), metavar="FILE", help="(default: %(default)s)"
    )
    options = parser.parse_args()
    if min(options.steps, options.batch_size, options.pictures) < 1:
        parser.error("--steps, --batch-size and --pictures are 1 at least")
    return options


def main() -> int:
    """Train, test, write the picture, and return the exit status."""
    options, console = arguments(), Console(highlight=False)
    device: torch.device = options.device
    console.print(f"{options.model} on {device} ({describe(device)}), torch {torch.__version__}")
    torch.manual_seed(options.seed)
    model = detector(options.model).to(device)
    reset_peak_memory(device)
    losses = train(model, options, console)
    fifth = max(len(losses) // 5, 1)
    console.print(
        f"loss: {statistics.fmean(losses[:fifth]):.3f} at first, {statistics.fmean(losses[-fifth:]):.3f} at last"
    )
    if (peak := peak_memory(device)) is not None:
        console.print(f"peak memory: {peak / 2**20:,.0f} MiB")

    unseen = torch.Generator().manual_seed(options.seed + 1)
    pictures, wanted = draw_batch(options.pictures, SIDE[options.model], unseen, device)
    found = detect(model, pictures)
    result = score(found, [{name: value.cpu() for name, value in one.items()} for one in wanted])
    console.print(f"{options.pictures} unseen pictures: {result}")
    save_image(picture_of(pictures[:SHOWN], found[:SHOWN]), options.output)
    console.print(f"picture with boxes: {options.output}")
    native = no_fallbacks(device)
    missed = options.model == "small" and options.steps >= DEFAULT_STEPS and result.recall < GOAL
    if missed:
        print(f"fewer than {GOAL:.0%} of the shapes were found", file=sys.stderr)
    return 1 if missed or not native else 0


if __name__ == "__main__":
    sys.exit(main())
