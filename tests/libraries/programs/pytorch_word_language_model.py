"""PyTorch's example: a language model of words, recurrent or a Transformer, trained with truncated
backpropagation.
arguments: --model LSTM
arguments: --model GRU
arguments: --model Transformer
"""

import argparse
import json
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

parser = argparse.ArgumentParser(description="PyTorch Wikitext-2 RNN/LSTM/GRU/Transformer Language Model")
parser.add_argument("--model", default="LSTM")
parser.add_argument("--emsize", type=int, default=16)
parser.add_argument("--nhid", type=int, default=16)
parser.add_argument("--nlayers", type=int, default=2)
parser.add_argument("--lr", type=float, default=2.0)
parser.add_argument("--clip", type=float, default=0.25)
parser.add_argument("--batch_size", type=int, default=4)
parser.add_argument("--bptt", type=int, default=10)
args = parser.parse_args()

torch.manual_seed(1111)
device = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else torch.device("cpu")
NTOKENS = 30


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        self.rnn_type, self.nhid, self.nlayers = rnn_type, nhid, nlayers

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.encoder(input), hidden)
        decoded = self.decoder(output).view(-1, NTOKENS)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        zeros = weight.new_zeros(self.nlayers, bsz, self.nhid)
        return (zeros, zeros.clone()) if self.rnn_type == "LSTM" else zeros


class TransformerModel(nn.Transformer):
    def __init__(self, ntoken, ninp, nhead, nhid, nlayers):
        super().__init__(d_model=ninp, nhead=nhead, dim_feedforward=nhid, num_encoder_layers=nlayers, dropout=0.0)
        self.input_emb = nn.Embedding(ntoken, ninp)
        self.ninp = ninp
        self.decoder = nn.Linear(ninp, ntoken)
        position = torch.arange(100).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, ninp, 2).float() * (-math.log(10000.0) / ninp))
        pe = torch.zeros(100, 1, ninp)
        pe[:, 0, 0::2], pe[:, 0, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, src):
        mask = torch.log(torch.tril(torch.ones(len(src), len(src)))).to(src.device)
        src = self.input_emb(src) * math.sqrt(self.ninp)
        output = self.decoder(self.encoder(src + self.pe[: len(src)], mask=mask))
        return F.log_softmax(output, dim=-1)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous().to(device)


def get_batch(source, i):
    seq_len = min(args.bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


words = np.random.default_rng(0).integers(0, 5, 400).cumsum() % NTOKENS
train_data = batchify(torch.from_numpy(words), args.batch_size)
if args.model == "Transformer":
    model = TransformerModel(NTOKENS, args.emsize, 2, args.nhid, args.nlayers).to(device)
else:
    model = RNNModel(args.model, NTOKENS, args.emsize, args.nhid, args.nlayers).to(device)
criterion = nn.NLLLoss()

numbers = []
model.train()
hidden = None if args.model == "Transformer" else model.init_hidden(args.batch_size)
for i in range(0, train_data.size(0) - 1, args.bptt):
    data, targets = get_batch(train_data, i)
    model.zero_grad()
    if args.model == "Transformer":
        output = model(data).view(-1, NTOKENS)
    else:
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
    loss = criterion(output, targets)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), args.clip)
    for p in model.parameters():
        if p.grad is not None:
            p.data.add_(p.grad, alpha=-args.lr)
    numbers.append(loss.item())

# A few words of generation, the likeliest each time.
model.eval()
with torch.no_grad():
    input = torch.full((1, 1), 3, dtype=torch.long, device=device)
    hidden = None if args.model == "Transformer" else model.init_hidden(1)
    for _ in range(5):
        if args.model == "Transformer":
            weights = model(input)[-1].squeeze().exp().cpu()
            input = torch.cat([input, weights.argmax().view(1, 1).to(device)], 0)
        else:
            output, hidden = model(input, hidden)
            weights = output.squeeze().exp().cpu()
            input.fill_(weights.argmax())
        numbers.append(weights.max().item())
print(json.dumps({"device": str(input.device), "numbers": numbers, "tolerance": 1e-3}))
