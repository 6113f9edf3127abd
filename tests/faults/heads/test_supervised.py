"""A head below a supervisor that does what the unit says: killed, started again, and on it goes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

from dispatcher.cli.systemd_unit import UnitValues, unit_text
from dispatcher.control.client import HeadClient
from tests.faults.heads.conftest import PATIENCE_S, ROOT, wait_until


class Supervisor:
    """As much of systemd as the unit asks for: quoting, environment, the rules of restarting."""

    def __init__(self, text: str, base: Path) -> None:
        settings = [line.split("=", 1) for line in text.splitlines() if "=" in line]
        self.settings = {key: value for key, value in settings if not key.startswith("#")}
        self.command = [_unquoted(word) for word in shlex.split(self.settings["ExecStart"])]
        told = [shlex.split(value)[0] for key, value in settings if key == "Environment"]
        self.environment = dict(_unquoted(one).split("=", 1) for one in told)
        self.environment["HOME"] = str(base)
        self.stderr = base / "supervised"

    def start(self) -> subprocess.Popen[bytes]:
        with self.stderr.open("ab") as stderr:
            return subprocess.Popen(
                self.command,
                cwd=_unquoted(self.settings["WorkingDirectory"]),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def restarts(self, code: int) -> bool:
        """``Restart=on-failure``, with its exceptions."""
        fine = [0, *map(int, self.settings["SuccessExitStatus"].split())]
        never = [int(each) for each in self.settings["RestartPreventExitStatus"].split()]
        return code < 0 or code not in fine + never


def _unquoted(word: str) -> str:
    return word.replace("$$", "$").replace("%%", "%")


def test_the_units_own_command_goes_on_after_a_kill_until_it_is_stopped_on_purpose(steady):
    """Mutations: the command does not find the experiment; a stop is a failure, after which
    systemd starts another head (``NO_RESTART``)."""
    one = steady(trials=4)
    values = UnitValues(
        one.folder, "steady", sys.executable, 1.0, 60.0, {**os.environ, "PYTHONPATH": str(ROOT)}
    )
    supervisor = Supervisor(unit_text(values), one.base)
    # The first one was started elsewhere: at a terminal with folders of its own.
    first = one.lead_and_run()
    agent = one.agent
    one.kill(first)
    supervisor.environment["XDG_RUNTIME_DIR"] = str(one.base)
    for _ in range(2):
        head = supervisor.start()
        one.heads.append(head)
        wait_until(lambda head=head: one.leads(head), "the head answers")
        wait_until(lambda: len(one.counting()) == 2, "trials count")
        assert one.agent.pid == agent.pid
        head.kill()
        assert supervisor.restarts(head.wait(PATIENCE_S))
    head = supervisor.start()
    one.heads.append(head)
    wait_until(lambda: one.leads(head), "the head answers")
    with HeadClient(one.folder) as client:
        client.ask("stop", kind="drain", reason="enough")
    one.release()
    code = head.wait(PATIENCE_S)
    assert code == 6, supervisor.stderr.read_text()
    assert not supervisor.restarts(code)
    assert {number for _, number in one.ends()} == {1}
