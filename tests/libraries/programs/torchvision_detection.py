"""Faster R-CNN: training steps on drawn boxes, then detection; in float32 and under autocast.
arguments:
arguments: --amp
"""

import argparse
import json

import numpy as np
import torch
import torchvision
from torchvision.models.detection import FasterRCNN
from torchvision.models.detection.rpn import AnchorGenerator

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
torch.manual_seed(0)

backbone = torch.nn.Sequential(
    torch.nn.Conv2d(3, 16, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(16, 32, 3, 2, 1), torch.nn.ReLU()
)
backbone.out_channels = 32
model = FasterRCNN(
    backbone,
    num_classes=3,
    min_size=64,
    max_size=64,
    rpn_anchor_generator=AnchorGenerator(sizes=((8, 16, 32),), aspect_ratios=((0.5, 1.0, 2.0),)),
    box_roi_pool=torchvision.ops.MultiScaleRoIAlign(["0"], output_size=5, sampling_ratio=2),
    rpn_pre_nms_top_n_train=100,
    rpn_post_nms_top_n_train=50,
    rpn_pre_nms_top_n_test=100,
    rpn_post_nms_top_n_test=50,
    # Every anchor and every proposal takes part, so that none is drawn.
    rpn_batch_size_per_image=10000,
    rpn_positive_fraction=1.0,
    box_batch_size_per_image=10000,
    box_positive_fraction=1.0,
    box_score_thresh=0.2,
).to(device)

rng = np.random.default_rng(0)
images, targets = [], []
for _ in range(2):
    image = rng.normal(0, 0.1, (3, 64, 64)).astype(np.float32)
    boxes, labels = [], []
    for label in (1, 2):
        x, y, side = rng.integers(2, 30), rng.integers(2, 30), rng.integers(12, 28)
        image[label, y : y + side, x : x + side] += 1
        boxes.append([x, y, x + side, y + side])
        labels.append(label)
    images.append(torch.from_numpy(image).to(device))
    targets.append(
        {"boxes": torch.tensor(boxes, dtype=torch.float32).to(device), "labels": torch.tensor(labels).to(device)}
    )

optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
scaler = torch.amp.GradScaler(device.type, init_scale=256.0, enabled=args.amp and device.type != "cpu")
dtype = torch.bfloat16 if device.type == "cpu" else torch.float16
numbers = []
model.train()
for _ in range(3):
    with torch.autocast(device.type, dtype=dtype, enabled=args.amp and device.type != "cpu"):
        losses = model(images, targets)
        loss = sum(losses.values())
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    numbers += [losses[name].item() for name in sorted(losses)]
model.eval()
with torch.no_grad(), torch.autocast(device.type, dtype=dtype, enabled=args.amp and device.type != "cpu"):
    found = model(images)
if not args.amp:
    numbers += [float(len(one["boxes"])) for one in found] + found[0]["scores"][:4].tolist()
assert all(torch.isfinite(one["boxes"]).all() for one in found)
print(json.dumps({"device": str(loss.device), "numbers": numbers, "tolerance": 5e-2 if args.amp else 1e-3}))
