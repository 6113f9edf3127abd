"""What may happen to machines and the ways to them while trials run there."""

from __future__ import annotations

import contextlib
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.errors import Superseded
from dispatcher.ssh import SshConnection, connect
from tests.integration.machines.conftest import POINT, Lab, joined
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: Short, so that silence is seen; long enough that a busy machine loses nobody.
LEASES = {"alive": 1, "suspect": 5, "lost": 180}

SECRET = "what nobody may find in a file"

#: Ends every session of sshd but the one that it runs in.
_END_SESSIONS = """
import os, signal
mine, pid = set(), os.getpid()
while pid > 1:
    mine.add(pid)
    pid = int(open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[1])
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in mine | {1}:
        try:
            if open(f"/proc/{name}/cmdline", "rb").read().startswith(b"sshd: "):
                os.kill(int(name), signal.SIGKILL)
        except OSError:
            pass
"""


@contextlib.contextmanager
def on(lab: Lab, name: str) -> Iterator[SshConnection]:
    with connect(lab.hosts[name].target(), dial=lab.hosts.dial) as connection:
        yield connection


def held(lab: Lab, **keys: Any) -> Path:
    """An experiment whose trials go on until :func:`release`."""
    return lab.create(
        lab.service("h1", "h2", "h3"),
        args={"wait_s": 600.0, "roots": 6},
        maxTrialNumber=8,
        leases=keys.pop("leases", LEASES),
        trialEnvironment={"GO": f"{POINT}/{lab.base.name}/go", "SECRET": "env:LAB_SECRET"},
        **keys,
    )


def release(lab: Lab) -> None:
    (lab.share / lab.base.name / "go").touch()


def six_run(lab: Lab, folder: Path) -> None:
    lab.until(lambda: len(lab.events(folder, e.AttemptStarted)) >= 6, "six run", folder)


def attempts(lab: Lab, folder: Path) -> set[int]:
    return {end.attempt for end in lab.events(folder, e.AttemptEnded)}


def test_a_killed_head_finds_all_its_trials_again(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab)
    head = lab.lead(folder)
    six_run(lab, folder)
    for host in lab.hosts:  # keys lie in private files, secrets in none
        (made,) = host.disk.glob("root/.bequeath/experiments/*/*")
        assert made.stat().st_mode & 0o077 == 0
        for file in made.glob("agent-*.json"):
            assert file.stat().st_mode & 0o077 == 0
            assert SECRET not in file.read_text()
    head.kill()
    assert head.wait(60) == -signal.SIGKILL
    before = len(joined(lab, folder))
    head = lab.lead(folder)
    lab.until(lambda: len(joined(lab, folder)) >= before + 3, "all join again", folder)
    release(lab)
    lab.finish(folder, head)
    assert lab.events(folder, e.WorkerLost) == []
    assert attempts(lab, folder) == {1}, "none was started again"
    printed = [p.read_text() for host in lab.hosts for p in host.disk.glob("root/**/stdout")]
    assert any(SECRET in text for text in printed), "the trials had it"


def test_a_head_that_hangs_is_taken_over_from(lab: Lab, monkeypatch: Any) -> None:
    """Its tunnels stand as long as it does; agents turn to its successor all the same."""
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab)
    first = lab.lead(folder)
    six_run(lab, folder)
    before = len(joined(lab, folder))
    first.send_signal(signal.SIGSTOP)
    try:
        second = lab.lead(folder, "--take-over")
        lab.until(lambda: len(joined(lab, folder)) >= before + 3, "all join again", folder)
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(120) == Superseded.exit_code, lab.said(folder)
    release(lab)
    lab.finish(folder, second)
    assert lab.events(folder, e.WorkerLost) == []
    assert attempts(lab, folder) == {1}


def test_a_tunnel_that_ends_is_made_anew(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab)
    head = lab.lead(folder)
    six_run(lab, folder)
    for name in ("h1", "h2"):
        with on(lab, name) as connection:
            assert connection.run(["python3", "-c", _END_SESSIONS], limit_s=60).ok
    release(lab)
    lab.finish(folder, head)
    assert lab.events(folder, e.WorkerLost) == []
    assert attempts(lab, folder) == {1}


def test_a_cut_link_costs_nothing_but_time(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab)
    head = lab.lead(folder)
    six_run(lab, folder)
    suspects = lambda: {x.worker for x in lab.events(folder, e.WorkerSuspect)}  # noqa: E731
    lab.hosts.cut("h2")
    try:
        lab.until(lambda: "h2" in suspects(), "h2 is suspect", folder)
        release(lab)
        ended = lambda: {end.trial for end in lab.events(folder, e.AttemptEnded)}  # noqa: E731
        lab.until(lambda: len(ended()) >= 4, "those elsewhere go on", folder)
    finally:
        lab.hosts.heal("h2")
    lab.finish(folder, head)
    assert lab.events(folder, e.WorkerLost) == []
    assert attempts(lab, folder) == {1}


def test_one_that_is_cut_off_for_too_long_is_replaced(lab: Lab, monkeypatch: Any) -> None:
    """Its trials begin elsewhere, or there again; what the first agent ran ends before."""
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab, leases={"alive": 1, "suspect": 4, "lost": 10}, headGrace=600)
    head = lab.lead(folder)
    six_run(lab, folder)
    lost = lambda: [each.worker for each in lab.events(folder, e.WorkerLost)]  # noqa: E731
    lab.hosts.cut("h2")
    try:
        lab.until(lambda: "h2" in lost(), "h2 is lost", folder)
        before = joined(lab, folder).count("h2")
    finally:
        lab.hosts.heal("h2")
    lab.until(lambda: joined(lab, folder).count("h2") > before, "another one joins", folder)
    release(lab)
    lab.finish(folder, head)
    assert len(lab.ended_on(folder)) == 8


def test_an_agent_that_is_killed_is_lost_with_its_trials_alone(lab: Lab, monkeypatch: Any) -> None:
    monkeypatch.setenv("LAB_SECRET", SECRET)
    folder = held(lab)
    head = lab.lead(folder)
    six_run(lab, folder)
    (record,) = lab.hosts["h3"].disk.glob("root/.bequeath/experiments/*/h3/agent-h3.json")
    with on(lab, "h3") as connection:
        pid = json.loads(record.read_text())["pid"]
        assert connection.run(["kill", "-KILL", str(pid)], limit_s=60).ok
    lab.until(lambda: joined(lab, folder).count("h3") >= 2, "another one joins", folder)
    release(lab)
    lab.finish(folder, head)
    (lost,) = lab.events(folder, e.WorkerLost)
    assert (lost.worker, lost.hopeless) == ("h3", False)
    again = {end.trial for end in lab.events(folder, e.AttemptEnded) if end.attempt == 2}
    assert len(again) == 2, "its two slots, and nobody else's"


def test_machines_that_cannot_be_had_are_named_and_the_rest_goes_on(lab: Lab) -> None:
    nobody = lab.base / "nobody"
    nobody.touch()
    machines = [
        lab.machine("h1"),
        lab.machine("h2", knownHosts=str(nobody)),
        lab.machine("h3", user="stranger"),
        lab.machine("h3", name="none", host="10.77.0.99"),
        lab.machine("h3", name="bare", python="/usr/bin/no-python"),
        lab.machine("h3", name="apart", weightsRoot="/scratch"),
    ]
    service = {"platform": "ssh", "machineList": machines}
    go = {"GO": f"{POINT}/{lab.base.name}/go"}
    settings = {"maxTrialNumber": 6, "trialConcurrency": 2, "trialEnvironment": go}
    folder = lab.create(service, args={"wait_s": 600.0}, **settings)
    head = lab.lead(folder)
    lost = lambda: {x.worker: x.reason for x in lab.events(folder, e.WorkerLost)}  # noqa: E731
    lab.until(lambda: len(lost()) == 5, "five are named", folder)
    release(lab)
    lab.finish(folder, head)
    assert set(lab.ended_on(folder).values()) == {"h1"}
    reasons = lost()
    assert "bequeath hosts add" in reasons["h2"]
    assert "stranger" in reasons["h3"]
    assert "no '/usr/bin/no-python'" in reasons["bare"]
    assert "/scratch" in reasons["apart"]


def test_with_no_machine_at_all_the_experiment_fails_and_says_why(lab: Lab) -> None:
    folder = lab.create(
        {"platform": "ssh", "machineList": [lab.machine("h1", user="stranger")]}, maxTrialNumber=2
    )
    head = lab.lead(folder)
    assert head.wait(240) != 0
    (lost,) = lab.events(folder, e.WorkerLost)
    assert lost.hopeless
    assert "stranger" in lost.reason
    assert "cannot be kept alive" in lab.said(folder)
