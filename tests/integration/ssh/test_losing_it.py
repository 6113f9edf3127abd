"""Servers that die, refuse sessions, or are not there yet; ports that are carried."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dispatcher.ssh import (
    CommandTimedOut,
    ConnectionLost,
    ForwardRefused,
    SessionRefused,
    SshConnection,
    connect,
)
from tests.support import sshd
from tests.support.processes import wait_until


def test_a_server_killed_in_mid_command(own: sshd.Sshd, tmp_path: Path) -> None:
    with connect(own.target()) as made, ThreadPoolExecutor(1) as pool:
        begun = tmp_path / "begun"
        running = pool.submit(made.run, ["sh", "-c", f"touch {begun}; sleep 600"], limit_s=300)
        wait_until(begun.exists, "the command begins")
        own.kill()
        with pytest.raises(ConnectionLost, match="'sh' ran"):
            running.result(60)
        wait_until(lambda: not made.is_alive(), "its end is noticed")
        with pytest.raises(ConnectionLost):
            made.run(["true"], limit_s=60)
        with pytest.raises(ConnectionLost):
            made.reverse_forward("127.0.0.1", 1)


def test_a_server_killed_in_mid_transfer(own: sshd.Sshd) -> None:
    class Endless:
        sent = 0

        def read(self, size: int = -1, /) -> bytes:
            self.sent += size
            if self.sent > 8 << 20:
                own.kill()
            return bytes(size)

    with connect(own.target()) as made, pytest.raises(ConnectionLost):
        made.run(["sh", "-c", "cat > /dev/null"], stdin=Endless(), limit_s=300)


def test_closed_here_in_mid_command(server: sshd.Sshd, tmp_path: Path) -> None:
    made = connect(server.target())
    begun = tmp_path / "begun"
    with ThreadPoolExecutor(1) as pool:
        program = f"touch {begun}; while [ -e {begun} ]; do sleep 0.2; done"
        running = pool.submit(made.run, ["sh", "-c", program], limit_s=300)
        wait_until(begun.exists, "the command begins")
        made.close()
        with pytest.raises(ConnectionLost, match="closed here"):
            running.result(60)
    begun.unlink()  # it goes on there, until then


def test_a_silent_peer_is_noticed(server: sshd.Sshd) -> None:
    """A relay stops carrying, without an end: what a cut link looks like."""
    with _relay(server.port) as (port, cut):
        target = server.target(keepalive_s=0.3, silent_s=6.0)

        def dial(_: tuple[str, int], timeout_s: float) -> socket.socket:
            return socket.create_connection(("127.0.0.1", port), timeout_s)

        with connect(target, dial=dial) as made:
            # Longer than silent_s with nothing to say: it is asked, and answers.
            with pytest.raises(AssertionError, match="never: it is over"):
                wait_until(lambda: not made.is_alive(), "it is over", timeout_s=7)
            cut.set()
            with pytest.raises(ConnectionLost, match="nothing heard"):
                made.run(["true"], limit_s=120)
            assert not made.is_alive()


@contextlib.contextmanager
def _relay(port: int) -> Iterator[tuple[int, threading.Event]]:
    cut = threading.Event()
    sockets: list[socket.socket] = []

    def carry(source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not cut.is_set():
                    to.sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            near, _ = listening.accept()
            far = socket.create_connection(("127.0.0.1", port))
            sockets.extend([near, far])
            for pair in ((near, far), (far, near)):
                threads.append(threading.Thread(target=carry, args=pair))
                threads[-1].start()

        threads = [threading.Thread(target=serve)]
        threads[0].start()
        try:
            yield listening.getsockname()[1], cut
        finally:
            for one in sockets:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()
            for thread in threads:
                thread.join(60)


def test_one_session_in_each_connection(tmp_path: Path) -> None:
    with (
        sshd.running(tmp_path / "narrow", "MaxSessions 1\n") as server,
        connect(server.target(most_connections=3)) as made,
    ):
        for n in range(3):
            assert made.run(["echo", str(n)], limit_s=120).ok
        gate = tmp_path / "gate"
        with ThreadPoolExecutor(6) as pool:
            wait = f"touch {tmp_path}/began-$1; while [ ! -e {gate} ]; do sleep 0.05; done"
            runs = [
                pool.submit(made.run, ["sh", "-c", wait, "sh", str(n)], limit_s=200)
                for n in range(6)
            ]
            # Three at once over three connections, and no fourth.
            wait_until(lambda: len(list(tmp_path.glob("began-*"))) == 3, "three run")
            gate.touch()
            assert all(run.result(200).ok for run in runs)
        assert server.log().count("Accepted publickey") == 3


def test_a_command_is_ended_where_it_takes_the_only_session(tmp_path: Path) -> None:
    with (
        sshd.running(tmp_path / "narrow", "MaxSessions 1\n") as server,
        connect(server.target(most_connections=2)) as made,
    ):
        begun = tmp_path / "begun"
        for limit_s in (3, 20, 100):  # however long a busy machine takes to begin
            with pytest.raises(CommandTimedOut) as caught:
                made.run(["sh", "-c", f"touch {begun}; exec sleep 600"], limit_s=limit_s)
            if begun.exists():
                break
        assert "was ended" in caught.value.message
        assert made.run(["true"], limit_s=60).ok


def test_a_server_that_opens_no_session(tmp_path: Path) -> None:
    with (
        sshd.running(tmp_path / "none", "MaxSessions 0\n") as server,
        connect(server.target()) as made,
        pytest.raises(SessionRefused, match="opens no session"),
    ):
        made.run(["true"], limit_s=60)


def _echo(listening: socket.socket) -> None:
    while True:
        try:
            near, _ = listening.accept()
        except OSError:
            return
        with near:
            while data := near.recv(65536):
                near.sendall(data)


@pytest.fixture
def echo() -> Iterator[int]:
    """A port of ours that says what it hears."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_echo, args=(listening,))
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def _says(port: int, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), 60) as there:
        there.sendall(data)
        there.shutdown(socket.SHUT_WR)
        found = b""
        while more := there.recv(65536):
            found += more
        return found


def test_a_port_is_carried_here(connection: SshConnection, echo: int) -> None:
    back = connection.reverse_forward("127.0.0.1", echo)
    data = bytes(range(256)) * 4096
    assert _says(back, data) == data


def test_several_ports_lead_to_their_own_ends(connection: SshConnection, echo: int) -> None:
    nobody = connection.reverse_forward("127.0.0.1", sshd.free_port())
    somebody = connection.reverse_forward("127.0.0.1", echo)
    assert _says(somebody, b"hello") == b"hello"
    with contextlib.suppress(ConnectionError):
        assert _says(nobody, b"hello") == b""


def test_ports_end_with_the_connection(own: sshd.Sshd, echo: int) -> None:
    with connect(own.target()) as made:
        back = made.reverse_forward("127.0.0.1", echo)
        with socket.create_connection(("127.0.0.1", back), 60) as there:
            there.sendall(b"x")
            assert there.recv(1) == b"x"
            made.close()
            assert there.recv(1) == b""


def test_a_server_that_forwards_nothing(tmp_path: Path) -> None:
    with (
        sshd.running(tmp_path / "none", "AllowTcpForwarding no\n") as server,
        connect(server.target()) as made,
        pytest.raises(ForwardRefused, match="forwards no port"),
    ):
        made.reverse_forward("127.0.0.1", 1)
