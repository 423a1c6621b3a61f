"""Fabric(accelerator="auto"): a loop of one's own with setup, backward, clipping and save.
arguments:
arguments: --precision 16-mixed
arguments: --precision bf16-true
"""

import argparse
import json

import numpy as np
import torch
from lightning.fabric import Fabric
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--precision", default="32-true")
args = parser.parse_args()
precision = args.precision if args.precision != "16-mixed" or torch.accelerator.is_available() else "32-true"

fabric = Fabric(accelerator="auto", devices=1, precision=precision)
fabric.launch()
fabric.seed_everything(0, verbose=False)
x = np.random.default_rng(0).normal(size=(64, 8)).astype(np.float32)
dataset = TensorDataset(torch.from_numpy(x), torch.from_numpy(x.mean(1)))
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer = fabric.setup(model, optimizer)
loader = fabric.setup_dataloaders(DataLoader(dataset, batch_size=16))
numbers = []
for _epoch in range(2):
    for features, target in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(features).squeeze(1).float(), target.float())
        fabric.backward(loss)
        fabric.clip_gradients(model, optimizer, max_norm=1.0, error_if_nonfinite=False)
        optimizer.step()
        numbers.append(loss.item())
fabric.save("state.ckpt", {"model": model, "optimizer": optimizer})
fabric.load("state.ckpt", {"model": model, "optimizer": optimizer})
numbers.append(fabric.all_reduce(loss.detach()).item())
tolerance = 1e-4 if args.precision == "32-true" else 5e-2
print(json.dumps({"device": str(fabric.device), "numbers": numbers, "tolerance": tolerance}))
