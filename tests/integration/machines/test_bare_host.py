"""A machine that has nothing but an old Python; and a head that comes back with other code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.remote_python.probed import Probe, probe
from dispatcher.wheelhouse import WheelCache, WheelsMissing, plan
from tests.integration.machines import conftest
from tests.integration.machines.conftest import POINT, ROOT, Lab, environment
from tests.support.old_python import old_python
from tests.support.remote_python import python_here
from tests.support.ssh_hosts import ssh_hosts, why_not

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Bare: 3.9 where there is one, else ours without what we have installed."""
    # Not below a folder that hosts have of their own, such as /tmp.
    folder = tmp_path_factory.mktemp("bare") / "venv"
    base = old_python() or str(Path(sys.base_prefix) / "bin" / "python3")
    subprocess.run([base, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    return folder / "bin" / "python"


@pytest.fixture
def lab(
    python: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lab]:
    folder = tmp_path_factory.mktemp("rig")
    (folder / "share").mkdir()
    bare = python_here(python=str(python), environment={"PATH": os.defpath})
    found = probe(bare, Probe(str(folder / "seen")))
    wheels = plan(found.host, found.missing, found.versions).wheels
    assert set(wheels) == {"msgspec", "zmq", "blake3", "numpy", "filelock"}, "it is bare"
    # The head is where no index can be reached: it uses what was fetched before.
    monkeypatch.setenv("BEQUEATH_WHEELS", str(folder / "wheels"))
    try:
        WheelCache().get(wheels.values(), found.host)
    except WheelsMissing as error:
        pytest.skip(f"no index can be reached from here: {error.message}")
    prefix = subprocess.run(
        [str(python), "-c", "import sys; print(sys.base_prefix)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    binds = {str(x): x for x in (python.parents[1], Path(prefix)) if not str(x).startswith("/usr")}
    shares = {POINT: folder / "share"}
    with ssh_hosts(folder / "hosts", 1, binds=binds, shares=shares) as hosts:
        base = folder / "base"
        base.mkdir()
        one = Lab(hosts, folder / "share", base)
        try:
            yield one
        finally:
            one.close()


def names_below(lab: Lab, *path: str) -> list[str]:
    return sorted(os.listdir(lab.hosts["h1"].disk.joinpath("root/.bequeath", *path)))


def test_nothing_but_a_python_is_needed_and_a_later_version_takes_over(
    lab: Lab, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = lab.share / lab.base.name / "go"
    service = {"platform": "ssh", "machineList": [lab.machine("h1", python=str(python))]}
    folder = lab.create(
        service,
        args={"roots": 2, "wait_s": 600.0},
        maxTrialNumber=4,
        trialConcurrency=2,
        # A program of its own, which imports numpy before ours, as sorted imports do.
        trialFunction=None,
        trialCommand="python lineage_trial.py",
        trialEnvironment={"GO": f"{POINT}/{lab.base.name}/go"},
    )
    head = lab.lead(folder)
    lab.until(lambda: len(lab.events(folder, e.AttemptStarted)) >= 2, "two run", folder)
    (tag,) = names_below(lab, "modules")
    assert tag == ("cpython-39" if old_python() else sys.implementation.cache_tag)
    assert len(names_below(lab, "modules", tag)) == 5
    (record,) = lab.hosts["h1"].disk.glob("root/.bequeath/experiments/*/h1/agent-h1.json")
    before = record.read_bytes()

    head.send_signal(signal.SIGKILL)
    head.wait(60)
    later = lab.base / "later"
    later.mkdir()
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "trial_runtime", later / "trial_runtime", ignore=ignored)
    with (later / "trial_runtime" / "refusals.py").open("a") as file:
        file.write("# A later version.\n")
    paths = f"{later}{os.pathsep}{ROOT}"
    monkeypatch.setattr(conftest, "environment", lambda: {**environment(), "PYTHONPATH": paths})
    head = lab.lead(folder)
    lab.until(lambda: len(lab.events(folder, e.WorkerJoined)) >= 2, "it is taken up", folder)
    taken = lab.events(folder, e.WorkerJoined)[-1]
    assert (taken.slots, len(taken.holds)) == (0, 2), "it keeps what it runs and gets nothing new"
    assert record.read_bytes() == before, "that very one"

    go.touch()
    lab.finish(folder, head)
    ends = lab.events(folder, e.AttemptEnded)
    assert {(x.attempt, x.reason.value) for x in ends} == {(1, "finished")}, "nothing was lost"
    (lost,) = lab.events(folder, e.WorkerLost)
    assert "another version" in lost.reason
    assert [x.slots for x in lab.events(folder, e.WorkerJoined)] == [2, 0, 2]
    assert len(names_below(lab, "runtime")) == 2
    assert len(names_below(lab, "modules", tag)) == 5, "nothing was brought twice"
