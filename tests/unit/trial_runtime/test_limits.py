"""Cores that are lent, control groups on a folder that looks like one, and who takes what."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import wait_until
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.processes.table import (
    Row,
    descends_from,
    families,
    process_table,
    proportional_bytes,
)
from trial_runtime.agent.resources import cgroup, host
from trial_runtime.agent.resources.host import Cores
from trial_runtime.agent.resources.sampling import Asked, Sampler
from trial_runtime.agent.runners import settling

MIB = 1 << 20


def test_cores_are_distinct_while_there_are_enough() -> None:
    cores = Cores(range(4))
    assert cores.allocate("a", 2) == (0, 1)
    assert cores.allocate("b", 1) == (2,)
    assert cores.allocate("a", 2) == (0, 1)  # asked again
    cores.release("a")
    assert cores.allocate("c", 1) == (0,)
    assert cores.allocate("d", 9) == (0, 1, 2, 3)


def test_parts_of_cores_go_together_and_leave_whole_ones_whole() -> None:
    cores = Cores(range(3))
    assert cores.allocate("a", 0.5) == (0,)
    assert cores.allocate("b", 0.5) == (0,)
    assert cores.allocate("c", 1.5) == (1, 2)
    assert cores.allocate("d", 0.5) == (2,)
    for who in "abcd":
        cores.release(who)
    assert cores.allocate("e", 3) == (0, 1, 2)


@pytest.fixture
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> cgroup.Cgroups:
    """A folder with the files that the kernel would make: no kernel stands behind it."""
    return handed_over(tmp_path, monkeypatch, "cpu memory pids")


def handed_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch, controllers: str, refused: str = ""
) -> cgroup.Cgroups:
    enabled: list[str] = []

    def write(path: str, value: str) -> None:
        if value == refused:
            raise OSError(16, "Device or resource busy")
        if path == str(folder / "cgroup.subtree_control"):
            enabled.append(value)
        Path(path).write_text(value)

    (folder / "cgroup.controllers").write_text(controllers + "\n")
    monkeypatch.setenv(cgroup.FOLDER_VARIABLE, str(folder))
    monkeypatch.setattr(cgroup, "_write", write)
    found = cgroup.delegated()
    assert found is not None
    assert enabled == ["+memory"] * found.memory + ["+cpu"] * found.cpu
    return found


def test_a_group_bounds_memory_and_says_when_it_struck(groups: cgroup.Cgroups) -> None:
    path = Path(groups.make("12-3.1", 64 * MIB))
    assert (path / "memory.max").read_text() == str(64 * MIB)
    assert not groups.struck(str(path))
    (path / "memory.events").write_text("low 0\noom 1\noom_kill 1\n")
    assert groups.struck(str(path))
    cgroup.join(str(path))
    assert (path / "cgroup.procs").read_text() == "0"


def test_a_group_bounds_cpu_time_by_the_period(groups: cgroup.Cgroups) -> None:
    path = Path(groups.make("12-3.1", 0, 0.5))
    assert [each.name for each in path.iterdir()] == ["cpu.max"], "memory is not bounded"
    assert (path / "cpu.max").read_text() == "50000 100000"
    both = Path(groups.make("12-4.1", 64 * MIB, 3))
    assert (both / "cpu.max").read_text() == "300000 100000"
    assert (both / "memory.max").read_text() == str(64 * MIB)
    tiny = Path(groups.make("12-5.1", 0, 0.001))
    assert (tiny / "cpu.max").read_text() == "1000 100000", "the kernel takes no less"
    assert groups.make("12-6.1") == ""


@pytest.mark.parametrize("controllers, refused", [("memory pids", ""), ("cpu memory", "+cpu")])
def test_without_the_cpu_controller_memory_is_bounded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, controllers: str, refused: str
) -> None:
    groups = handed_over(tmp_path, monkeypatch, controllers, refused)
    assert groups.make("12-3.1", 0, 0.5) == ""
    path = Path(groups.make("12-4.1", 64 * MIB, 0.5))
    assert [each.name for each in path.iterdir()] == ["memory.max"]


def test_without_the_memory_controller_cpu_time_is_bounded_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = handed_over(tmp_path, monkeypatch, "cpu")
    assert groups.make("12-3.1", 64 * MIB) == ""
    path = Path(groups.make("12-4.1", 64 * MIB, 1))
    assert [each.name for each in path.iterdir()] == ["cpu.max"]


def test_what_is_left_in_a_group_is_ended(groups: cgroup.Cgroups, tmp_path: Path) -> None:
    path = tmp_path / "bequeath-1-1.1"
    path.mkdir()
    sleeper = subprocess.Popen(["sleep", "600"])
    (path / "cgroup.procs").write_text(f"{sleeper.pid}\n")
    with pytest.raises(OSError, match="not empty"):  # a kernel's own files do not count
        groups.remove(str(path))
    assert sleeper.wait(120) == -9


def test_groups_of_agents_that_are_gone_are_removed(groups: cgroup.Cgroups, tmp_path: Path) -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    for name in (f"bequeath-{gone.pid}-1.1", f"bequeath-{os.getpid()}-2.1", "bequeath-main", "x"):
        (tmp_path / name).mkdir()
    groups.remove_leftovers()
    left = sorted(each.name for each in tmp_path.iterdir() if each.is_dir())
    assert left == [f"bequeath-{os.getpid()}-2.1", "bequeath-main", "x"]


def test_a_folder_that_bounds_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cgroup.controllers").write_text("io pids\n")
    monkeypatch.setenv(cgroup.FOLDER_VARIABLE, str(tmp_path))
    with pytest.raises(OSError, match="neither memory nor cpu"):
        cgroup.delegated()


def test_what_a_host_has() -> None:
    assert host.usable_cpus() <= len(host.usable_cores())
    memory = host.usable_memory_bytes()
    assert memory is not None
    assert memory > 64 * MIB


@pytest.fixture
def family() -> Iterator[tuple[int, int]]:
    """A process and its child, which has a session of its own."""
    code = (
        "import subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n"
        "kept = b'x' * (64 << 20)\n"
        "print(child.pid, flush=True)\n"
        "sys.stdin.read()\n"
        "child.kill(), child.wait()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdin is not None
    yield process.pid, int(process.stdout.readline())
    process.stdin.close()
    process.stdout.close()
    process.wait()


def test_who_descends_from_whom(family: tuple[int, int]) -> None:
    parent, child = family
    assert descends_from(child, os.getpid())
    assert descends_from(child, parent)
    assert descends_from(parent, child) is False
    assert descends_from(1, os.getpid()) is False
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert descends_from(ended.pid, os.getpid()) is None
    assert proportional_bytes(parent) > 60 * MIB
    assert proportional_bytes(ended.pid) == 0
    assert {row.pid for row in families(process_table(), [parent])[parent]} == {parent, child}


def test_a_child_whose_parent_has_ended_is_found_by_its_session() -> None:
    rows = [Row(1, 0, 1, 0, 0), Row(10, 1, 10, 0, 0), Row(11, 1, 10, 0, 0), Row(12, 11, 12, 0, 0)]
    found = families({row.pid: row for row in rows}, [10, 20])
    assert {row.pid for row in found[10]} >= {10, 11}
    assert found[20] == []


def test_what_attempts_take_is_measured_and_too_much_is_told(family: tuple[int, int]) -> None:
    parent, child = family
    watch, timers = Watch(), Timers()
    told: list[tuple[tuple[int, int], int]] = []
    asked = {(1, 1): Asked(parent, 40 * MIB), (2, 1): Asked(child)}
    sampler = Sampler(
        watch,
        timers,
        lambda: asked,
        lambda key, nbytes: told.append((key, nbytes)),
        every_s=0.01,
        bounded_every_s=0.01,
    )
    sampler.start()

    def turned() -> Any:
        watch.dispatch()
        timers.fire(time.monotonic())
        return told

    wait_until(turned, "it takes too much")
    (key, nbytes) = told[0]
    assert key == (1, 1)
    assert nbytes > 60 * MIB
    assert sampler.taken[2, 1].pids == {child}
    assert sampler.taken[1, 1].pids >= {parent}


def test_a_process_that_goes_on_is_pinned_and_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "_all", None)
    everywhere = os.sched_getaffinity(0)
    core = min(everywhere)
    try:
        settling.pin(())
        assert os.sched_getaffinity(0) == everywhere
        settling.pin((core,))
        assert os.sched_getaffinity(0) == {core}
        settling.pin(())
        assert os.sched_getaffinity(0) == everywhere
    finally:
        settling.pin(everywhere)
