"""The platform ``local``: trials as processes of this machine."""

from dispatcher.platforms.local.platform import LocalPlatform

LOCAL = LocalPlatform()
"""What the entry point ``local`` names."""
