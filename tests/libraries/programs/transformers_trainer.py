"""Trainer: a tiny Llama, training, evaluation, a checkpoint and going on from it.
arguments:
arguments: --fp16
arguments: --bf16
arguments: --gradient_checkpointing
"""

import argparse
import json
import logging

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments, set_seed

logging.getLogger("transformers").setLevel(logging.ERROR)
parser = argparse.ArgumentParser()
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--gradient_checkpointing", action="store_true")
args = parser.parse_args()

set_seed(0)
rows = np.random.default_rng(0).integers(0, 6, (48, 16)).cumsum(1) % 64
dataset = [{"input_ids": torch.from_numpy(row), "labels": torch.from_numpy(row)} for row in rows]
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
)
model = LlamaForCausalLM(config)
training_args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=8,
    per_device_eval_batch_size=8,
    max_steps=4,
    learning_rate=1e-3,
    warmup_steps=1,
    logging_steps=1,
    save_steps=4,
    report_to=[],
    disable_tqdm=True,
    dataloader_num_workers=1,
    fp16=args.fp16 and torch.accelerator.is_available(),
    bf16=args.bf16 and torch.accelerator.is_available(),
    gradient_checkpointing=args.gradient_checkpointing,
)
trainer = Trainer(model=model, args=training_args, train_dataset=dataset[:32], eval_dataset=dataset[32:])
trainer.train()
training_args.max_steps = 6
trainer = Trainer(model=model, args=training_args, train_dataset=dataset[:32], eval_dataset=dataset[32:])
trainer.train(resume_from_checkpoint=True)
metrics = trainer.evaluate()
losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
predictions = trainer.predict(dataset[32:34]).predictions
numbers = [*losses, metrics["eval_loss"], *predictions[:, -1, :4].ravel().tolist()]
half = args.fp16 or args.bf16
print(json.dumps({"device": str(trainer.model.device), "numbers": numbers, "tolerance": 3e-2 if half else 1e-3}))
