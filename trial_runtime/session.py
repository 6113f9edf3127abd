"""The attempt this process belongs to, as the functions of :mod:`trial_runtime.api` see it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from trial_runtime import trial_wire as wire
from trial_runtime.failpoints import failpoint
from trial_runtime.link import AgentLink
from trial_runtime.metric import metric_text
from trial_runtime.session_file import SESSION_VARIABLE, SessionFile, read_session

if TYPE_CHECKING:
    from typing import TypeAlias

    from trial_runtime.by_hand import ByHandSession

    Session: TypeAlias = "AgentSession | ByHandSession"


class AgentSession:
    """A session with an agent."""

    def __init__(self, file: SessionFile, link: AgentLink | None = None) -> None:
        self.file = file
        self.link = link or AgentLink(file.address, file.routing)
        self.final_reported = False
        self._accepts_stop = False

    def report_intermediate(self, value: Any) -> None:
        """Send an intermediate metric."""
        self.link.post([wire.Metric(metric_text(value, limit=self.file.max_metric_bytes))])

    def report_final(self, value: Any) -> None:
        """Send the final metric; returns when this process cannot lose it any more."""
        self.post_final(metric_text(value, limit=self.file.max_metric_bytes))

    def post_final(self, text: str) -> None:
        """Send a final metric that is JSON text already."""
        if self.final_reported:
            warn("a second final result is recorded and does not count")
        self.final_reported = True
        self.link.post([wire.Final(text)], wait=True)
        failpoint("trial.final.reported")

    def published(self, digest: str, kind: wire.WeightsKind, nbytes: int) -> None:
        """Announce complete weights at the save path; returns when the agent has the message.

        Args:
            digest: of the weights.
            kind: of the store that wrote them.
            nbytes: of all tensors; those that equal the parent's count as well.
        """
        self.link.post([wire.PublishedMessage(digest, kind, nbytes)], wait=True)

    def offer(self, offer: wire.Offered) -> wire.OfferAnswered:
        """Offer a version to a shared store; blocks until the head has answered."""
        return self.link.ask(offer)

    def stop_reason(self) -> str | None:
        """The reason why this attempt should stop, or None."""
        if not self._accepts_stop:
            self._accepts_stop = True
            self.link.post([wire.AcceptsStop()])
        self.link.poll()
        return self.link.stop_reason


def warn(text: str) -> None:
    """Write a line to the trial's standard error."""
    sys.stderr.write(f"[bequeath] {text}\n")


_current: Session | None = None


def current() -> Session:
    """This process's session, read as the environment says at the first call.

    Raises:
        BrokenSession: the environment names a session file that cannot be used.
    """
    global _current
    if _current is None:
        path = os.environ.get(SESSION_VARIABLE)
        if path:
            adopt(AgentSession(read_session(path)))
        else:
            from trial_runtime.by_hand import ByHandSession

            _current = ByHandSession()
    assert _current is not None
    return _current


def given() -> AgentSession | None:
    """The session with an agent that this process has already; nothing is looked for."""
    return _current if isinstance(_current, AgentSession) else None


def adopt(session: Session | None) -> None:
    """Make this the session of the process (runners of functions; None forgets the last)."""
    global _current
    _current = session
