"""The platform ``slurm``: trials in jobs of a Slurm cluster."""

from dispatcher.platforms.slurm.platform import SlurmPlatform

SLURM = SlurmPlatform()
"""What the entry point ``slurm`` names."""
