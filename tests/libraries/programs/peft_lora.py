"""LoRA on a tiny Llama: trained with Trainer, saved, loaded, merged."""

import json
import logging

import numpy as np
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

logging.getLogger("transformers").setLevel(logging.ERROR)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
set_seed(0)
base = LlamaForCausalLM(config)
base.save_pretrained("base")
lora = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.0, target_modules=["q_proj", "v_proj", "gate_proj"])
model = get_peft_model(base, lora)
rows = torch.from_numpy(np.random.default_rng(0).integers(0, 6, (32, 16)).cumsum(1) % 64)
dataset = [{"input_ids": row, "labels": row} for row in rows]
arguments = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    max_steps=4,
    learning_rate=1e-2,
    logging_steps=1,
    report_to=[],
    save_strategy="no",
    disable_tqdm=True,
)
trainer = Trainer(model=model, args=arguments, train_dataset=dataset)
trainer.train()
numbers = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
model.save_pretrained("adapter")
device = next(model.parameters()).device
ids = rows[:2].to(device)
model.eval()
with torch.no_grad():
    expected = model(ids).logits
again = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained("base"), "adapter").to(device).eval()
merged = again.merge_and_unload()
with torch.no_grad():
    found = merged(ids).logits
torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
numbers += found[:, -1, :6].flatten().tolist()
print(json.dumps({"device": str(device), "numbers": numbers, "tolerance": 2e-3}))
