"""Accelerator(): prepare, accumulate, backward, clip, gather, save_state and load_state, in a loop
of one's own.
arguments: --mixed_precision no
arguments: --mixed_precision fp16
arguments: --mixed_precision bf16
"""

import argparse
import json

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--mixed_precision", default="no", choices=["no", "fp16", "bf16"])
args = parser.parse_args()
no_half = args.mixed_precision == "fp16" and not torch.accelerator.is_available()

accelerator = Accelerator(mixed_precision="no" if no_half else args.mixed_precision, gradient_accumulation_steps=2)
set_seed(0)
rng = np.random.default_rng(0)
x = torch.from_numpy(rng.normal(size=(64, 10)).astype(np.float32))
y = (x.sum(1) > 0).long()
model = nn.Sequential(nn.Linear(10, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 8)
loader = DataLoader(TensorDataset(x, y), batch_size=8, num_workers=1)
model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)
numbers = []
for epoch in range(2):
    for features, labels in loader:
        with accelerator.accumulate(model):
            loss = nn.functional.cross_entropy(model(features), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
    with torch.no_grad():
        gathered = accelerator.gather_for_metrics((model(features).float(), labels))
        numbers += [loss.item(), *gathered[0].flatten().tolist()]
    if epoch == 0:
        accelerator.save_state("state")
accelerator.load_state("state")
with torch.no_grad(), accelerator.autocast():
    numbers.append(accelerator.reduce(model(features).float().abs().sum()).item())
accelerator.unwrap_model(model)
tolerance = 1e-4 if args.mixed_precision == "no" else 5e-2
print(json.dumps({"device": str(accelerator.device), "numbers": numbers, "tolerance": tolerance}))
