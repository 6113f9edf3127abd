"""Whole experiments on a real cluster, judged by the checker that reads only the journal."""

from __future__ import annotations

import gzip
import importlib.util
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dispatcher.core import events as e
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.wheelhouse import WheelCache, WheelsMissing, plan
from tests.engines.slurm.conftest import ROOT, Lab, joins, wrapper_of
from tests.support import sshd
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
    assert lab.lead(folder, before=trap).wait(60) == -signal.SIGKILL
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


@pytest.mark.parametrize("channel", ["direct", "tunnel", "folder"])
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
