"""The arm: its dimensions, how it moves, and where it reaches."""
