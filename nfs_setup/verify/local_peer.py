"""This machine, asked in a process of its own: a share that hangs, hangs there."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import nfs_setup
from nfs_setup.errors import RequestRefused
from nfs_setup.verify.peer import PeerHangs, PeerLost

#: Nothing of the user's is imported, and no site packages: it starts in some 30 ms.
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv.pop())
from nfs_setup.verify.__main__ import main
sys.exit(main())
"""

_MOST_BYTES = 8 << 20
_END_S = 5.0


class LocalPeer:
    """Two of them are two processes of one machine, as two trials are.

    Args:
        name: what it is called in findings.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._waited_for = False
        self._reading = threading.Lock()
        home = os.path.dirname(os.path.dirname(os.path.abspath(nfs_setup.__file__)))
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, home],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the caller, which ends this
            bufsize=0,
        )

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """See :class:`~nfs_setup.verify.peer.Peer`."""
        stdin = self._process.stdin
        assert stdin is not None
        if self._waited_for:
            raise PeerLost("it is still about something else", where=self.name)
        self._waited_for = True  # until it has answered: late answers are nobody's
        try:
            stdin.write(json.dumps({"verb": "probe", **request}).encode() + b"\n")
        except OSError:
            raise PeerLost("its program died", where=self.name) from None
        with self._reading:
            document = json.loads(self._line(limit_s))
        self._waited_for = False
        if "error" in document:
            raise RequestRefused(document["error"]["message"], where=document["error"]["where"])
        assert isinstance(document, dict)
        return document

    def close(self) -> None:
        """End it: by the end of its input, whereupon it removes what it began, else by force."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel
                process.wait(_END_S)
        if self._reading.acquire(timeout=_END_S):  # its reader has seen its end
            process.stdout.close()

    def _line(self, limit_s: float) -> bytes:
        stdout = self._process.stdout
        assert stdout is not None
        last = time.monotonic() + limit_s
        line = b""
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not line.endswith(b"\n"):
                if not selector.select(max(0.0, last - time.monotonic())):
                    text = f"no answer in {limit_s:.0f} s"
                    raise PeerHangs(text, where=self.name)
                part = os.read(stdout.fileno(), 1 << 16)
                if not part or len(line) > _MOST_BYTES:
                    raise PeerLost("its program died", where=self.name)
                line += part
        return line
