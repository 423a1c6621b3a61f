"""GCN and GAT on a random graph: node classification, loaders of neighbourhoods and of batches of
graphs.
"""

import json

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool
from torch_geometric.utils import to_undirected

device = torch_geometric.device("auto")
rng = np.random.default_rng(0)
edges = to_undirected(torch.from_numpy(rng.integers(0, 40, (2, 120))))
data = Data(
    x=torch.from_numpy(rng.normal(size=(40, 8)).astype(np.float32)),
    edge_index=edges,
    y=torch.from_numpy(rng.integers(0, 3, 40)),
    train_mask=torch.arange(40) < 30,
)


class Net(torch.nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        heads = options.get("heads", 1)
        self.conv1 = kind(8, 16, **options)
        self.conv2 = kind(16 * heads, 3)

    def forward(self, x, edge_index):
        return self.conv2(F.elu(self.conv1(x, edge_index)), edge_index)


numbers = []
data = data.to(device)
for kind, options in ((GCNConv, {}), (GATConv, {"heads": 2}), (SAGEConv, {"aggr": "max"})):
    torch.manual_seed(0)
    model = Net(kind, **options).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(3):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        loss = F.cross_entropy(out[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimizer.step()
        numbers.append(loss.item())
    model.eval()
    with torch.no_grad():
        correct = (model(data.x, data.edge_index).argmax(1) == data.y)[~data.train_mask].sum()
    numbers.append(float(correct))

graphs = [
    Data(x=torch.randn(5, 8, generator=torch.Generator().manual_seed(index)), edge_index=edges[:, :20] % 5)
    for index in range(6)
]
torch.manual_seed(0)
model = Net(GCNConv).to(device)
for batch in DataLoader(graphs, batch_size=3):
    batch = batch.to(device, non_blocking=True)
    pooled = global_mean_pool(model(batch.x, batch.edge_index), batch.batch)
    numbers += pooled.flatten().tolist()
print(json.dumps({"device": str(loss.device), "numbers": numbers, "tolerance": 1e-3}))
