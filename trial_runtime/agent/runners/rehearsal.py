"""A rehearsal of a forked trial in its server, before there is any trial.

A forked child copies each page that it writes to, and CPython writes where it only reads: it counts
references, specialises code that has run eight times, and caches where a class has an attribute.
Code that the server has run already is specialised and cached, so each child copies a hundred
pages less.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress
from typing import Any

from trial_runtime import session as sessions
from trial_runtime import trial_wire as wire
from trial_runtime.agent.processes.sweep import die_with_parent
from trial_runtime.agent.runners.calling import flush_streams, run
from trial_runtime.agent.runners.settling import settle
from trial_runtime.failpoints import out_of_reach
from trial_runtime.link import AgentLink
from trial_runtime.local_channel import LocalChannel
from trial_runtime.session_file import (
    SESSION_VARIABLE,
    SESSION_VERSION,
    SessionFile,
    decode_session,
    encode_session,
)

#: CPython specialises what has run eight times, in the runs that follow.
_TIMES = 16

#: Nobody listens there: a connection is refused at once.
_NOWHERE = f"unix:{os.devnull}"


def nothing(_parameters: Any) -> float:
    """Do nothing: the trial that is rehearsed."""
    return 1.0


def rehearse(code_directory: str) -> None:
    """Run a trial that does nothing, and report its result to this process itself.

    Touches no file, and leaves the process as it was.
    """
    encoded = encode_session(
        SessionFile(
            SESSION_VERSION,
            _NOWHERE,
            "",
            0,
            0,
            "",
            "{}",
            call=f"{__name__}:{nothing.__name__}",
            code_directory=code_directory,
        )
    )
    # A child that remembers an attribute in place of one of a preloaded module's would write to
    # that one's name, wherever in their memory it is.
    forget = getattr(sys, "_clear_type_cache", None)
    if forget is not None:
        forget()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    link = AgentLink(_NOWHERE, "", LocalChannel.over(ours))
    agent = LocalChannel.over(theirs)
    with ours, theirs, out_of_reach():
        for number in range(1, _TIMES + 1):
            agent.send(wire.frame([wire.Receipt(number)]))
            _one(decode_session(encoded), link)
    os.environ.pop(SESSION_VARIABLE, None)
    sessions.adopt(None)


def _one(file: SessionFile, link: AgentLink) -> None:
    die_with_parent(os.getppid())
    os.environ[SESSION_VARIABLE] = ""
    session = sessions.AgentSession(file, link)
    sessions.adopt(session)
    settle(session.file)
    with suppress(OSError):  # of a trial, this is where it meets its agent
        LocalChannel(file.address, "", patience_s=1.0)
    run(session)
    flush_streams()
