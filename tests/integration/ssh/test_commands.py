"""Commands on a real sshd: words, outputs, limits, ends."""

from __future__ import annotations

import io
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from dispatcher.ssh import CommandTimedOut, SshConnection
from tests.support.processes import wait_until


def test_words_arrive_as_they_are(connection: SshConnection) -> None:
    words = ["a b", "it's", "new\nline\n\n", "$HOME", "!x", "\\n", "", "ü\udcff", "*", "-n", "`id`"]
    ran = connection.run(["printf", "%s\\0", *words], limit_s=60)
    assert ran.ok
    assert ran.out.split(b"\0")[:-1] == [os.fsencode(word) for word in words]
    assert ran.err == b""


def test_stdin_and_environment(connection: SshConnection) -> None:
    program = 'cat; printf "%s|" "$ONE" "$TWO" >&2; exit 3'
    ran = connection.run(
        ["sh", "-c", program],
        stdin=b"line one\nline two\n",
        environment={"ONE": "it's\n$x", "TWO": "second"},
        limit_s=60,
    )
    assert (ran.code, ran.out) == (3, b"line one\nline two\n")
    assert ran.err == b"it's\n$x|second|"


def test_a_value_of_the_environment_is_in_no_list_of_processes(connection: SshConnection) -> None:
    secret = "sesame-8317"
    ran = connection.run(
        ["sh", "-c", "cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' '; true"],
        environment={"TOKEN": secret},
        limit_s=60,
    )
    assert b"/proc/*/cmdline" in ran.out
    assert secret.encode() not in ran.out


def test_a_program_that_is_not_there(connection: SshConnection) -> None:
    ran = connection.run(["no-such-program"], limit_s=60)
    assert ran.code == 127
    assert "no-such-program" in ran.complaint()


def test_an_end_by_a_signal_is_told_apart(connection: SshConnection) -> None:
    assert connection.run(["sh", "-c", "kill -9 $$"], limit_s=60).code == -1


def test_a_long_output_is_cut_and_the_command_goes_on(connection: SshConnection) -> None:
    program = "head -c 3000000 /dev/zero; head -c 2000000 /dev/zero >&2; exit 5"
    ran = connection.run(["sh", "-c", program], limit_s=120, most_bytes=1000)
    assert (ran.code, ran.cut, len(ran.out), len(ran.err)) == (5, True, 1000, 1000)


def test_much_stdin_and_a_command_that_reads_none(connection: SshConnection) -> None:
    data = os.urandom(3 << 20)
    ran = connection.run(["wc", "-c"], stdin=io.BytesIO(data), limit_s=120)
    assert int(ran.out) == len(data)
    assert connection.run(["true"], stdin=data, limit_s=120).ok


def test_a_command_past_its_limit_is_ended_with_its_children(
    connection: SshConnection, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    program = f"sleep 600 & echo $$ $! > {pids}; wait"
    for limit_s in (3, 20, 100):  # however long a busy machine takes to begin
        with pytest.raises(CommandTimedOut) as caught:
            connection.run(["sh", "-c", program], limit_s=limit_s)
        if pids.exists():
            break
    assert "was ended" in caught.value.message
    for pid in pids.read_text().split():
        wait_until(lambda pid=pid: not _runs(int(pid)), f"process {pid} ends")
    assert connection.run(["true"], limit_s=60).ok


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_child_left_behind_with_the_outputs_does_not_hold_us(
    connection: SshConnection, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    ran = connection.run(["sh", "-c", f"sleep 600 & echo $! > {pid}; echo done"], limit_s=120)
    assert (ran.code, ran.out) == (0, b"done\n")
    os.kill(int(pid.read_text()), 9)


def test_many_at_once_over_one_connection(connection: SshConnection) -> None:
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda n: connection.run(["echo", str(n)], limit_s=120).out, range(40))
        )
    assert answers == [f"{n}\n".encode() for n in range(40)]


def test_nothing_is_left_of_a_connection(server: object) -> None:
    from dispatcher.ssh import connect

    before = set(threading.enumerate())
    with connect(server.target()) as made:  # type: ignore[attr-defined]
        made.run(["true"], limit_s=60)
        made.reverse_forward("127.0.0.1", 1)
    wait_until(lambda: not set(threading.enumerate()) - before, "its threads end")
    assert not made.is_alive()
