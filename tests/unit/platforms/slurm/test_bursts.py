"""Several orders as one array, over a scripted Slurm."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.slurm.allocator import SlurmAllocator
from dispatcher.platforms.slurm.bursts import KEPT_S, Bursts
from dispatcher.platforms.slurm.listing import Job
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.unit.platforms.slurm.scripted_slurm import ScriptedSlurm
from tests.unit.platforms.slurm.test_allocator import LABEL, order_in

NAMES = [f"{LABEL}-slurm-{number}-1" for number in (1, 2, 3)]


class Scene:
    """Three orders, and one allocator after another."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 100.0
        self.slurm = ScriptedSlurm()
        self.allocator = self.next_head()
        self.orders = [order_in(folder, name) for name in NAMES]

    def next_head(self) -> SlurmAllocator:
        section = SlurmServiceConfig.model_validate({"platform": "slurm"})
        given = ServiceGiven(
            LABEL, "lab", section, self.folder, None, lambda: pytest.fail("?"), lambda: "token"
        )
        self.allocator = SlurmAllocator(given, self.slurm, lambda: self.now)
        return self.allocator

    def states(self) -> dict[str, AllocationState]:
        return {each.name: each.state for each in self.allocator.look()}

    def left(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("agents/*/*") if path.is_file())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_many_orders_are_one_request_and_each_has_its_job(scene: Scene) -> None:
    """Mutation: a request for each; or the second task is taken for the first order."""
    scene.allocator.submit_many(scene.orders)
    assert scene.slurm.many("sbatch") == 1
    assert set(scene.states()) == set(NAMES)
    scene.slurm.says_of("1_1", "RUNNING")
    assert scene.states() == {
        NAMES[0]: AllocationState.WAITING,
        NAMES[1]: AllocationState.RUNNING,
        NAMES[2]: AllocationState.WAITING,
    }
    shown = " ".join(scene.slurm.commands[0]) + scene.slurm.jobs["1_0"].script.decode()
    assert "secret ticket" not in shown


def test_one_of_them_is_cancelled_alone(scene: Scene) -> None:
    """Also where no list has it yet. Mutation: all tasks of the array end."""
    scene.allocator.submit_many(scene.orders)
    scene.allocator.cancel([NAMES[1]], 0.0)
    assert scene.states() == {
        NAMES[0]: AllocationState.WAITING,
        NAMES[1]: AllocationState.ENDED,
        NAMES[2]: AllocationState.WAITING,
    }


def test_the_next_head_tells_them_apart(scene: Scene) -> None:
    scene.allocator.submit_many(scene.orders)
    scene.next_head()
    assert set(scene.states()) == set(NAMES)


def test_those_that_were_taken_are_not_asked_for_again(scene: Scene) -> None:
    """An answer was lost; by the next turn there is one order more. Mutation: two jobs for one."""
    scene.slurm.loses_answer = True
    with pytest.raises(PassingBackendError):
        scene.allocator.submit_many(scene.orders[:2])
    scene.allocator.submit_many(scene.orders)
    assert set(scene.states()) == set(NAMES)
    assert len(scene.slurm.jobs) == 3


def test_what_was_refused_leaves_no_file(scene: Scene) -> None:
    scene.slurm.refusal = b"sbatch: error: Batch job submission failed: Invalid account"
    with pytest.raises(PermanentBackendError, match="Invalid account"):
        scene.allocator.submit_many(scene.orders)
    assert scene.left() == []


def test_a_cluster_without_arrays_gets_one_job_after_another(scene: Scene) -> None:
    scene.slurm.has_arrays = False
    assert scene.allocator.most_at_once > 1
    with pytest.raises(PassingBackendError, match="job array"):
        scene.allocator.submit_many(scene.orders)
    assert scene.allocator.most_at_once == 1
    for order in scene.orders:
        scene.allocator.submit(order)
    assert set(scene.states()) == set(NAMES)


def test_accounting_knows_a_task_by_its_array(scene: Scene) -> None:
    scene.allocator.submit_many(scene.orders)
    scene.allocator.look()
    name = scene.slurm.jobs["1_2"].name
    scene.slurm.accounts = {name: "NODE_FAIL"}
    scene.slurm.account_numbers = {name: "1_2"}
    del scene.slurm.jobs["1_2"]
    seen = {each.name: each.gone for each in scene.allocator.look()}
    assert seen[NAMES[2]] is Gone.NODE_LOST


def test_files_of_arrays_go_when_nobody_can_ask_for_them(scene: Scene) -> None:
    """Mutation: at once, so that a list which lags makes strays of jobs that run."""
    scene.allocator.submit_many(scene.orders)
    scene.allocator.look()
    rows = dict(scene.slurm.jobs)
    scene.slurm.jobs = {}
    scene.allocator.look()
    scene.slurm.jobs = rows
    assert set(scene.states()) == set(NAMES)
    scene.slurm.jobs = {}
    scene.allocator.look()
    scene.now += KEPT_S + 1
    scene.allocator.look()
    assert not list(scene.folder.glob("agents/.bursts/*"))


def test_nothing_is_left_at_the_end(scene: Scene) -> None:
    scene.allocator.submit_many(scene.orders)
    scene.allocator.clear()
    assert not list(scene.folder.glob("agents/.bursts/*"))


def test_a_task_whose_file_is_gone_is_nobodys(tmp_path: Path) -> None:
    """It has a name of its own, by which it is cancelled."""
    bursts = Bursts(tmp_path, LABEL)
    name, path = bursts.lay_down({"a": Path("/h"), "b": Path("/h")})
    path.unlink()
    jobs = [Job("7_0", name, "RUNNING"), Job("7_1", name, "RUNNING"), Job("8", name, "RUNNING")]
    apart = Bursts(tmp_path, LABEL).tell_apart(jobs)
    assert [job.name for job in apart] == [f"{name}-0", f"{name}-1", name]
    assert len(name) <= 52


def test_a_path_that_is_two_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="line break"):
        Bursts(tmp_path, LABEL).lay_down({"a": Path("/x\ny")})


def test_the_same_orders_are_the_same_array(tmp_path: Path) -> None:
    one: dict[str, Any] = {"a": Path("/a"), "b": Path("/b")}
    other = dict(reversed(one.items()))
    bursts = Bursts(tmp_path, LABEL)
    assert bursts.lay_down(one) == bursts.lay_down(other)


def test_jobs_whose_file_cannot_be_read_for_a_moment_are_nobodys_for_no_moment(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would be cancelled as what nobody wants. Mutation: any fault means that it is gone."""
    scene.allocator.submit_many(scene.orders)
    scene.next_head()

    def fails(path: Path) -> bytes:
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), str(path))

    with monkeypatch.context() as broken:
        broken.setattr(Path, "read_bytes", fails)
        with pytest.raises(PassingBackendError, match="cannot be read: Stale file handle"):
            scene.allocator.look()
    assert set(scene.states()) == set(NAMES)
