"""The platform ``adaptdl``: each worker is an AdaptDLJob of a cluster."""

from dispatcher.platforms.adaptdl.platform import AdaptdlPlatform

ADAPTDL = AdaptdlPlatform()
"""What the entry point ``adaptdl`` names."""
