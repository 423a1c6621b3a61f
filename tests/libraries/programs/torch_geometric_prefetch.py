"""PrefetchLoader: batches copied to the device ahead of their use."""

import json

import numpy as np
import torch
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader, PrefetchLoader
from torch_geometric.nn import GINConv, global_add_pool

rng = np.random.default_rng(0)
graphs = [
    Data(
        x=torch.from_numpy(rng.normal(size=(6, 4)).astype(np.float32)),
        edge_index=torch.from_numpy(rng.integers(0, 6, (2, 14))),
        y=torch.tensor([float(index % 2)]),
    )
    for index in range(8)
]
device = torch_geometric.device("auto")
torch.manual_seed(0)
model = GINConv(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
numbers = []
for batch in PrefetchLoader(DataLoader(graphs, batch_size=4)):
    out = global_add_pool(model(batch.x, batch.edge_index), batch.batch).squeeze(1)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(out, batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    numbers.append(loss.item())
print(json.dumps({"device": str(batch.x.device), "numbers": numbers, "tolerance": 1e-4}))
