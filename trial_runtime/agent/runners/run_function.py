"""A fresh process that calls one function and leaves, with as few imports as possible."""

from __future__ import annotations

import sys
from typing import Any

import msgspec

from trial_runtime import session as sessions
from trial_runtime.agent.runners.calling import (
    attempt_call,
    find,
    invoke,
    leave,
    put_code_first,
)


def main() -> None:
    """Run the function that the session names; ends the process."""
    session = sessions.current()
    assert isinstance(session, sessions.AgentSession)
    leave(run(session))


def run(session: sessions.AgentSession) -> int:
    """Call the session's function and report its result; returns the exit code."""
    file = session.file
    put_code_first(file.code_directory)
    result = attempt_call(
        lambda: invoke(find(file.call), msgspec.json.decode(file.parameters)),
    )
    if result.code == 0:
        result = attempt_call(lambda: report_returned(session, result.value))
    if result.text:
        sys.stderr.write(result.text + "\n")
    return result.code


def report_returned(session: sessions.AgentSession, value: Any) -> None:
    """Report a returned number or mapping as the final result, unless there is one already."""
    if value is None or session.final_reported:
        return
    session.report_final(value)
