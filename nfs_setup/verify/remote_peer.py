"""Another machine, asked over something that runs a program there: code and request go in."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nfs_setup.cluster.program import Program
from nfs_setup.errors import RequestRefused
from nfs_setup.host import Ran
from nfs_setup.verify.peers import PeerHangs, PeerLost

#: Run a program with its input, for so many seconds at most (:class:`Ran`, code 124).
Run = Callable[[Sequence[str], bytes, float], Ran]


class RemotePeer:
    """A program for each request: nothing has to be installed there, nothing stays there.

    Args:
        name: what it is called in findings.
        run: runs a program there; may raise :class:`PeerLost`.
        program: this package, packed.
        python: a Python of 3.9 or later there.
    """

    def __init__(self, name: str, run: Run, program: Program, python: str = "python3") -> None:
        self.name = name
        self._run = run
        self._program = program
        self._python = python

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """See :class:`~nfs_setup.verify.peers.Peer`."""
        stdin = self._program.code + json.dumps({"verb": "probe", **request}).encode()
        ran = self._run(self._program.command(self._python), stdin, limit_s)
        if ran.code == 124:
            text = f"no answer in {limit_s:.0f} s"
            raise PeerHangs(text, where=self.name)
        for line in reversed(ran.out.splitlines()):
            if line.startswith("{"):
                return self._answer(line)
        raise PeerLost(f"gave no answer (exit code {ran.code}): {ran.message}", where=self.name)

    def close(self) -> None:
        """Nothing is held."""

    def _answer(self, line: str) -> Mapping[str, Any]:
        try:
            document = json.loads(line)
        except (ValueError, RecursionError):
            raise PeerLost("its answer is no JSON", where=self.name) from None
        if "too_old" in document:
            version = ".".join(map(str, document["too_old"]))
            raise PeerLost(
                f"{self._python} is Python {version} there, and 3.9 is needed", where=self.name
            )
        if "error" in document:
            error = document["error"] if isinstance(document["error"], dict) else {}
            raise RequestRefused(str(error.get("message")), where=str(error.get("where", "")))
        assert isinstance(document, dict)
        return document
