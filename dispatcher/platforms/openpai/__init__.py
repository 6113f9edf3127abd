"""The platform ``openpai``: each worker is a job of an OpenPAI cluster, with an agent in it."""

from dispatcher.platforms.openpai.platform import OpenPaiPlatform

OPENPAI = OpenPaiPlatform()
"""What the entry point ``openpai`` names."""
