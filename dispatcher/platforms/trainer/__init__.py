"""The platform ``trainer``: each worker is a TrainJob of a cluster, with an agent in it."""

from dispatcher.platforms.trainer.platform import TrainerPlatform

TRAINER = TrainerPlatform()
"""What the entry point ``trainer`` names."""
