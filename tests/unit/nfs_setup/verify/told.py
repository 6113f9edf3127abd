"""A machine in this process that answers as it is told to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from nfs_setup.verify.probes import answer


class Told:
    """A :class:`~nfs_setup.verify.peer.Peer`. ``instead`` replaces answers by what is asked."""

    def __init__(self, name: str, **instead: Any) -> None:
        self.name = name
        self.instead = {key.replace("_", " "): value for key, value in instead.items()}
        self.asked: list[str] = []

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """What it was told to say, else what is so."""
        what = request["do"]
        self.asked.append(what)
        said = self.instead.get(what)
        if isinstance(said, BaseException):
            raise said
        if said is None:
            said = json.loads(json.dumps(answer({"verb": "probe", **request})))
        assert isinstance(said, dict)
        return said

    def close(self) -> None:
        """Nothing is held."""
