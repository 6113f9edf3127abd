"""The platform ``ray``: trials in actors of a Ray cluster."""

from dispatcher.platforms.ray.platform import RayPlatform

RAY = RayPlatform()
"""What the entry point ``ray`` names."""
