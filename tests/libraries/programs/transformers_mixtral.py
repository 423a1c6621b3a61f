"""A mixture of experts: forward and backward of a tiny Mixtral."""

import json

import numpy as np
import torch
from transformers import MixtralConfig, MixtralForCausalLM, set_seed

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
ids = torch.from_numpy(np.random.default_rng(0).integers(3, 60, (2, 12))).to(device)
config = MixtralConfig(
    vocab_size=64,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=1,
    intermediate_size=64,
    num_local_experts=4,
)
set_seed(0)
model = MixtralForCausalLM(config).to(device)
loss = model(input_ids=ids, labels=ids).loss
loss.backward()
norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
print(json.dumps({"device": str(norm.device), "numbers": [loss.item(), norm.item()], "tolerance": 1e-3}))
