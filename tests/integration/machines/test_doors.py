"""Machines that are reached in other ways than by a key, at once and with many sessions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.integration.machines.conftest import POINT, Lab, joined
from tests.support.ssh_hosts import PASSWORD, SshHosts, our_python, ssh_hosts, why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture(scope="module")
def three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHosts, Path]]:
    """h1 with one session in each connection, h2 with a password, h3 behind h1."""
    folder = tmp_path_factory.mktemp("doors")
    share = folder / "share"
    share.mkdir()
    with ssh_hosts(folder / "hosts", 3, binds=our_python(), shares={POINT: share}) as hosts:
        hosts.restart_sshd("h1", "MaxSessions 1\n")
        shadow = hosts["h2"].disk / "etc/shadow"
        of_dev = shadow.read_text().split("dev:", 1)[1].split(":", 1)[0]
        shadow.write_text(shadow.read_text().replace("root:*:", f"root:{of_dev}:"))
        hosts.restart_sshd("h2", "PasswordAuthentication yes\n")
        hosts.hide("h3")
        yield hosts, share


def test_an_experiment_through_all_of_them(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutations: a session more than there may be is no reason for another connection; the
    password is not looked up; the tunnel of a machine behind another ends at that one."""
    monkeypatch.setenv("LAB_PASSWORD", PASSWORD)
    by_password = lab.machine("h2", password="env:LAB_PASSWORD", environment={})
    del by_password["keyFile"]
    gate = {key: lab.machine("h1")[key] for key in ("host", "user", "keyFile", "knownHosts")}
    machines = [lab.machine("h1"), by_password, lab.machine("h3", jump=gate)]
    folder = lab.create(
        {"platform": "ssh", "machineList": machines},
        args={"roots": 6, "wait_s": 600.0},
        maxTrialNumber=9,
        trialEnvironment={"GO": f"{POINT}/{lab.base.name}/go"},
        fetch={"logs": "onEnd"},
    )
    head = lab.lead(folder)
    lab.until(lambda: len(lab.events(folder, e.AttemptStarted)) >= 6, "six run", folder)
    (lab.share / lab.base.name / "go").touch()
    assert head.wait(240) == 0, lab.said(folder)
    lab.hosts.network.show(3)  # for us, who look whether it is clean
    lab.finish(folder, head)
    assert sorted(joined(lab, folder)) == ["h1", "h2", "h3"]
    assert set(lab.ended_on(folder).values()) == {"h1", "h2", "h3"}
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert len(list(folder.glob("trials/*/1/stdout"))) == 9, "their logs came as well"
    assert "Accepted password for root" in lab.hosts["h2"].log()
    for file in [*folder.rglob("*.json"), *folder.glob("logs/*"), folder / "journal.sqlite"]:
        assert PASSWORD.encode() not in file.read_bytes(), file
