"""Jobs that the list lacks: what accounting says of them, where there is any."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.slurm.accounting import EVERY_S, LAGS_S, ends_command, read_ends
from dispatcher.platforms.slurm.allocator import SlurmAllocator
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.unit.platforms.slurm.scripted_slurm import Row, ScriptedSlurm

LABEL = "lab-0a1b2c"
NAMES = [f"{LABEL}-slurm-{number}-1" for number in (1, 2, 3)]


class Scene:
    """An allocator over a scripted Slurm, whose controller forgets jobs at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = 100.0
        self.slurm = ScriptedSlurm()
        self.slurm.jobs = {n: Row(name, "RUNNING") for n, name in enumerate(NAMES, 1)}
        self.allocator = self.next_head()

    def next_head(self) -> SlurmAllocator:
        section = SlurmServiceConfig.model_validate({"platform": "slurm"})
        nothing: Any = None
        service = ServiceGiven(LABEL, "lab", section, self.folder, None, nothing, nothing)
        self.allocator = SlurmAllocator(service, self.slurm, lambda: self.now)
        return self.allocator

    def forget(self, *names: str) -> None:
        self.slurm.jobs = {n: row for n, row in self.slurm.jobs.items() if row.name not in names}

    def look(self) -> dict[str, tuple[AllocationState, Gone | None]]:
        return {each.name: (each.state, each.gone) for each in self.allocator.look()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_accounting_is_asked_for_nothing_while_all_are_listed(scene: Scene) -> None:
    scene.look()
    scene.look()
    assert not scene.slurm.many("sacct")


def test_one_question_says_how_all_of_them_ended(scene: Scene) -> None:
    """Mutation: a question for each; or a lost place is blamed for what its node did."""
    scene.look()
    scene.slurm.accounts = {NAMES[0]: "NODE_FAIL", NAMES[1]: "TIMEOUT", "another": "FAILED"}
    scene.forget(*NAMES[:2])
    seen = scene.look()
    assert seen[NAMES[0]] == (AllocationState.ENDED, Gone.NODE_LOST)
    assert seen[NAMES[1]] == (AllocationState.ENDED, Gone.WALL_TIME)
    assert seen[NAMES[2]] == (AllocationState.RUNNING, None)
    assert scene.slurm.many("sacct") == 1
    assert NAMES[0] not in scene.look(), "once"


def test_accounting_that_lags_is_asked_again_for_a_while(scene: Scene) -> None:
    scene.look()
    scene.slurm.accounts = {NAMES[0]: "RUNNING"}
    scene.forget(NAMES[0])
    assert scene.look()[NAMES[0]] == (AllocationState.UNKNOWN, None)
    scene.look()
    assert scene.slurm.many("sacct") == 1, "not at each look"
    scene.now += EVERY_S
    scene.slurm.accounts = {NAMES[0]: "CANCELLED by 1000"}
    assert scene.look()[NAMES[0]] == (AllocationState.ENDED, Gone.CANCELLED)


def test_one_of_whom_nobody_knows_the_end_is_missing_in_the_end(scene: Scene) -> None:
    scene.look()
    scene.slurm.accounts = {}
    scene.forget(NAMES[0])
    assert scene.look()[NAMES[0]] == (AllocationState.UNKNOWN, None)
    scene.now += LAGS_S
    assert NAMES[0] not in scene.look()


def test_without_accounting_it_is_asked_once(scene: Scene) -> None:
    scene.look()
    scene.forget(NAMES[0])
    assert NAMES[0] not in scene.look()
    scene.forget(NAMES[1])
    assert NAMES[1] not in scene.look()
    assert scene.slurm.many("sacct") == 1


def test_what_was_cancelled_may_go_without_a_word(scene: Scene) -> None:
    """Mutation: a cancelled one keeps its worker from the next place for a minute."""
    scene.look()
    scene.slurm.accounts = {}
    scene.allocator.cancel([NAMES[0]], 0.0)
    scene.forget(NAMES[0])
    assert NAMES[0] not in scene.look()
    assert not scene.slurm.many("sacct")


def test_one_that_is_listed_again_was_never_gone(scene: Scene) -> None:
    scene.look()
    rows = scene.slurm.jobs
    scene.slurm.accounts = {}
    scene.forget(NAMES[0])
    scene.look()
    scene.slurm.jobs = rows
    assert scene.look()[NAMES[0]] == (AllocationState.RUNNING, None)


def test_the_next_head_asks_for_what_ended_while_there_was_none(scene: Scene) -> None:
    """By the files of theirs that are left, which go then: they hold keys."""
    home = scene.folder / "agents/slurm-1"
    home.mkdir(parents=True)
    (home / f"{NAMES[0]}.config").write_text("")
    (home / f"{NAMES[1]}.config").write_text("")
    scene.slurm.accounts = {NAMES[0]: "PREEMPTED"}
    scene.forget(NAMES[0])
    scene.next_head()
    assert scene.look()[NAMES[0]] == (AllocationState.ENDED, Gone.PREEMPTED)
    assert [path.stem for path in home.iterdir()] == [NAMES[1]]


def test_accounting_that_is_away_is_no_trouble_of_a_look(scene: Scene) -> None:
    scene.look()
    scene.forget(NAMES[0])
    run = scene.slurm.run

    def without(command: Any, *, stdin: bytes = b"") -> Any:
        if command[0] == "sacct":
            raise PassingBackendError("sacct took longer than 60 s, and was ended")
        return run(command, stdin=stdin)

    scene.slurm.run = without  # type: ignore[method-assign]
    assert scene.look()[NAMES[0]] == (AllocationState.UNKNOWN, None)


def test_lines_that_are_no_rows_are_passed_over() -> None:
    text = b"\nlab-1|\xff\nlab-1|TIMEOUT|12\nlab-1|A|B|C\nother|FAILED|3\n"
    assert [(job.name, job.state, job.id) for job in read_ends(text)] == [
        ("lab-1", "TIMEOUT", "12"),
        ("other", "FAILED", "3"),
    ]
    assert "--name=a,b" in ends_command("1000", ["a", "b"])
