"""The ways between a head and agents elsewhere: one connection for all, or none of SSH at all."""

from __future__ import annotations

import re
import signal
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.head.endpoints import TUNNEL_NAME
from dispatcher.ssh import connect
from tests.integration.machines.conftest import POINT, Lab, joined
from tests.integration.machines.test_ailing_hosts import end_sessions, listener_on
from tests.support.ssh_hosts import why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

MANY = 64
_ESTABLISHED, _LISTENING, _CONNECTED = "01", "0A", "03"


def connections(pid: int) -> list[tuple[int, str, int]]:
    """Own port, the other's address and port, of all that stand where a process is."""
    found = []
    for line in Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]:
        _, own, other, state = line.split()[:4]
        if state == _ESTABLISHED:
            address = ".".join(str(byte) for byte in bytes.fromhex(other[:8])[::-1])
            found.append((int(own[9:], 16), address, int(other[9:], 16)))
    return found


def sockets_of(pid: int) -> set[str]:
    """Inodes of all that a process holds."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found.add(str(each.readlink()).removeprefix("socket:[").removesuffix("]"))
        except OSError:
            continue  # closed meanwhile
    return found


def listening(pid: int) -> list[str]:
    """Ports at which a process listens."""
    held, found = sockets_of(pid), []
    for kind in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{kind}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == _LISTENING and words[9] in held:
                found.append(words[1])
    return found


def peers_of_tunnels(pid: int) -> list[str]:
    """Connections that a process has taken at the socket file for tunnels."""
    held, found = sockets_of(pid), []
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        words = line.split()
        connected = words[5] == _CONNECTED
        if connected and words[6] in held and words[-1].endswith(f"/{TUNNEL_NAME}"):
            found.append(words[6])
    return found


def held(lab: Lab, service: Any, trials: int, roots: int, **keys: Any) -> Path:
    """An experiment whose trials go on until :func:`release`."""
    environment = {"GO": f"{POINT}/{lab.base.name}/go"}
    return lab.create(
        service,
        args={"wait_s": 600.0, "roots": roots},
        maxTrialNumber=trials,
        trialEnvironment=environment,
        **keys,
    )


def release(lab: Lab) -> None:
    (lab.share / lab.base.name / "go").touch()


def test_sixty_four_trials_at_once_by_one_connection(lab: Lab) -> None:
    """Mutations: a tunnel for each trial; a connection of each trial to the head."""
    machine = lab.machine("h1", slots=MANY)
    service = {
        "platform": "ssh",
        "machineList": [machine],
        "reuseMode": "forked",
        "preload": ["numpy"],
    }
    folder = held(lab, service, MANY, MANY, trialConcurrency=MANY)
    head = lab.lead(folder)
    started = lambda: lab.events(folder, e.AttemptStarted)  # noqa: E731
    lab.until(lambda: len(started()) == MANY, "all run at once", folder)
    assert lab.events(folder, e.AttemptEnded) == []
    stand = connections(head.pid)
    assert len([each for each in stand if each[1:] == (lab.hosts["h1"].address, 22)]) == 1
    assert len(peers_of_tunnels(head.pid)) == 1, "one peer of the ROUTER"
    assert listening(head.pid) == [], "nobody else on this machine can connect to the head"
    release(lab)
    lab.finish(folder, head)
    assert set(lab.ended_on(folder).values()) == {"h1"}
    assert lab.hosts["h1"].log().count("Accepted publickey")


def test_an_agent_that_reaches_the_head_by_itself_needs_no_ssh_while_it_runs(lab: Lab) -> None:
    """Mutations: it is told the tunnel; the head listens on its loopback; a cut is an end."""
    ours = lab.hosts.network.gateway
    folder = held(
        lab,
        lab.service("h1", headAddress=ours),
        trials=6,
        roots=2,
        trialConcurrency=2,
        leases={"alive": 1, "suspect": 3, "lost": 180},
        channel={"transport": "tcp", "host": ours, "beyondThisMachine": True},
    )
    head = lab.lead(folder)
    started = lambda: lab.events(folder, e.AttemptStarted)  # noqa: E731
    lab.until(lambda: len(started()) == 2, "two run", folder)
    (told,) = lab.hosts["h1"].disk.glob(f"root/.bequeath/experiments/{folder.name}/*/*.config.json")
    port = int((folder / "keys" / "port").read_text())
    assert f'"tcp://{ours}:{port}"' in told.read_text()
    assert told.stat().st_mode & 0o077 == 0

    lab.hosts.cut("h1")
    try:
        suspects = lambda: lab.events(folder, e.WorkerSuspect)  # noqa: E731
        lab.until(suspects, "its silence is seen", folder)
    finally:
        lab.hosts.heal("h1")
    lab.until(lambda: lab.events(folder, e.WorkerHeard), "it is heard again", folder)

    listening = listener_on(lab, "h1")
    listening.send_signal(signal.SIGSTOP)  # nobody logs in any more
    try:
        end_sessions(lab, "h1")
        release(lab)
        ended = lambda: lab.events(folder, e.AttemptEnded)  # noqa: E731
        lab.until(lambda: len(ended()) == 6, "all end, and others began, without it", folder)
    finally:
        listening.send_signal(signal.SIGCONT)
    lab.finish(folder, head)
    assert joined(lab, folder) == ["h1"]
    assert lab.events(folder, e.WorkerLost) == []
    assert {end.attempt for end in ended()} == {1}
    with connect(lab.hosts["h1"].target(), dial=lab.hosts.dial) as connection:
        assert connection.is_alive()
    assert not re.search("agent.*lost", (folder / "logs" / "head.log").read_text())
