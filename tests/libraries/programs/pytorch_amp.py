"""A training loop with autocast, GradScaler, pinned workers of a data loader, streams, events and
memory statistics.
modes: cpu, cuda
"""

import json

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(0)
torch.cuda.manual_seed_all(0)
use_cuda = torch.cuda.is_available()
device = torch.device("cuda", torch.cuda.current_device()) if use_cuda else torch.device("cpu")


class Squares(Dataset):
    def __init__(self, count):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(count, 3, 16, 16)).astype(np.float32)
        self.y = (self.x.mean((1, 2, 3)) > 0).astype(np.int64)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {"image": torch.from_numpy(self.x[index]), "label": self.y[index]}


model = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.GroupNorm(2, 8), nn.SiLU(), nn.Flatten(), nn.Linear(392, 2))
if use_cuda:
    model = model.cuda()
    torch.cuda.reset_peak_memory_stats()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=True)
scaler = torch.amp.GradScaler("cuda", enabled=use_cuda)
loader = DataLoader(Squares(64), batch_size=16, num_workers=2, pin_memory=use_cuda, prefetch_factor=2)
numbers = []
for _epoch in range(2):
    for batch in loader:
        assert batch["image"].is_pinned() == use_cuda
        image = batch["image"].to(device, non_blocking=True)
        label = batch["label"].to(device, non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, dtype=torch.float16 if use_cuda else torch.bfloat16):
            loss = nn.functional.cross_entropy(model(image), label, label_smoothing=0.1)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        numbers.append(loss.item())
if use_cuda:
    stream, start, end = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(stream):
        start.record()
        prefetched = loader.dataset[0]["image"].pin_memory().cuda(non_blocking=True)
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()
    assert start.elapsed_time(end) >= 0 and prefetched.is_cuda
    assert torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated() > 0
    assert torch.cuda.get_device_name() and torch.cuda.get_device_properties(0).total_memory > 0
print(json.dumps({"device": str(image.device), "numbers": numbers, "tolerance": 2e-2}))
