"""The platform ``frameworkcontroller``: each worker is a Framework of a cluster."""

from dispatcher.platforms.frameworkcontroller.platform import FrameworkPlatform

FRAMEWORKCONTROLLER = FrameworkPlatform()
"""What the entry point ``frameworkcontroller`` names."""
