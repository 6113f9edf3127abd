"""NNI's own dispatcher, whose work the tuner host does: a name for code that imports it."""

from __future__ import annotations

from .msg_dispatcher_base import MsgDispatcherBase


class MsgDispatcher(MsgDispatcherBase):
    """A class for imports; bequeath does not run it."""
