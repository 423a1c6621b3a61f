"""The arm: its dimensions, its motion, and the poses it can reach."""
