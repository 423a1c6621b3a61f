"""PyTorch's example: REINFORCE on gymnasium's CartPole, an observation at a time.
modes: cpu, cuda
"""

import json

import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(543)
rng = np.random.default_rng(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(4, 128)
        self.dropout = nn.Dropout(p=0.0)
        self.affine2 = nn.Linear(128, 2)

    def forward(self, x):
        x = F.relu(self.dropout(self.affine1(x)))
        return F.softmax(self.affine2(x), dim=1)


policy = Policy().to(device)
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()
env = gym.make("CartPole-v1")


def select_action(state):
    probs = policy(torch.from_numpy(state).float().unsqueeze(0).to(device))
    m = Categorical(probs)
    sampled = m.sample()
    assert sampled.device == probs.device and sampled.item() in (0, 1)
    # Acted on is a draw of numpy's, so that episodes are the same on all devices.
    action = torch.tensor([int(rng.random() > probs[0, 0].item())], device=device)
    return action.item(), m.log_prob(action)


numbers = []
for episode in range(3):
    state, _ = env.reset(seed=episode)
    rewards, log_probs = [], []
    for _ in range(40):
        action, log_prob = select_action(state)
        state, reward, done, _, _ = env.step(action)
        rewards.append(reward)
        log_probs.append(log_prob)
        if done:
            break
    R, returns = 0, []
    for r in reversed(rewards):
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns, device=device)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    policy_loss = torch.cat([-log_prob * R for log_prob, R in zip(log_probs, returns, strict=True)])
    optimizer.zero_grad()
    policy_loss = policy_loss.sum()
    policy_loss.backward()
    optimizer.step()
    numbers += [float(len(rewards)), policy_loss.item()]
print(json.dumps({"device": str(policy_loss.device), "numbers": numbers, "tolerance": 1e-3}))
