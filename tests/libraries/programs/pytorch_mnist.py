"""PyTorch's example: a convolutional network on pictures of digits, torch.accelerator, Adadelta,
StepLR.
"""

import argparse
import json

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout1 = nn.Dropout(0.0)
        self.dropout2 = nn.Dropout(0.0)
        self.fc1 = nn.Linear(16 * 5 * 5, 32)
        self.fc2 = nn.Linear(32, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        x = F.max_pool2d(x, 2)
        x = self.dropout1(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.dropout2(x)
        return F.log_softmax(self.fc2(x), dim=1)


def train(args, model, device, train_loader, optimizer, epoch, losses):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        output = model(data)
        loss = F.nll_loss(output, target)
        loss.backward()
        optimizer.step()
        if batch_idx % args.log_interval == 0:
            print(f"Train Epoch: {epoch} [{batch_idx * len(data)}]\tLoss: {loss.item():.6f}")
            losses.append(loss.item())


def test(model, device, test_loader):
    model.eval()
    test_loss = 0
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            data, target = data.to(device), target.to(device)
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    return test_loss / len(test_loader.dataset), correct


def digits(count, seed):
    """Noise with a bright square whose place is the digit."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, 10, count)
    images = rng.normal(0, 0.3, (count, 1, 14, 14)).astype(np.float32)
    for image, target in zip(images, targets, strict=True):
        image[0, 2 * (target // 5) * 3 : 2 * (target // 5) * 3 + 4, 2 * (target % 5) : 2 * (target % 5) + 4] += 1
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(targets))


def main():
    parser = argparse.ArgumentParser(description="PyTorch MNIST Example")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.5)
    parser.add_argument("--gamma", type=float, default=0.7)
    parser.add_argument("--no-accel", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    if not args.no_accel and torch.accelerator.is_available():
        device = torch.accelerator.current_accelerator()
        loader = {"num_workers": 1, "persistent_workers": True, "pin_memory": True}
    else:
        device = torch.device("cpu")
        loader = {}
    train_loader = DataLoader(digits(128, 0), batch_size=32, **loader)
    test_loader = DataLoader(digits(64, 1), batch_size=64, **loader)

    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=args.lr)
    scheduler = StepLR(optimizer, step_size=1, gamma=args.gamma)
    losses = []
    for epoch in range(1, args.epochs + 1):
        train(args, model, device, train_loader, optimizer, epoch, losses)
        loss, correct = test(model, device, test_loader)
        losses += [loss, correct]
        scheduler.step()
    torch.save(model.state_dict(), "mnist_cnn.pt")
    model.load_state_dict(torch.load("mnist_cnn.pt"))
    print(json.dumps({"device": str(next(model.parameters()).device), "numbers": losses, "tolerance": 1e-3}))


if __name__ == "__main__":
    main()
