"""Whole experiments on a real cluster, judged by the checker that reads only the journal."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.core import events as e
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.wheelhouse import WheelCache, WheelsMissing, plan
from tests.engines.slurm.conftest import ROOT, Lab, joins, wrapper_of
from tests.support import sshd
from tests.support.lengths import first
from tests.support.ports import free_port
from tests.support.processes import wait_until
from tests.support.remote_python import python_here
from tests.support.slurm_cluster import why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

MACHINES = ROOT / "tests/integration/machines/code"
TRIALS, FOUNDERS = 60, 6


def digits_in(folder: Path) -> dict[str, Any]:
    """The part of a file about sixty classifiers of digits that evolve."""
    folder.mkdir()
    for path in (ROOT / "tests/system/nfs/digits").glob("*.py"):
        shutil.copy(path, folder)
    shutil.copy(MACHINES / "plain_digits.py", folder)
    sklearn = importlib.util.find_spec("sklearn")
    assert sklearn is not None
    assert sklearn.origin is not None
    with gzip.open(Path(sklearn.origin).parent / "datasets/data/digits.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.savez(folder / "digits.npz", pixels=table[:, :-1], digits=table[:, -1])
    return {
        "tuner": {
            "className": "digits_tuner:Evolution",
            "codeDirectory": str(folder),
            "classArgs": {"founders": FOUNDERS},
        },
        "trialFunction": "plain_digits:main",
        "trialCodeDirectory": str(folder),
        "trialEnvironment": {
            "DIGITS": str(folder / "digits.npz"),
            "HOSTS": "-",
            "GO": str(folder / "go"),
        },
        "trialConcurrency": FOUNDERS,
        "maxTrialNumber": TRIALS,
    }


def lineage(trials: int, **arguments: Any) -> dict[str, Any]:
    """The part of a file about trials that inherit a counter of generations."""
    return {
        "tuner": {
            "className": "lineage_tuner:Lineage",
            "codeDirectory": str(MACHINES),
            "classArgs": arguments,
        },
        "trialFunction": "lineage_trial:main",
        "trialCodeDirectory": str(MACHINES),
        "trialConcurrency": 2,
        "maxTrialNumber": trials,
    }


def test_sixty_digits_in_three_jobs(lab: Lab) -> None:
    """Children inherit on other nodes than their parents'. Mutation: a job for each trial."""
    service = {
        "cpus": 4,
        "slots": 2,
        "allocations": 3,
        "wallTime": "1h",
        "reuseMode": "inProcess",
        "preload": ["numpy"],
    }
    folder = lab.create(service, **digits_in(lab.base / "digits"))
    head = lab.lead(folder)
    wait_until(lambda: joins(lab, folder) == 3, "three jobs run")
    (lab.base / "digits" / "go").touch()
    lab.finish(folder, head)
    rows = lab.ask(folder, "SELECT id, parent, number FROM trials")
    results = {trial: value for trial, _, value in rows}
    assert len(results) == TRIALS
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert max(results.values()) >= max(results[trial] for trial in range(FOUNDERS))
    assert max(results.values()) > 0.85
    ran = dict(lab.ask(folder, "SELECT trial, worker FROM attempts"))
    assert len(set(ran.values())) == 3
    inherited = [(child, parent) for child, parent, _ in rows if parent is not None]
    assert len(inherited) == TRIALS - FOUNDERS
    assert any(ran[child] != ran[parent] for child, parent in inherited)
    assert len(lab.jobs(folder)) == 3, "as many as there are workers"


def test_a_head_that_is_killed_when_its_order_was_taken_finds_it(lab: Lab) -> None:
    """Slurm has the job, and nobody has noted it. Mutation: the next head orders another one."""
    folder = lab.create({"cpus": 1, "slots": 2, "wallTime": "1h"}, **lineage(6))
    trap = wrapper_of("sbatch", '"$REAL" "$@"; kill -KILL $PPID', lab.base / "bin")
    assert lab.lead(folder, before=trap).wait(200) == -signal.SIGKILL
    before = lab.jobs(folder)
    assert len(before) == 1, "it was taken"
    lab.finish(folder, lab.lead(folder))
    assert [job[:2] for job in lab.jobs(folder)] == [job[:2] for job in before]
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}


def test_a_head_that_is_killed_finds_its_trials_running(lab: Lab) -> None:
    """The job goes on without it, and is the same one afterwards."""
    folder = lab.create(
        {"cpus": 1, "slots": 2, "wallTime": "1h"}, headGrace="120s", **lineage(6, wait_s=3.0)
    )
    first = lab.lead(folder)
    wait_until(lambda: lab.events(folder, e.AttemptStarted), "a trial runs")
    first.kill()
    first.wait()
    lab.finish(folder, lab.lead(folder))
    assert len({event.trial for event in lab.events(folder, e.AttemptEnded)}) == 6
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    started = {(x.trial, x.attempt, x.pid) for x in lab.events(folder, e.AttemptStarted)}
    assert len(started) == 6, "nothing was started again"


@pytest.fixture
def jump(lab: Lab) -> Iterator[dict[str, Any]]:
    """A real SSH server, as the file names it."""
    with sshd.running(lab.base / "sshd") as there:
        yield {
            "host": "127.0.0.1",
            "port": there.port,
            "keyFile": str(there.folder / "client_key"),
            "knownHosts": str(there.folder / "known_hosts"),
        }


def bare_python(base: Path) -> Path | None:
    """A Python without anything of ours; None where no wheels for it can be had."""
    folder = base / "bare"
    ours = str(Path(sys.base_prefix) / "bin" / "python3")
    subprocess.run([ours, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    found = probe(python_here(python=str(folder / "bin" / "python")), Probe(str(base / "seen")))
    wheels = plan(found.host, found.missing, found.versions).wheels
    assert {"msgspec", "zmq", "blake3", "numpy"} <= set(wheels), "it is bare"
    try:
        WheelCache().get(wheels.values(), found.host)
    except WheelsMissing:
        return None
    return folder / "bin" / "python"


@pytest.mark.parametrize("channel", first(1, ["direct", "folder", "tunnel"]))
def test_nodes_that_see_a_shared_folder_alone(
    lab: Lab, channel: str, request: pytest.FixtureRequest
) -> None:
    """The experiment's own folder is on a disk of this machine; code and runtime are brought, once
    a job has looked over a node, and wheels where its Python has nothing. Mutations: something that
    a node needs lies there; agents listen at a port of the head all the same; they come by another
    way than the one that is asked for."""
    shared = lab.base / "shared"
    shared.mkdir()
    mine = lab.cluster.folder.parent / "hidden"
    service = {"sharedFolder": str(shared), "channel": channel, "bringCode": True, "probe": True}
    python = bare_python(lab.base) if channel == "folder" else None
    if python is not None:
        service["python"] = str(python)
    if channel == "tunnel":
        service["jump"] = request.getfixturevalue("jump")
    folder = lab.create(
        {"cpus": 1, "slots": 2, "allocations": 2, "wallTime": "1h", **service},
        experimentWorkingDirectory=str(mine),
        weightsRoot=str(shared / "weights"),
        **lineage(8),
    )
    lab.finish(folder, lab.lead(folder))
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert list(shared.glob("bequeath/*/slurm/logs/agent.log"))
    assert (folder / "keys" / "port").exists() == (channel != "folder")
    logs = [path.read_text() for path in shared.glob("bequeath/*/slurm*/logs/agent.log")]
    # One that comes when all is over has nothing to log in for.
    assert any("for a tunnel to" in text for text in logs) == (channel == "tunnel")
    assert not list(shared.glob("bequeath/*/*/*.config")), "keys went with their jobs"
    assert not list(shared.glob("bequeath/*/*/*.answer"))
    probes = [job for job in lab.jobs(folder) if "-probe-" in job[1]]
    assert [state for _, _, state in probes] == ["COMPLETED"]
    assert len(list(shared.glob("bequeath/.brought/code/*/lineage_trial.py"))) == 1
    modules = shared.glob("bequeath/.brought/modules/*/*/msgspec/__init__.py")
    assert len(list(modules)) == (python is not None)


@contextlib.contextmanager
def forwarded(port: int, target: Callable[[], int]) -> Iterator[None]:
    """A port of this machine that leads to another one from now on."""
    with contextlib.ExitStack() as ends:
        listening = ends.enter_context(socket.create_server(("127.0.0.1", port)))
        carriers: list[threading.Thread] = []

        def carry(source: socket.socket, sink: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    sink.sendall(data)
            shut(source, sink)

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    near = ends.enter_context(listening.accept()[0])
                    far = ends.enter_context(socket.create_connection(("127.0.0.1", target())))
                    ends.callback(shut, near, far)
                    for pair in ((near, far), (far, near)):
                        carriers.append(threading.Thread(target=carry, args=pair, daemon=True))
                        carriers[-1].start()

        server = threading.Thread(target=serve, daemon=True)
        server.start()
        try:
            yield
        finally:
            shut(listening)
            server.join(60)
    for each in carriers:
        each.join(60)


def shut(*ends: socket.socket) -> None:
    for each in ends:
        with contextlib.suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def way_of(folder: Path) -> str:
    """By which way the agents of an experiment have come."""
    said = subprocess.run(
        [
            *(sys.executable, "-m", "dispatcher.cli", "status"),
            *(folder.name, "--json", "--folder", str(folder.parent)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    head = json.loads(said.stdout or "{}").get("head") or {}
    return " ".join(sorted(each.get("way") or "" for each in head.get("workers", ())))


def test_agents_come_by_the_folder_while_no_port_is_reached(lab: Lab) -> None:
    """`channel: auto`; nobody listens at the address that nodes have. Sixty digits go through, with
    weights that they inherit. Mutations: `auto` stays with the port, and no trial begins; the
    folder is no way where a port is named."""
    shared = lab.base / "shared"
    shared.mkdir()
    port = free_port()
    service = {
        "cpus": 4,
        "slots": 2,
        "allocations": 2,
        "wallTime": "1h",
        "channel": "auto",
        "headAddress": f"127.0.0.1:{port}",
        "sharedFolder": str(shared),
        "bringCode": True,
        "probe": True,
    }
    digits = digits_in(lab.base / "digits")
    folder = lab.create(
        service,
        experimentWorkingDirectory=str(lab.cluster.folder.parent / "hidden"),
        weightsRoot=str(shared / "weights"),
        channel={"transport": "tcp"},
        **digits,
    )
    head = lab.lead(folder)
    wait_until(lambda: joins(lab, folder) == 2, "two jobs run", timeout_s=240)
    wait_until(lambda: way_of(folder) == "folder folder", "they come by the folder")
    (lab.base / "digits" / "go").touch()
    lab.finish(folder, head)
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    rows = lab.ask(folder, "SELECT parent FROM trials")
    assert len(rows) == TRIALS
    assert len([parent for (parent,) in rows if parent is not None]) == TRIALS - FOUNDERS
    logs = [path.read_text() for path in shared.glob("bequeath/*/slurm*/logs/agent.log")]
    assert all("trying: folder" in text for text in logs)


def test_agents_go_back_to_a_port_that_is_reached_again(lab: Lab) -> None:
    """Trials run while they do: none is started twice, and no result is lost. Mutation: agents stay
    with the folder until they end."""
    shared = lab.base / "shared"
    shared.mkdir()
    port = free_port()
    service = {
        "cpus": 1,
        "slots": 2,
        "wallTime": "1h",
        "headAddress": f"127.0.0.1:{port}",
        "sharedFolder": str(shared),
    }
    keys = {"weightsRoot": str(shared / "weights"), "channel": {"transport": "tcp"}}
    keys["trialEnvironment"] = {"GO": str(shared / "go")}
    folder = lab.create(service, **keys, **lineage(60, wait_s=3.0, held_from=50))
    head = lab.lead(folder)
    wait_until(lambda: joins(lab, folder) == 1, "a job runs", timeout_s=240)
    wait_until(lambda: way_of(folder) == "folder", "it comes by the folder")
    with forwarded(port, lambda: int((folder / "keys" / "port").read_text())):
        wait_until(lambda: way_of(folder) == "direct", "it came back", timeout_s=300)
        (shared / "go").touch()  # the last ones would end too early for a second try
        lab.finish(folder, head)
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    started = {(x.trial, x.attempt, x.pid) for x in lab.events(folder, e.AttemptStarted)}
    assert len(started) == 60, "nothing was started again"
