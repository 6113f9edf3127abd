"""The platform ``dlts``: each worker is a job of a DLTS cluster (apulis), with an agent in it."""

from dispatcher.platforms.dlts.platform import DltsPlatform

DLTS = DltsPlatform()
"""What the entry point ``dlts`` names."""
