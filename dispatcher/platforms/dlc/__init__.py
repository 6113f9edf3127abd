"""The platform ``dlc``: each worker is a job of Alibaba Cloud's PAI-DLC, with an agent in it."""

from dispatcher.platforms.dlc.platform import DlcPlatform

DLC = DlcPlatform()
"""What the entry point ``dlc`` names."""
