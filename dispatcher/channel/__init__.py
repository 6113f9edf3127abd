"""Bytes between the head and its peers, over ZeroMQ.

The room decides who may speak and how large a message may be. It never interprets what is
said: the drivers of the tuner host and of the backends do, and so does the control desk.
Read :mod:`~dispatcher.channel.router` first.
"""

from dispatcher.channel.keys import CurveKeys
from dispatcher.channel.router import PeerMessage, Router, RouterLink

__all__ = ["CurveKeys", "PeerMessage", "Router", "RouterLink"]
