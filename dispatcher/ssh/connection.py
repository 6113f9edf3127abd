"""A machine one is logged in to: commands and ports, from many threads at once."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from dispatcher.errors import BackendError
from dispatcher.ssh import running
from dispatcher.ssh.command import LAUNCHER, Launch, launch, launch_kill
from dispatcher.ssh.errors import (
    CommandTimedOut,
    ConnectionLost,
    SessionRefused,
)
from dispatcher.ssh.forwarding import ReverseForwards
from dispatcher.ssh.link import Link, NoMoreSessions, SlowPeer
from dispatcher.ssh.login import Dial
from dispatcher.ssh.running import Ran, Readable
from dispatcher.ssh.started import Started, TerminalSize
from dispatcher.ssh.target import SshTarget
from dispatcher.ssh.user_config import way_to

#: Bytes that are kept of each output of a command.
MOST_OUTPUT_BYTES = 1 << 20


def connect(target: SshTarget, *, dial: Dial | None = None) -> SshConnection:
    """Log in to a machine. Blocks for a few times ``connect_timeout_s`` at most.

    Args:
        target: The machine, and how to log in.
        dial: Makes the TCP connection; None for :func:`socket.create_connection`.

    Raises:
        HostUnreachable: nobody answers in time, or no SSH server.
        HostKeyUnknown: the machine is in no file of known hosts; nothing was sent to it.
        HostKeyChanged: it shows another key than the known one.
        LoginRefused: the user, the keys and the password do not fit.
        UserError: a file of ``~/.ssh`` cannot be understood.
    """
    return SshConnection(target, dial)


class SshConnection:
    """A login, made by :func:`connect`. All methods may be called from any thread, and block.

    A server that allows few sessions in a connection (``MaxSessions``) gets more connections,
    ``most_connections`` at most; beyond that one waits. Forwarded ports are on the first.
    When that one ends, the whole is over: :meth:`is_alive` turns false, everybody who waits
    gets :class:`ConnectionLost`, and the owner makes a new connection, with its ports.
    """

    def __init__(self, target: SshTarget, dial: Dial | None = None) -> None:
        self.target = target
        self._dial = dial
        self._way = way_to(target)
        self._pool = threading.Condition()
        self._opening = 0
        self._links = [Link(self._way, dial)]
        self._reverse = ReverseForwards(self._first)
        self._closed = False

    def __repr__(self) -> str:
        state = "alive" if self.is_alive() else "over"
        return f"SshConnection({self._first.label}, {state})"

    @property
    def label(self) -> str:
        """The machine, for people."""
        return self._first.label

    @property
    def user(self) -> str:
        """Our user name there."""
        return self._first.user

    @property
    def _first(self) -> Link:
        return self._links[0]

    def is_alive(self) -> bool:
        """Whether it stands, as far as is known: silence takes ``silent_s`` to be noticed."""
        return not self._closed and self._first.is_alive()

    def run(
        self,
        argv: Sequence[str],
        *,
        stdin: bytes | Readable = b"",
        limit_s: float,
        environment: Mapping[str, str] | None = None,
        most_bytes: int = MOST_OUTPUT_BYTES,
    ) -> Ran:
        """Run a command and wait for its end. Arguments arrive as they are, whatever they hold.

        Args:
            argv: The program, looked up in PATH there, and its arguments.
            stdin: Bytes, or a file that is read to its end.
            limit_s: Seconds for all, waiting for a free session included.
            environment: Added to what the login gives; in no list of processes.
            most_bytes: Bytes that are kept of each of stdout and stderr.

        Raises:
            CommandTimedOut: it took longer; its process group was sent SIGKILL.
            ConnectionLost: nobody knows whether it goes on there.
            SessionRefused: the machine runs nothing for us.
        """
        begin = launch(argv, environment or {})
        return self._run(begin, argv[0], limit_s, most_bytes, stdin)

    def _run(
        self,
        begin: Launch,
        name: str,
        limit_s: float,
        most_bytes: int,
        stdin: bytes | Readable = b"",
    ) -> Ran:
        import paramiko

        deadline = time.monotonic() + limit_s
        with self._session(deadline, name) as (link, channel):
            try:
                channel.exec_command(LAUNCHER)
            except (paramiko.SSHException, EOFError, OSError) as error:
                if link.ends_within(2):
                    raise link.lost(f"{name!r} was started") from error
                raise SessionRefused("runs no commands", where=link.label) from error
            try:
                return running.talk(
                    link,
                    channel,
                    launch=begin,
                    stdin=stdin,
                    limit_s=max(0.0, deadline - time.monotonic()),
                    most_bytes=most_bytes,
                    name=name,
                )
            except running.OutOfTime as error:
                # While its own session is still counted: it takes one until it has ended.
                ended = error.pid > 0 and self._kill(error.pid)
                fate = " and was ended" if ended else "; it may still go on there"
                text = f"{name!r} took longer than {limit_s:g} s{fate}"
                raise CommandTimedOut(text, where=link.label) from error

    @contextlib.contextmanager
    def started(
        self,
        argv: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        terminal: TerminalSize | None = None,
        limit_s: float = 60.0,
    ) -> Iterator[Started]:
        """A command that one talks to; leaving the context ends it. Raises as :meth:`run` does.

        Args:
            argv: The program, looked up in PATH there, and its arguments.
            environment: Added to what the login gives; in no list of processes.
            terminal: Gives it one of this size, where its stdout and stderr are one; None for none.
            limit_s: Seconds until it must have begun.
        """
        deadline = time.monotonic() + limit_s
        with self._session(deadline, argv[0]) as (link, channel):
            command = Started(link, channel)
            try:
                command.begin(launch(argv, environment or {}), terminal, limit_s)
                yield command
            finally:
                if command.pid and terminal is None and not channel.exit_status_ready():
                    self._kill(command.pid)

    def _kill(self, pid: int) -> bool:
        """Kill by a command: SSH can send signals, but OpenSSH passes none on to what root runs."""
        try:
            return self._run(launch_kill(pid), "kill", 30, 1024).ok
        except BackendError:
            return False

    def reverse_forward(self, local_host: str, local_port: int) -> int:
        """Let the machine listen on its 127.0.0.1 and carry connections to an address here.

        Returns the port there, a free one, which ends with the connection.

        Args:
            local_host: Name or address, as this machine sees it.
            local_port: Its port.

        Raises:
            ForwardRefused, ConnectionLost: see there.
        """
        return self._reverse.add((local_host, local_port))

    def reverse_forward_to_file(self, path: Path) -> int:
        """Forward as :meth:`reverse_forward` does, to a socket file here: other users of this
        machine cannot connect to it. Returns the port there."""
        return self._reverse.add(str(path))

    def close(self) -> None:
        """End it with all that runs over it, and its threads. May be called twice."""
        with self._pool:
            self._closed = True
            links = list(self._links)
            self._pool.notify_all()
        for link in reversed(links):
            link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @contextlib.contextmanager
    def _session(self, deadline: float, name: str) -> Iterator[tuple[Link, Any]]:
        link, channel = self._open_session(deadline, name)
        try:
            yield link, channel
        finally:
            channel.close()
            self._give_back(link)

    def _open_session(self, deadline: float, name: str) -> tuple[Link, Any]:
        while True:
            link = self._link_with_room(deadline, name)
            left = max(0.1, deadline - time.monotonic())
            try:
                return link, link.open_session(min(self.target.connect_timeout_s, left))
            except NoMoreSessions as error:
                if not self._has_enough(link):
                    text = f"opens no session ({error})"
                    hint = "MaxSessions in its sshd_config must not be 0"
                    raise SessionRefused(text, hint=hint, where=link.label) from error
            except BaseException as error:
                self._give_back(link)
                if isinstance(error, SlowPeer) and time.monotonic() >= deadline:
                    raise CommandTimedOut(error.message, where=error.where) from error
                raise

    def _give_back(self, link: Link) -> None:
        with self._pool:
            link.sessions -= 1
            self._pool.notify_all()

    def _has_enough(self, link: Link) -> int:
        """Note that a server refused a session: returns how many it allows in this connection."""
        with self._pool:
            link.sessions -= 1
            link.most_sessions = max(1, min(link.most_sessions, link.sessions))
            self._pool.notify_all()
            return link.sessions

    def _link_with_room(self, deadline: float, name: str) -> Link:
        """A link that takes one more session, which is counted already."""
        with self._pool:
            while True:
                if not self.is_alive():
                    raise self._first.lost(f"{name!r} was to be started")
                self._links[1:] = [link for link in self._links[1:] if link.is_alive()]
                for link in self._links:
                    if link.sessions < link.most_sessions:
                        link.sessions += 1
                        return link
                if len(self._links) + self._opening < self.target.most_connections:
                    self._opening += 1
                    break
                left = deadline - time.monotonic()
                if left <= 0:
                    text = f"no session became free for {name!r} in time"
                    raise CommandTimedOut(text, where=self._first.label)
                self._pool.wait(min(left, 1.0))
        return self._another()

    def _another(self) -> Link:
        link: Link | None = None
        try:
            link = Link(self._way, self._dial)
        finally:
            with self._pool:
                self._opening -= 1
                if link is not None and not self._closed:
                    link.sessions = 1
                    link.most_sessions = self._first.most_sessions
                    self._links.append(link)
                self._pool.notify_all()
        if self._closed:
            link.close()
            raise ConnectionLost("the connection was closed", where=link.label)
        return link
