"""Machines of a survey: asked over whatever carries a request there and an answer back."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import nfs_setup
from nfs_setup.errors import MachineRefuses, RequestRefused, SetupError
from nfs_setup.plain_values import made_of
from nfs_setup.verify.facts import Failure, MachineFacts


class PeerLost(MachineRefuses):
    """Raised when no answer comes: the connection broke, or its program cannot run or died."""


class PeerHangs(PeerLost):
    """Raised when it takes too long: its share hangs, most likely."""


class Peer(Protocol):
    """One machine. Used by one thread at a time."""

    name: str

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """Return the answer of :func:`nfs_setup.verify.probes.answer` there. Blocks for
        ``limit_s`` at most.

        Raises:
            PeerLost: if there is no answer; it is not asked again.
            RequestRefused: if it is refused there.
        """

    def close(self) -> None:
        """End the connection. What still hangs there is not waited for."""


#: Gets a line about what is done right now.
Say = Callable[[str], None]

_F = TypeVar("_F")


@dataclass(frozen=True)
class Place:
    """A machine, and where it has the share. ``host``: the same for processes of one."""

    peer: Peer
    path: str
    host: str = ""


class Asked:
    """A machine, and its answers so far in :attr:`facts`.

    Args:
        place: the machine.
        folder: the name of this verification's folder below the share.
        own: the name of this machine's own folder in that.
        limit_s: for what should take no time.
        again: it is a further process of a machine that is asked already.
    """

    def __init__(
        self, place: Place, folder: str, own: str, limit_s: float, again: bool = False
    ) -> None:
        self.path = place.path
        self.own = own
        self.name = place.peer.name
        self.facts = MachineFacts(place.peer.name, place.path, again)
        self.lost = ""  # why it is not asked any more
        self._peer = place.peer
        self._folder = f"{place.path.rstrip('/')}/{folder}"
        self._limit_s = limit_s

    def inside(self, own: str, *names: str) -> str:
        """Return the path here of what lies in a machine's ``own`` folder."""
        return "/".join((self._folder, own, *names))

    def ask(self, form: type[_F], what: str, more_s: float = 0.0, **values: Any) -> _F | Failure:
        """Return facts, or why there are none.

        Args:
            form: the facts to make of the answer.
            what: the name of the probe.
            more_s: seconds that the probe takes when all is well.
            **values: its arguments.
        """
        if self.lost:
            return Failure(what, "LOST", self.lost)
        try:
            document = self._peer.ask({"do": what, **values}, self._limit_s + more_s)
            if "failed" in document:
                return made_of(Failure, document["failed"], "answer")
            return made_of(form, document.get("facts"), "answer")
        except PeerLost as error:
            self.lost = error.message
            return Failure(what, "HANGS" if isinstance(error, PeerHangs) else "LOST", error.message)
        except SetupError as error:
            return Failure(what, "REFUSED", str(error))


#: Nothing of the user's is imported, and no site packages: it starts in some 30 ms.
_PROGRAM = """
import sys
sys.path.insert(0, sys.argv.pop())
from nfs_setup.verify.__main__ import main
sys.exit(main())
"""

_MOST_BYTES = 8 << 20
END_S = 5.0


class LocalPeer:
    """A process of this machine that is asked. Two of them are like two trials.

    Args:
        name: what it is called in findings.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._waited_for = False
        self._reading = threading.Lock()
        home = os.path.dirname(os.path.dirname(os.path.abspath(nfs_setup.__file__)))
        #: It answers; public for tests, which kill it.
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", "-c", _PROGRAM, home],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,  # Ctrl-C is for the caller, which ends this
            bufsize=0,
        )

    def ask(self, request: Mapping[str, Any], limit_s: float) -> Mapping[str, Any]:
        """See :class:`Peer`."""
        stdin = self.process.stdin
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
        """End the process: by the end of its input, so that it cleans up behind it, or by force."""
        process = self.process
        assert process.stdin is not None
        assert process.stdout is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # stuck in the kernel
                process.wait(END_S)
        if self._reading.acquire(timeout=END_S):  # its reader has seen its end
            process.stdout.close()

    def _line(self, limit_s: float) -> bytes:
        stdout = self.process.stdout
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
