"""Jobs asked for, looked at and cancelled, over a scripted Slurm."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import AllocationOrder, AllocationState, Gone
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.slurm.allocator import NEVER_S, QUICK_LOOK_S, SLOW_LOOK_S, SlurmAllocator
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.unit.platforms.slurm.scripted_slurm import Row, ScriptedSlurm
from trial_runtime.agent.config import AgentConfig, TrialSpec, read_config
from trial_runtime.endpoint import Endpoint

LABEL = "lab-0a1b2c"
NAME = f"{LABEL}-slurm-1"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def slurm() -> ScriptedSlurm:
    return ScriptedSlurm()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def allocator_of(
    slurm: ScriptedSlurm, clock: Clock, tmp_path: Path
) -> Callable[..., SlurmAllocator]:
    def make(**keys: Any) -> SlurmAllocator:
        given = ServiceGiven(
            LABEL,
            "lab",
            SlurmServiceConfig.model_validate({"platform": "slurm", **keys}),
            tmp_path,
            ("127.0.0.1", 7070),
            lambda: pytest.fail("nothing is brought anywhere"),
            lambda: "a token",
        )
        return SlurmAllocator(given, slurm, clock)

    return make


@pytest.fixture
def allocator(allocator_of: Callable[..., SlurmAllocator]) -> SlurmAllocator:
    return allocator_of()


def order_in(folder: Path, name: str = NAME, **more: str) -> AllocationOrder:
    config = AgentConfig(
        worker="slurm",
        slots=1,
        head=Endpoint("tcp://0.0.0.0:7070"),
        epoch=1,
        run_folder="",
        experiment_folder=str(folder / "agents/slurm"),
        trial=TrialSpec("/code", command="true"),
        weights_root="/weights",
        ticket="secret ticket",
    )
    return AllocationOrder(name, config, ("-m", "trial_runtime.agent"), more)


def test_an_order_is_one_job_that_names_no_secret(
    allocator_of: Callable[..., SlurmAllocator],
    slurm: ScriptedSlurm,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutation: a ticket, or the value of a variable, in the script or the command."""
    monkeypatch.setenv("LAB_KEY", "hunter3")
    allocator = allocator_of(
        python="python3.11", environment={"KEY": "env:LAB_KEY", "MODE": "literal:env:x"}
    )
    allocator.submit(order_in(tmp_path, PASSWORD="hunter2"))
    (row,) = slurm.jobs.values()
    home = tmp_path / "agents/slurm"
    config, variables = home / f"{NAME}.config", home / f"{NAME}.variables"
    assert row.name == NAME
    assert f"bequeath_stem={home / NAME}\n".encode() in row.script
    assert b'exec python3.11 -m trial_runtime.agent "$bequeath_stem.config"\n' in row.script
    assert (home / "logs").is_dir(), "Slurm starts nothing whose output has no folder"
    shown = " ".join(slurm.commands[0]) + row.script.decode()
    assert not [secret for secret in ("hunter2", "hunter3", "secret ticket") if secret in shown]
    for file in (config, variables):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "PASSWORD=hunter2" in variables.read_text()
    assert "KEY=hunter3" in variables.read_text()
    assert "MODE=env:x" in variables.read_text()
    there = read_config(str(config))
    assert there.ticket == "secret ticket"
    assert there.root_token == "a token", "a node shows that it has the share"
    assert there.trial.environment == {"KEY": "env:KEY"}, "its agent knows what to mask"


def test_one_list_is_all_that_a_look_asks_for(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    """However many there are, and whosever they are. Mutation: a question for each."""
    for number in range(5):
        allocator.submit(order_in(tmp_path, f"{LABEL}-slurm-{number}-1"))
    slurm.jobs[99] = Row("somebody-else")
    slurm.jobs[98] = Row(f"{LABEL}f-slurm-1")
    asked = len(slurm.commands)
    assert len(allocator.look()) == 5
    assert slurm.commands[asked:] == [slurm.commands[-1]]


def test_a_lost_answer_is_looked_for_before_the_order_is_repeated(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    """Mutation: it is ordered twice."""
    slurm.loses_answer = True
    with pytest.raises(PassingBackendError):
        allocator.submit(order_in(tmp_path))
    allocator.submit(order_in(tmp_path))
    assert len(slurm.jobs) == 1


def test_what_was_taken_twice_is_one_and_the_other_is_cancelled(
    allocator: SlurmAllocator, slurm: ScriptedSlurm
) -> None:
    slurm.jobs = {4: Row(NAME, "RUNNING"), 5: Row(NAME, "PENDING", "Resources")}
    (one,) = allocator.look()
    assert one.state is AllocationState.RUNNING
    assert slurm.jobs[5].state == "CANCELLED"
    assert slurm.jobs[4].state == "RUNNING"


def test_a_refused_order_leaves_no_file_with_keys(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    slurm.refusal = b"sbatch: error: Batch job submission failed: Invalid partition name specified"
    with pytest.raises(PermanentBackendError, match="Invalid partition name"):
        allocator.submit(order_in(tmp_path))
    assert not list((tmp_path / "agents/slurm").glob(f"{NAME}.*"))


def test_a_controller_that_is_away_is_asked_again(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    slurm.away = True
    for ask in (
        allocator.look,
        lambda: allocator.submit(order_in(tmp_path)),
        lambda: allocator.cancel([NAME], 0.0),
    ):
        with pytest.raises(PassingBackendError, match="Unable to contact"):
            ask()
    slurm.away = False
    allocator.submit(order_in(tmp_path))
    assert len(allocator.look()) == 1


def test_files_with_keys_go_when_their_job_has_ended(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    """Mutation: a job that was cancelled in the queue leaves a ticket on disk."""
    allocator.submit(order_in(tmp_path))
    allocator.look()
    assert list((tmp_path / "agents/slurm").glob(f"{NAME}.*"))
    allocator.cancel([NAME], 0.0)
    (ended,) = allocator.look()
    assert ended.gone is Gone.CANCELLED
    assert not list((tmp_path / "agents/slurm").glob(f"{NAME}.*"))


def test_what_was_ordered_a_moment_ago_is_cancelled_by_its_name(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    allocator.submit(order_in(tmp_path))
    allocator.cancel([NAME], 0.0)
    assert slurm.jobs[1].state == "CANCELLED"


def test_a_long_grace_begins_with_a_signal(allocator: SlurmAllocator, slurm: ScriptedSlurm) -> None:
    """Slurm's own force would come before it is over. What waits in the queue goes at once."""
    slurm.jobs = {4: Row(NAME, "RUNNING"), 5: Row(f"{LABEL}-slurm-2-1", "PENDING")}
    names = [each.name for each in allocator.look()]
    allocator.cancel(names, 120.0)
    assert ["scancel", "--batch", "--signal=TERM", "4"] in slurm.commands
    assert slurm.jobs[5].state == "CANCELLED"
    allocator.cancel(names, 0.0)
    assert slurm.jobs[4].state == "CANCELLED"


def test_a_request_that_no_node_can_meet_is_given_up(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, clock: Clock
) -> None:
    """After a while, since somebody may be changing what is allowed. Mutation: it waits for ever;
    or for another reason in between."""
    slurm.jobs = {4: Row(NAME, "PENDING", "PartitionConfig")}
    assert allocator.look()[0].state is AllocationState.WAITING
    clock.now += NEVER_S - 1
    slurm.says(NAME, "PENDING", reason="Resources")
    allocator.look()
    slurm.says(NAME, "PENDING", reason="PartitionConfig")
    clock.now += NEVER_S - 1
    assert allocator.look()[0].state is AllocationState.WAITING
    clock.now += NEVER_S
    (never,) = allocator.look()
    assert (never.state, never.gone) == (AllocationState.ENDED, Gone.NEVER)
    assert never.reason == "PartitionConfig"
    assert slurm.jobs[4].state == "CANCELLED"


def test_a_controller_is_asked_seldom_while_nothing_changes(
    allocator: SlurmAllocator, slurm: ScriptedSlurm, clock: Clock, tmp_path: Path
) -> None:
    """Mutation: once a second, for days in a queue."""
    allocator.submit(order_in(tmp_path))
    assert allocator.look_every_s == QUICK_LOOK_S
    clock.now += 1000
    slurm.says(NAME, "PENDING", reason="Priority")
    allocator.look()
    assert allocator.look_every_s == SLOW_LOOK_S
    slurm.says(NAME, "CONFIGURING")
    allocator.look()
    assert allocator.look_every_s == QUICK_LOOK_S


def test_the_head_that_leads_now_is_told_where_an_agent_looks(
    allocator: SlurmAllocator, tmp_path: Path
) -> None:
    """Mutation: a file of a job that has ended comes back."""
    order = order_in(tmp_path)
    allocator.submit(order)
    path = tmp_path / f"agents/slurm/{NAME}.config"
    allocator.tell(NAME, replace(order.config, head=Endpoint("tcp://other:1")))
    assert read_config(str(path)).head.address == "tcp://other:1"
    path.unlink()
    allocator.tell(NAME, order.config)
    assert not path.exists()


def test_a_variable_that_leads_nowhere_is_named(
    allocator_of: Callable[..., SlurmAllocator], tmp_path: Path, slurm: ScriptedSlurm
) -> None:
    with pytest.raises(PermanentBackendError, match="NOT_SET_ANYWHERE"):
        allocator_of(environment={"KEY": "env:NOT_SET_ANYWHERE"}).submit(order_in(tmp_path))
    assert not slurm.jobs


def test_a_worker_lives_where_nodes_see_it(
    allocator_of: Callable[..., SlurmAllocator], slurm: ScriptedSlurm, tmp_path: Path
) -> None:
    """Mutation: its log, its keys or its folder below the experiment's, which nodes do not see."""
    shared = tmp_path / "shared"
    shared.mkdir()
    allocator = allocator_of(sharedFolder=str(shared))
    order = order_in(tmp_path)
    allocator.submit(order)
    (row,) = slurm.jobs.values()
    home = shared / "bequeath/lab/slurm"
    assert f"--chdir={home}" in row.command
    assert f"--output={home}/logs/agent.log" in row.command
    assert str(tmp_path / "agents") not in row.script.decode() + " ".join(row.command)
    path = home / f"{NAME}.config"
    assert read_config(str(path)).experiment_folder == str(home)
    allocator.tell(NAME, replace(order.config, head=Endpoint("tcp://other:1")))
    assert read_config(str(path)).head.address == "tcp://other:1"
    assert not (tmp_path / "agents").exists()
