"""SAC and DQN: learn, save, load, deterministic predictions and values."""

import json
import math

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import DQN, SAC

# On CUDA stable-baselines3 finds the device by itself.
device = "auto" if torch.cuda.is_available() else torch.accelerator.current_accelerator(check_available=True) or "auto"
observations = np.random.default_rng(0).uniform(-1, 1, (6, 3)).astype(np.float32)
sac = SAC("MlpPolicy", "Pendulum-v1", learning_starts=20, batch_size=16, buffer_size=200, seed=0, device=device)
actions, _ = sac.predict(observations, deterministic=True)
numbers = actions.flatten().tolist()
with torch.no_grad():
    seen = torch.as_tensor(observations, device=sac.device)
    for values in sac.critic(seen, torch.as_tensor(actions, device=sac.device)):
        numbers += values.flatten().tolist()
sac.learn(40)
assert math.isfinite(sac.logger.name_to_value.get("train/critic_loss", 0.0))
sac.save("sac")
after, _ = SAC.load("sac", device=device).predict(observations, deterministic=True)
assert np.isfinite(after).all() and np.allclose(after, sac.predict(observations, deterministic=True)[0])

# DQN draws with numpy alone, so all that it learns is the same everywhere.
env = gym.make("CartPole-v1")
dqn = DQN(
    "MlpPolicy", env, learning_starts=20, batch_size=16, train_freq=2, target_update_interval=20, seed=0, device=device
)
dqn.learn(60)
states = np.random.default_rng(1).normal(size=(6, 4)).astype(np.float32)
with torch.no_grad():
    numbers += dqn.q_net(torch.as_tensor(states, device=dqn.device)).flatten().tolist()
print(json.dumps({"device": str(sac.device), "numbers": numbers, "tolerance": 1e-3}))
