"""load_file(device=) and safe_open(device=): weights read onto the device, in several dtypes, and
saved from it.
"""

import json

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, load_model, save_file, save_model

device = str(torch.accelerator.current_accelerator()) if torch.accelerator.is_available() else "cpu"
rng = np.random.default_rng(0)
weights = {
    "float": torch.from_numpy(rng.normal(size=(4, 6)).astype(np.float32)),
    "half": torch.from_numpy(rng.normal(size=5).astype(np.float16)),
    "brain": torch.from_numpy(rng.normal(size=5).astype(np.float32)).bfloat16(),
    "long": torch.arange(3),
    "empty": torch.zeros(0, 2),
}
save_file(weights, "weights.safetensors", metadata={"format": "pt"})
loaded = load_file("weights.safetensors", device=device)
numbers = [x for name in sorted(loaded) for x in loaded[name].double().cpu().flatten().tolist()]
assert all(loaded[name].dtype == weights[name].dtype for name in weights)
with safe_open("weights.safetensors", framework="pt", device=device) as file:
    numbers += file.get_tensor("float").sum(1).tolist()
    numbers += file.get_slice("float")[1:3, 2:].flatten().tolist()
save_file({name: tensor * 2 for name, tensor in loaded.items()}, "twice.safetensors")
numbers += load_file("twice.safetensors")["float"].flatten().tolist()
torch.manual_seed(0)
model = torch.nn.Linear(6, 3).to(device)
save_model(model, "model.safetensors")
other = torch.nn.Linear(6, 3).to(device)
load_model(other, "model.safetensors", device=device)
numbers += other(loaded["float"]).flatten().tolist()
print(json.dumps({"device": str(loaded["float"].device), "numbers": numbers, "tolerance": 1e-5}))
