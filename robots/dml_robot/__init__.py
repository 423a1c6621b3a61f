"""Reinforcement learning of a six-axis arm, on any device that PyTorch supports."""
