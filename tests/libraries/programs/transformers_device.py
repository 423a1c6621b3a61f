"""Models of several families moved with .to(): forward and backward of GPT-2, BERT, T5, ViT and
CLIP.
"""

import json

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    CLIPConfig,
    CLIPModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTForImageClassification,
    set_seed,
)

device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
rng = np.random.default_rng(0)
ids = torch.from_numpy(rng.integers(3, 60, (2, 12))).to(device)
pixels = torch.from_numpy(rng.normal(size=(2, 3, 16, 16)).astype(np.float32)).to(device)
small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def models():
    gpt2 = GPT2Config(vocab_size=64, n_positions=32, n_embd=32, n_layer=2, n_head=2)
    gpt2.resid_pdrop = gpt2.embd_pdrop = gpt2.attn_pdrop = 0.0
    yield GPT2LMHeadModel, gpt2, {"input_ids": ids, "labels": ids}
    yield BertForMaskedLM, BertConfig(vocab_size=64, **small, **still), {"input_ids": ids, "labels": ids}
    t5 = T5Config(vocab_size=64, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, dropout_rate=0.0)
    t5.decoder_start_token_id = 0
    yield T5ForConditionalGeneration, t5, {"input_ids": ids, "labels": ids}
    vit = ViTConfig(image_size=16, patch_size=4, num_labels=2, **small, **still)
    yield ViTForImageClassification, vit, {"pixel_values": pixels, "labels": torch.tensor([0, 1], device=device)}
    clip = CLIPConfig(
        text_config={"vocab_size": 64, "eos_token_id": 63, "max_position_embeddings": 16, **small},
        vision_config={"image_size": 16, "patch_size": 4, **small},
        projection_dim=16,
    )
    yield CLIPModel, clip, {"input_ids": ids, "pixel_values": pixels, "return_loss": True}


numbers = []
for kind, config, inputs in models():
    set_seed(0)
    model = kind(config).to(device)
    model.train()
    loss = model(**inputs).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    numbers += [loss.item(), norm.item()]
print(json.dumps({"device": str(norm.device), "numbers": numbers, "tolerance": 1e-3}))
