"""Bytes between the head and its peers, over ZeroMQ.

This package decides which peers may send and how large a message may be. It never interprets a
message: the drivers of the tuner host and of the backends do, and so does the control server.
Read :mod:`~dispatcher.channel.router` first.
"""

from dispatcher.channel.folder_endpoint import FolderEndpoint
from dispatcher.channel.keys import CurveKeys
from dispatcher.channel.router import PeerMessage, Router, RouterLink

__all__ = ["CurveKeys", "FolderEndpoint", "PeerMessage", "Router", "RouterLink"]
