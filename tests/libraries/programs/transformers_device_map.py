"""from_pretrained(device_map="auto") of a tiny Llama, then generate() with each cache, greedy,
beams and sampling.
"""

import json

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM, set_seed

set_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.3,
    eos_token_id=None,
    pad_token_id=0,
)
LlamaForCausalLM(config).save_pretrained("llama")
model = AutoModelForCausalLM.from_pretrained("llama", device_map="auto")
inputs = torch.tensor([[5, 9, 33, 2], [7, 7, 1, 60]]).to(model.device)
mask = torch.ones_like(inputs)
greedy = model.generate(inputs, attention_mask=mask, max_new_tokens=8, do_sample=False)
static = model.generate(
    inputs, attention_mask=mask, max_new_tokens=8, do_sample=False, cache_implementation="static", disable_compile=True
)
beams = model.generate(inputs, attention_mask=mask, max_new_tokens=8, num_beams=3, do_sample=False)
penalised = model.generate(
    inputs, attention_mask=mask, max_new_tokens=8, do_sample=False, repetition_penalty=1.3, no_repeat_ngram_size=2
)
sampled = model.generate(inputs, attention_mask=mask, max_new_tokens=8, do_sample=True, top_p=0.9, temperature=0.7)
assert sampled.shape == (2, 12) and sampled.device == inputs.device
with torch.no_grad():
    logits = model(greedy).logits[:, -1, :4]
half = AutoModelForCausalLM.from_pretrained("llama", device_map="auto", dtype=torch.float16)
with torch.no_grad():
    rough = half(greedy).logits[:, -1, :4].float()
assert (rough - logits).abs().max() < 0.05
numbers = [x for ids in (greedy, static, beams, penalised) for x in ids.flatten().tolist()] + logits.flatten().tolist()
print(json.dumps({"device": str(model.device), "numbers": numbers, "tolerance": 1e-3}))
