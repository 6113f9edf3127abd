"""A shell on another machine at a terminal of ours: keys, sizes, ends."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.support import sshd
from tests.support.typing_at import Terminal

ROOT = Path(__file__).parents[3]

_SHELL = """
import sys
from dispatcher.ssh import SshTarget, connect
from dispatcher.ssh.terminal import hand_over
target = SshTarget(host="127.0.0.1", port={port}, user={user!r}, key_file={key!r},
                   known_hosts={known!r}, config_file="/dev/null", connect_timeout_s=30)
with connect(target) as connection:
    print("in")
    code = hand_over(connection, {argv!r}, terminal={terminal},
                     environment={{"PS1": "here> ", "SECRET": "x" * 9000 + "\\n'end"}})
print("code", code)
sys.exit(code)
"""


def session(server: sshd.Sshd, *argv: str, terminal: bool = True) -> list[str]:
    """The words of a program that gives its terminal to a command there."""
    target = server.target()
    text = _SHELL.format(
        port=target.port,
        user=target.user,
        key=str(target.key_file),
        known=str(target.known_hosts),
        argv=list(argv),
        terminal=terminal,
    )
    return [sys.executable, "-c", text]


def test_keys_typed_early_count_and_secrets_are_not_shown(server: sshd.Sshd) -> None:
    """Mutations: a terminal that is made raw forgets what was typed; the line that starts the
    command is echoed, or cut at 4096 bytes."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    at = Terminal(session(server, "sh"), environment)
    try:
        at.type("echo early $((1 + 1)) ${#SECRET}\n")
        seen = at.until("early 2 9005")
        at.resize(111, 33)
        # Keys and sizes go by different threads: the one may be there before the other.
        at.type("until [ \"$(stty size)\" = '33 111' ]; do sleep 0.1; done; echo it$((6 * 9))\r")
        seen += at.until("it54")
        at.type("sh -c 'echo ready$((1 + 1)); exec cat'\r")
        seen += at.until("ready2")
        at.type("\x03")
        at.until("here> ")  # what is typed before may go with the command that was ended
        at.type("exit 3\r")
        assert at.end() == 3
        assert "xxxx" not in seen + at.seen
        assert "bequeath" not in seen.replace("bequeath-ready", ""), seen
    finally:
        at.close()


def test_a_connection_that_ends_gives_the_terminal_back(own: sshd.Sshd) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    at = Terminal(session(own, "sh", "-c", "echo up$((1 + 1)); exec sleep 1000"), environment)
    try:
        at.until("up2")
        own.kill()
        assert at.end() == 1
        assert "ConnectionLost" in at.seen
    finally:
        at.close()
