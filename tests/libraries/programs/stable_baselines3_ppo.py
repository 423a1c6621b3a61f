"""PPO on CartPole: learn, save, load; an update from a rollout of given actions."""

import json

import gymnasium as gym
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.evaluation import evaluate_policy

# On CUDA stable-baselines3 finds the device by itself.
device = "auto" if torch.cuda.is_available() else torch.accelerator.current_accelerator(check_available=True) or "auto"
learner = PPO("MlpPolicy", "CartPole-v1", n_steps=64, batch_size=32, n_epochs=2, seed=0, device=device)
learner.learn(128)
learner.save("ppo")
learner = PPO.load("ppo", env=learner.get_env(), device=device)
reward, _ = evaluate_policy(learner, learner.get_env(), n_eval_episodes=2, warn=False)
assert reward >= 5

# What is drawn on the device differs from the CPU's draws; so from here on the actions are numpy's.
model = PPO("MlpPolicy", "CartPole-v1", n_steps=32, batch_size=16, n_epochs=2, seed=0, device=device)
model.learn(0)
rng = np.random.default_rng(0)
env = gym.make("CartPole-v1")
observation, _ = env.reset(seed=0)
starts = True
model.rollout_buffer.reset()
for _ in range(32):
    action = int(rng.integers(2))
    seen = torch.as_tensor(observation[None], device=model.device)
    with torch.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(seen, torch.tensor([action], device=model.device))
    following, reward, terminated, truncated, _ = env.step(action)
    model.rollout_buffer.add(
        observation[None], np.array([[action]]), np.array([reward]), np.array([starts]), values.flatten(), log_probs
    )
    starts = terminated or truncated
    observation = env.reset(seed=1)[0] if starts else following
model.rollout_buffer.compute_returns_and_advantage(values, np.array([starts]))
np.random.seed(0)
model.train()
observations = np.random.default_rng(1).normal(size=(8, 4)).astype(np.float32)
actions, _ = model.predict(observations, deterministic=True)
with torch.no_grad():
    values = model.policy.predict_values(torch.as_tensor(observations, device=model.device))
losses = [model.logger.name_to_value[name] for name in ("train/value_loss", "train/policy_gradient_loss")]
numbers = [*actions.tolist(), *values.flatten().tolist(), *losses]
print(json.dumps({"device": str(model.device), "numbers": [float(x) for x in numbers], "tolerance": 1e-3}))
