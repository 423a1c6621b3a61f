"""Big-model inference: init_empty_weights, load_checkpoint_and_dispatch(device_map="auto"),
cpu_offload.
"""

import json

import numpy as np
import torch
from accelerate import cpu_offload, init_empty_weights, load_checkpoint_and_dispatch
from accelerate.utils import get_balanced_memory, infer_auto_device_map, set_seed
from safetensors.torch import save_file
from torch import nn


def network():
    return nn.Sequential(nn.Linear(8, 64), nn.GELU(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 4))


set_seed(0)
model = network()
save_file(model.state_dict(), "model.safetensors")
x = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32))
with init_empty_weights():
    empty = network()
memory = get_balanced_memory(empty)
assert infer_auto_device_map(empty, max_memory=memory)
dispatched = load_checkpoint_and_dispatch(empty, "model.safetensors", device_map="auto")
device = next(dispatched.parameters()).device
with torch.no_grad():
    numbers = dispatched(x.to(device)).flatten().tolist()
    main = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
    offloaded = cpu_offload(model, execution_device=main)
    numbers += offloaded(x).flatten().tolist()
print(json.dumps({"device": str(device), "numbers": numbers, "tolerance": 1e-4}))
