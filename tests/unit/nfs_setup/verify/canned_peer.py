"""A machine in this process that gives canned answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nfs_setup.verify.probes import answer


class CannedPeer:
    """A :class:`~nfs_setup.verify.peers.Peer`. ``instead`` replaces answers by what is asked."""

    def __init__(self, name: str, **instead: Any) -> None:
        self.name = name
        self.instead = {key.replace("_", " "): value for key, value in instead.items()}
        self.asked: list[str] = []

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """Return the canned answer if there is one, else the true one."""
        what = request["do"]
        self.asked.append(what)
        reply = self.instead.get(what)
        if isinstance(reply, BaseException):
            raise reply
        if reply is None:
            reply = json.loads(json.dumps(answer({"verb": "probe", **request})))
        assert isinstance(reply, dict)
        return reply

    def close(self) -> None:
        """Nothing is held."""
