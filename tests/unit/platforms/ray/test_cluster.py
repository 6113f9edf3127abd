"""A cluster that is started for an experiment: its program runs, and its Ray is a script."""

from __future__ import annotations

import fcntl
import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from dispatcher.platforms.ray import cluster as program
from dispatcher.platforms.ray.cluster import LocalCluster, NoCluster
from tests.support.processes import wait_until

#: As much of Ray as the program uses.
RAY = """
import os, sys, types
def init(**keys):
    if os.environ.get("NO_ROOM"):
        sys.exit("there is no room for Ray")
    assert keys["address"] == "local" and keys["_node_ip_address"] == "127.0.0.1", keys
    assert os.environ["RAY_AUTH_MODE"] == "token", "others of this machine are kept out"
    open(keys["_temp_dir"] + "/session", "w").close()
def get_runtime_context():
    return types.SimpleNamespace(gcs_address="127.0.0.1:4711")
def shutdown():
    pass
"""


@pytest.fixture
def cluster_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., LocalCluster]]:
    """Drivers of one cluster; what they have started is ended."""
    modules, files = tmp_path / "modules", tmp_path / "files"
    modules.mkdir()
    files.mkdir()
    (modules / "ray.py").write_text(RAY)
    for name, value in (("PYTHONPATH", modules), ("TMPDIR", files)):
        monkeypatch.setenv(name, str(value))
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        monkeypatch.setenv(name, "")  # which a driver sets in its own process

    made: list[LocalCluster] = []

    def make() -> LocalCluster:
        made.append(LocalCluster(str(tmp_path / "ray"), str(program.__file__)))
        made[-1].prepare()
        return made[-1]

    yield make
    if (tmp_path / "ray").exists():
        make().end()
    for started in (process for each in made for process in each.started):
        started.wait(60)


def keeper(tmp_path: Path) -> psutil.Process:
    return psutil.Process(json.loads((tmp_path / "ray" / "address").read_text())["pid"])


def ends(process: psutil.Process) -> None:
    def over() -> bool:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE

    wait_until(over, "the program has ended")


def test_it_is_started_once_and_ends_when_asked(
    cluster_of: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    first, second = cluster_of(), cluster_of()
    assert first.address() is None, "nobody has asked for it"
    assert first.start(60.0) == "127.0.0.1:4711"
    assert second.start(60.0) == second.address() == "127.0.0.1:4711"
    program_runs = keeper(tmp_path)
    assert (tmp_path / "ray" / "token").stat().st_mode & 0o77 == 0
    first.end()
    ends(program_runs)
    assert second.address() is None
    assert list((tmp_path / "files").iterdir()) == [], "nothing of Ray's is left"
    first.end()  # there is none, which is no error


def test_it_stays_for_its_lease_where_nobody_uses_it(
    cluster_of: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    """Mutation: it stays for ever behind a head that does not come back."""
    used = cluster_of()
    used.start(0.2)
    runs = keeper(tmp_path)
    with pytest.raises(psutil.TimeoutExpired):
        runs.wait(2.0)
    used.forget()
    ends(runs)
    assert list((tmp_path / "files").iterdir()) == []


def test_one_that_was_killed_is_followed_by_another(
    cluster_of: Callable[..., LocalCluster], tmp_path: Path
) -> None:
    cluster = cluster_of()
    cluster.start(60.0)
    killed = keeper(tmp_path)
    killed.send_signal(signal.SIGKILL)
    ends(killed)
    assert cluster.address() is None, "what it has written counts no more"
    cluster.start(60.0)
    assert keeper(tmp_path).pid != killed.pid
    assert len(list((tmp_path / "files").iterdir())) == 1, "its files are gone"


def test_what_ray_says_where_it_cannot_start_is_passed_on(
    cluster_of: Callable[..., LocalCluster], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_ROOM", "1")
    with pytest.raises(NoCluster, match="there is no room for Ray") as raised:
        cluster_of().start(60.0)
    assert not raised.value.passing, "somebody has to change something first"


def test_nobody_joins_one_that_is_being_ended(
    cluster_of: Callable[..., LocalCluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a head takes up a cluster in its last moment, and loses all that it orders."""
    monkeypatch.setattr(program, "MOMENT_S", 0.1)
    cluster = cluster_of()
    (tmp_path / "ray").mkdir()
    file = os.open(tmp_path / "ray" / "used", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)
    try:
        with pytest.raises(NoCluster, match="is being ended") as raised:
            cluster.start(60.0)
        assert raised.value.passing
    finally:
        os.close(file)
