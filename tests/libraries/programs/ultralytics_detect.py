"""YOLO("yolo11n.yaml"): train, val and predict on drawn pictures, from random weights, with
device=0 or its name. arguments:
arguments: --amp
"""

import argparse
import json
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from ultralytics import YOLO

parser = argparse.ArgumentParser()
parser.add_argument("--amp", action="store_true")
args = parser.parse_args()
device = 0 if torch.cuda.is_available() else str(torch.accelerator.current_accelerator(True) or "cpu")

rng = np.random.default_rng(0)
for part, count in (("train", 4), ("val", 2)):
    for name in ("images", "labels"):
        Path("shapes", name, part).mkdir(parents=True)
    for index in range(count):
        picture = rng.integers(0, 60, (64, 64, 3), dtype=np.uint8)
        lines = []
        for kind in (0, 1):
            x, y, side = rng.integers(2, 36), rng.integers(2, 36), rng.integers(12, 26)
            picture[y : y + side, x : x + side, kind] = 255
            lines.append(f"{kind} {(x + side / 2) / 64} {(y + side / 2) / 64} {side / 64} {side / 64}")
        Image.fromarray(picture).save(f"shapes/images/{part}/{index}.png")
        Path(f"shapes/labels/{part}/{index}.txt").write_text("\n".join(lines))
folder = Path("shapes").resolve()
Path("shapes.yaml").write_text(f"path: {folder}\ntrain: images/train\nval: images/val\nnames: {{0: red, 1: green}}\n")

numbers, used = [], set()


def after_batch(trainer):
    numbers.extend(map(float, trainer.loss_items.values()))
    used.add(str(trainer.device))


# Workers would draw other augmentations than the process itself.
plain = dict.fromkeys(("mosaic", "hsv_h", "hsv_s", "hsv_v", "translate", "scale", "fliplr", "erasing"), 0.0)
model = YOLO("yolo11n.yaml")
model.add_callback("on_train_batch_end", after_batch)
model.train(
    data="shapes.yaml",
    epochs=1,
    imgsz=64,
    batch=2,
    device=device,
    amp=args.amp,
    workers=1,
    seed=0,
    optimizer="SGD",
    lr0=0.001,
    warmup_epochs=0,
    plots=False,
    verbose=False,
    project=str(Path("runs").resolve()),
    exist_ok=True,
    **plain,
)
metrics = model.val(data="shapes.yaml", imgsz=64, device=device, plots=False, verbose=False)
assert 0 <= metrics.box.map <= 1
found = model.predict("shapes/images/val/0.png", imgsz=64, device=device, conf=0.0005, max_det=5, verbose=False)[0]
found.plot()
if not args.amp:
    numbers += found.boxes.conf[:2].cpu().tolist()
(device,) = used
assert found.boxes.data.device.type == torch.device(device).type
print(json.dumps({"device": device, "numbers": numbers, "tolerance": 5e-2 if args.amp else 5e-3}))
