"""The sink ``wandb``: runs of Weights & Biases."""

from dispatcher.sinks.wandb.kind import WandbKind

WANDB = WandbKind()
"""What the entry point ``wandb`` names."""
