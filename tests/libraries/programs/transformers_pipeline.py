"""pipeline("text-generation") and pipeline("text-classification"), a tokenizer made on the spot,
device left out.
"""

import json

from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedTokenizerFast,
    pipeline,
    set_seed,
)

words = ["the", "a", "cat", "dog", "sat", "ran", "on", "under", "mat", "and", "then", "it", "was", "happy", "sad"]
vocabulary = {word: index for index, word in enumerate(["<pad>", "<unk>", "<eos>", *words])}
tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
fast = PreTrainedTokenizerFast(
    tokenizer_object=tokenizer, pad_token="<pad>", unk_token="<unk>", eos_token="<eos>", padding_side="left"
)

set_seed(0)
config = GPT2Config(vocab_size=len(vocabulary), n_positions=64, n_embd=32, n_layer=2, n_head=2)
config.bos_token_id = config.eos_token_id = vocabulary["<eos>"]
model = GPT2LMHeadModel(config)
model.save_pretrained("gpt2")
fast.save_pretrained("gpt2")
generator = pipeline("text-generation", model="gpt2")
batch = ["the cat sat", "a dog ran under the"]
greedy = generator(batch, max_new_tokens=8, do_sample=False, batch_size=2, return_tensors=True)
beams = generator("then it", max_new_tokens=6, num_beams=3, do_sample=False, return_tensors=True)
sampled = generator("a mat", max_new_tokens=6, do_sample=True, top_k=5, top_p=0.9, temperature=0.8)
assert sampled[0]["generated_text"].startswith("a mat")
ids = [*greedy[0][0]["generated_token_ids"], *greedy[1][0]["generated_token_ids"], *beams[0]["generated_token_ids"]]

set_seed(0)
bert = BertConfig(
    vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
)
BertForSequenceClassification(bert).save_pretrained("bert")
classifier = pipeline("text-classification", model="bert", tokenizer=fast)
scores = [answer["score"] for answer in classifier(["the cat was happy", "sad dog"])]
numbers = [*map(float, ids), *scores]
print(json.dumps({"device": str(generator.device), "numbers": numbers, "tolerance": 1e-4}))
