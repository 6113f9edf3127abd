"""The sessions of a connection: whatever a command or a transfer ends in, its place is free again.

The machine is played; which answers it gives to which calls is drawn. A session that were counted
for ever would be missed only by the tenth one after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any
from unittest import mock

import paramiko
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dispatcher.errors import BackendError
from dispatcher.ssh import SshConnection, SshTarget, connection, running
from dispatcher.ssh.errors import ConnectionLost, SessionRefused
from dispatcher.ssh.link import NoMoreSessions, SlowPeer

MOST_CONNECTIONS, MOST_SESSIONS = 2, 3


class Channel:
    """A session that is open."""

    def __init__(self, exec_fails: bool) -> None:
        self._exec_fails = exec_fails

    def exec_command(self, command: str) -> None:
        if self._exec_fails:
            raise paramiko.SSHException("no")

    def exit_status_ready(self) -> bool:
        return True

    def close(self) -> None: ...


class Machine:
    """What it answers next: to a login, to a session that is asked for, and in the session."""

    def __init__(self) -> None:
        self.login = self.opening = self.within = "well"
        self.links: list[Link] = []

    def open_session(self) -> Channel:
        match self.opening:
            case "no more":
                raise NoMoreSessions("administratively prohibited")
            case "slow":
                raise SlowPeer("opened no session", where="there")
            case "lost":
                raise ConnectionLost("gone", where="there")
            case "interrupted":
                raise KeyboardInterrupt
        return Channel(self.within == "refused")

    def talk(self, *_: Any, **__: Any) -> Any:
        if self.within == "late":
            raise running.OutOfTime(0)
        return self.answer()

    def answer(self, *_: Any, **__: Any) -> Any:
        match self.within:
            case "lost":
                raise ConnectionLost("gone", where="there")
            case "refused":
                raise SessionRefused("no", where="there")
            case "interrupted":
                raise KeyboardInterrupt
        return None


class Link:
    """In place of the connection on the wire."""

    def __init__(self, machine: Machine) -> None:
        self.sessions = 0
        self.most_sessions = MOST_SESSIONS
        self.label = "there"
        if machine.login != "well":
            raise ConnectionLost("no login", where="there")
        machine.links.append(self)
        self.open_session = lambda _timeout_s: machine.open_session()

    def is_alive(self) -> bool:
        return True

    def ends_within(self, limit_s: float) -> bool:
        return False

    def close(self) -> None: ...


class Begun:
    """In place of a command that one talks to."""

    def __init__(self, machine: Machine) -> None:
        self.pid = 0
        self.begin = machine.answer


@contextmanager
def connected() -> Iterator[tuple[Machine, SshConnection]]:
    machine = Machine()
    with (
        mock.patch.object(connection, "way_to", return_value=[]),
        mock.patch.object(connection, "Link", side_effect=lambda *_: Link(machine)),
        mock.patch.object(connection, "Started", side_effect=lambda *_: Begun(machine)),
        mock.patch.object(running, "talk", side_effect=machine.talk),
        SshConnection(SshTarget("there", most_connections=MOST_CONNECTIONS)) as made,
    ):
        yield machine, made


OPENINGS = ("well", "no more", "slow", "lost", "interrupted")
WITHIN = ("well", "late", "refused", "lost", "interrupted")

STEPS = st.one_of(
    st.tuples(
        st.sampled_from(("run", "hold")),
        st.sampled_from(("well", "refused")),
        st.sampled_from(OPENINGS),
        st.sampled_from(WITHIN),
    ),
    st.tuples(st.just("hold"), st.just("well"), st.just("well"), st.just("well")),
    st.tuples(st.just("release")),
)


@given(st.lists(STEPS, max_size=25))
@settings(max_examples=100, deadline=None, derandomize=True)
@example([("run", "well", "slow", "well")])
@example([("hold", "well", "well", "well")] * (MOST_CONNECTIONS * MOST_SESSIONS + 1))
@example([("hold", "well", "well", "well")] * MOST_SESSIONS + [("run", "refused", "well", "well")])
def test_as_many_are_counted_as_there_are(steps: list[tuple[str, ...]]) -> None:
    with connected() as (machine, made):
        held: list[AbstractContextManager[Any]] = []
        for what, *answers in steps:
            if what == "release":
                if held:
                    held.pop(0).__exit__(None, None, None)
            else:
                machine.login, machine.opening, machine.within = answers
                _do(made, what, held)
            machine.login = machine.opening = machine.within = "well"
            assert sum(link.sessions for link in machine.links) == len(held)
            assert all(0 <= link.sessions <= MOST_SESSIONS for link in machine.links)
            assert len(machine.links) <= MOST_CONNECTIONS
        for each in held:
            each.__exit__(None, None, None)
        assert not any(link.sessions for link in machine.links)
        made.run(["true"], limit_s=0.0)  # and there is room for another one


def _do(made: SshConnection, what: str, held: list[AbstractContextManager[Any]]) -> None:
    try:
        if what == "run":
            made.run(["true"], limit_s=0.0)
        else:
            one = made.started(["cat"], limit_s=0.0)
            one.__enter__()
            held.append(one)
    except (BackendError, KeyboardInterrupt):
        pass


@pytest.mark.parametrize("opening", OPENINGS[1:])
def test_a_machine_that_was_in_trouble_takes_as_many_as_before(opening: str) -> None:
    with connected() as (machine, made):
        machine.opening = opening
        for _ in range(3 * MOST_CONNECTIONS * MOST_SESSIONS):
            _do(made, "run", [])
        machine.opening = "well"
        held: list[AbstractContextManager[Any]] = []
        for _ in range(2 * MOST_CONNECTIONS * MOST_SESSIONS):
            _do(made, "hold", held)
        # A machine that has refused one is believed to take no more than it had then.
        assert len(held) == MOST_CONNECTIONS * (1 if opening == "no more" else MOST_SESSIONS)
        for each in held:
            each.__exit__(None, None, None)
