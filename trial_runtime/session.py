"""The attempt this process belongs to, as the functions of :mod:`trial_runtime.api` see it."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any, Protocol

import msgspec

from trial_runtime import wire
from trial_runtime.link import AgentLink
from trial_runtime.metric import metric_text
from trial_runtime.session_file import SESSION_VARIABLE, SessionFile, read_session


class Session(Protocol):
    """What an attempt can do. By hand (no dispatcher) the same, on this machine alone."""

    file: SessionFile

    def report_intermediate(self, value: Any) -> None:
        """Hand in an intermediate metric."""
        ...

    def report_final(self, value: Any) -> None:
        """Hand in the final metric; returns when it cannot be lost by this process any more."""
        ...

    def published(self, digest: str, kind: str, nbytes: int) -> None:
        """Tell that complete weights are at the save path."""
        ...

    def stop_reason(self) -> str | None:
        """Why this attempt should stop, or None."""
        ...


class AgentSession:
    """A session with an agent."""

    def __init__(self, file: SessionFile, link: AgentLink | None = None) -> None:
        self.file = file
        self.link = link or AgentLink(file.address, file.routing)
        self.final_reported = False
        self._heeding = False

    def report_intermediate(self, value: Any) -> None:
        self.link.post([wire.Metric(metric_text(value, limit=self.file.max_metric_bytes))])

    def report_final(self, value: Any) -> None:
        text = metric_text(value, limit=self.file.max_metric_bytes)
        if self.final_reported:
            warn("a second final result is recorded and does not count")
        self.final_reported = True
        self.link.post([wire.Final(text)], wait=True)

    def published(self, digest: str, kind: str, nbytes: int) -> None:
        self.link.post([wire.Published(digest, kind, nbytes)], wait=True)

    def stop_reason(self) -> str | None:
        if not self._heeding:
            self._heeding = True
            self.link.post([wire.Heeding()])
        self.link.poll()
        return self.link.stop_reason


class ByHandSession:
    """A session without a dispatcher: reports are shown, weights stay on this machine.

    Parameters come from the JSON file that ``BEQUEATH_PARAMETERS`` names, if it is set.
    """

    def __init__(self) -> None:
        folder = os.path.abspath(os.environ.get("BEQUEATH_FOLDER", "bequeath-by-hand"))
        self.file = SessionFile(
            version=1,
            address="",
            routing="",
            trial=0,
            attempt=0,
            folder=folder,
            parameters=_parameters_by_hand(),
            save_path=None,
            weights_root=None,
        )
        self._intermediate = 0

    def report_intermediate(self, value: Any) -> None:
        self._intermediate += 1
        say(f"intermediate result {self._intermediate}: {metric_text(value)}")

    def report_final(self, value: Any) -> None:
        say(f"final result: {metric_text(value)}")

    def published(self, digest: str, kind: str, nbytes: int) -> None:
        say(f"weights saved: {nbytes:,} bytes, digest {digest}")

    def stop_reason(self) -> str | None:
        return None


def _parameters_by_hand() -> str:
    path = os.environ.get("BEQUEATH_PARAMETERS")
    if not path:
        return "{}"
    with open(path, encoding="utf-8") as file:
        text = file.read()
    msgspec.json.decode(text)  # say here, not later, that it is not JSON
    return text


def say(text: str) -> None:
    """A line for who runs the trial by hand."""
    sys.stdout.write(f"[bequeath] {text}\n")
    sys.stdout.flush()


def warn(text: str) -> None:
    """A line on the trial's standard error."""
    sys.stderr.write(f"[bequeath] {text}\n")


_current: Session | None = None


def current() -> Session:
    """This process's session, found through the environment at the first call.

    Raises:
        BrokenSession: the environment names a session file that cannot be used.
    """
    global _current
    if _current is None:
        path = os.environ.get(SESSION_VARIABLE)
        if path:
            adopt(AgentSession(read_session(path)))
            atexit.register(settle)
        else:
            _current = ByHandSession()
    assert _current is not None
    return _current


def adopt(session: Session | None) -> None:
    """Make this the session of the process (runners of functions; None forgets the last)."""
    global _current
    _current = session


def settle() -> None:
    """Wait until all reports of this process are with the agent; leaves the exit status alone."""
    if isinstance(_current, AgentSession):
        _current.link.settle()
