"""Jobs of a service that has no secrets and refuses no name: keys lie in files for their owner
alone, and nothing is there twice."""

from __future__ import annotations

import stat
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import Invalid, Unreachable
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.http_jobs import allocator as module
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobEnd
from tests.support.processes import wait_until
from tests.support.services.machines import Machines, PlayedJob
from tests.support.services.plain import PlainJobs
from tests.support.services.played import Orders
from tests.support.services.server import TOKEN
from trial_runtime.endpoint import Endpoint


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Machines]:
    folder = tmp_path / "service"
    folder.mkdir()
    made = Machines(folder, 4, time.time, threading.RLock())
    yield made
    made.close()


@pytest.fixture
def jobs(machines: Machines) -> PlainJobs:
    return PlainJobs(machines)


def section(folder: Path, **keys: Any) -> dict[str, Any]:
    shared, there = folder / "shared", folder / "there"
    shared.mkdir(exist_ok=True)
    if not there.is_symlink():
        there.symlink_to(shared)
    (folder / "token").write_text(TOKEN)
    return {
        "platform": "openpai",
        "address": "https://nowhere",
        "user": "alice",
        "token": f"file:{folder / 'token'}",
        "image": "i",
        "cpus": 1,
        "memory": "1GB",
        "sharedFolder": str(shared),
        "mounts": {str(shared): str(there)},
        "codeFolder": "/code",
        "headAddress": "127.0.0.1",
        **keys,
    }


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    return Orders(section(tmp_path), tmp_path)


@pytest.fixture
def allocator(orders: Orders, jobs: PlainJobs, clock: Clock) -> HttpJobsAllocator:
    return HttpJobsAllocator(orders.given, jobs, clock)


def seen(allocator: HttpJobsAllocator, name: str) -> Allocation | None:
    return next((each for each in allocator.look() if each.name == name), None)


def comes_to(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = seen(allocator, name)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    made: Allocation = last[0]
    return made


def files(orders: Orders) -> dict[str, int]:
    """The files of jobs, and their modes."""
    homes = orders.service.homes("abc123", orders.folder)
    found = [each for each in homes.glob("*/*") if each.is_file()]
    return {each.suffix: stat.S_IMODE(each.stat().st_mode) for each in found}


@pytest.mark.parametrize("was_seen", [False, True])
def test_of_two_of_one_name_the_one_that_lives_counts(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders, was_seen: bool
) -> None:
    """The second has taken the script, so the first has ended: unseen, that is no end of a place.
    Once it was seen to have ended, the place is gone, and so is the second. Mutations: the living
    one is stopped; a place that was given up is there again."""
    jobs.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    jobs.create(jobs.orders[-1])
    first, second = jobs.machines.jobs
    later = jobs.machines.jobs.pop(second)
    if not was_seen:
        jobs.machines.jobs[second] = later
    jobs.machines.stop(first)
    state = comes_to(
        allocator, order.name, AllocationState.ENDED if was_seen else AllocationState.WAITING
    ).state
    jobs.machines.jobs[second] = later
    again = seen(allocator, order.name)
    assert again is not None
    assert again.state is state
    assert (later.cause != "") == was_seen


def test_keys_lie_in_files_for_their_owner_alone(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    """Mutation: a job's environment, or its command, has them."""
    jobs.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    assert files(orders) == {".config": 0o600, ".start": 0o600}
    (asked,) = jobs.orders
    there = orders.folder / "there/bequeath/abc123/worker"
    assert asked.script == f"exec sh {there}/{order.name}.start"
    assert asked.secret == ""
    config = msgspec.json.decode((there / f"{order.name}.config").read_bytes())
    assert config["experiment_folder"] == str(there)
    assert config["weights_root"] == f"{orders.folder}/there/weights"
    assert config["canonical_root"] == f"{orders.folder}/shared/weights"
    assert "s3cret-value" in (there / f"{order.name}.start").read_text()


def test_a_job_begins_by_its_script_which_is_gone_then(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    """A second start finds nothing, and ends. Mutation: an agent begins twice under one ticket."""
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    wait_until(lambda: set(files(orders)) == {".config"}, "the script has removed itself")
    jobs.machines.begin_again("id-0001")
    wait_until(lambda: jobs.machines.jobs["id-0001"].ended is not None, "it has ended")
    assert jobs.machines.jobs["id-0001"].code != 0
    gone = comes_to(allocator, order.name, AllocationState.ENDED)
    assert gone.gone is Gone.EVICTED
    assert files(orders) == {}, "what holds keys goes with it"


def test_a_job_is_looked_for_before_it_is_asked_for(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders, clock: Clock
) -> None:
    """Mutation: a lost answer makes two jobs where names are not refused."""
    order = orders.order()
    jobs.errors = [Unreachable("no answer")]
    with pytest.raises(Unreachable):
        allocator.submit(order)
    allocator.submit(order)
    HttpJobsAllocator(orders.given, jobs, clock).submit(order)
    assert len(jobs.machines.jobs) == 1
    assert set(files(orders)) >= {".config"}


def test_of_two_jobs_of_a_name_the_younger_one_is_ended(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    """Two heads have asked at the same moment. Mutation: the one in which an agent works is ended,
    or both go on."""
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    twin = PlayedJob(order.name, [["sleep", "1000"]], [{}], jobs.orders[0].mark)
    jobs.machines.add("id-0000", twin)
    wait_until(lambda: bool(allocator.look()) and twin.ended is not None, "the twin is ended")
    assert seen(allocator, order.name).state is AllocationState.RUNNING  # type: ignore[union-attr]
    orders.leads = False
    other = PlayedJob(order.name, [["sleep", "1000"]], [{}], jobs.orders[0].mark)
    jobs.machines.add("id-0002", other)
    before = jobs.asked.count("stop")
    allocator.look()
    assert jobs.asked.count("stop") == before, "a head that does not lead changes nothing"


def test_a_refused_job_leaves_no_file(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    jobs.errors = [Invalid("no such queue")]
    with pytest.raises(PermanentBackendError):
        allocator.submit(orders.order())
    assert files(orders) == {}


def test_files_of_a_head_before_go_with_their_job(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders, clock: Clock
) -> None:
    """Mutation: a head that was killed leaves keys on a share for ever."""
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    following = HttpJobsAllocator(orders.given, jobs, clock)
    comes_to(following, order.name, AllocationState.RUNNING)
    following.cancel([order.name], 0.0)
    gone = comes_to(following, order.name, AllocationState.ENDED)
    assert gone.gone is Gone.CANCELLED
    assert files(orders) == {}


def test_an_agent_is_given_the_address_of_the_next_head(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    moved = replace(order.config, head=Endpoint("tcp://127.0.0.1:2", "r"), epoch=2)
    allocator.tell(order.name, moved)
    (path,) = orders.folder.glob(f"shared/bequeath/*/worker/{order.name}.config")
    config = msgspec.json.decode(path.read_bytes())
    assert (config["head"]["address"], config["epoch"]) == ("tcp://127.0.0.1:2", 2)
    assert config["weights_root"] == f"{orders.folder}/there/weights", "as it is there"
    path.unlink()
    allocator.tell(order.name, moved)
    assert not path.exists(), "what is gone stays so"


def test_a_job_ends_itself_where_its_service_does_not(
    jobs: PlainJobs, tmp_path: Path, clock: Clock
) -> None:
    """Mutations: it runs for ever; its end is a failure of the worker."""
    orders = Orders(section(tmp_path), tmp_path)
    orders.service = orders.service.model_copy(update={"wall_time": 1.0})
    allocator = HttpJobsAllocator(orders.given, jobs, clock)
    order = orders.order()
    allocator.submit(order)
    running = comes_to(allocator, order.name, AllocationState.RUNNING)
    assert running.ends_in_s is not None
    assert running.ends_in_s <= 1.0
    gone = comes_to(allocator, order.name, AllocationState.ENDED)
    assert gone.gone is Gone.WALL_TIME


def test_few_ends_are_asked_about_at_once(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders, clock: Clock
) -> None:
    """All nodes are taken back at once. Mutations: a burst of questions; an end that is not
    explained yet counts as a failure."""
    names = []
    for number in range(5):
        order = orders.order(worker=f"w{number}")
        names.append(order.name)
        jobs.ends[order.name] = JobEnd(Gone.PREEMPTED, "somebody came")
        allocator.submit(order)
    wait_until(lambda: len(jobs.machines.running()) == 4, "all places are taken")
    jobs.machines.places = 5
    wait_until(lambda: len(jobs.machines.running()) == 5, "they run")
    allocator.look()
    for id_ in jobs.machines.running():
        jobs.machines.stop(id_, "preempted", 0.0)
    wait_until(lambda: not jobs.machines.running(), "all are gone")
    following = HttpJobsAllocator(orders.given, jobs, clock)
    assert {str(x.state) for x in following.look()} == {"ended"}, "what is past is no news"
    looks: list[list[str]] = []
    for _ in range(3):
        before = jobs.asked.count("end")
        looks.append([str(x.state) for x in allocator.look() if x.name in names])
        assert jobs.asked.count("end") - before <= module.MOST_QUESTIONS
    assert [states.count("ended") for states in looks] == [2, 4, 5]
    assert {str(x.gone) for x in allocator.look()} == {"preempted"}


def test_an_end_that_nobody_explains_is_taken_as_it_is(
    allocator: HttpJobsAllocator,
    jobs: PlainJobs,
    orders: Orders,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    jobs.machines.stop("id-0001", "", 0.0)
    wait_until(lambda: not jobs.machines.running(), "it is gone")

    def fails(job: object) -> JobEnd:
        raise Unreachable("no answer")

    monkeypatch.setattr(jobs, "end_of", fails)
    assert seen(allocator, order.name).state is AllocationState.UNKNOWN  # type: ignore[union-attr]
    clock.now += module.EXPLAINED_S
    assert seen(allocator, order.name).gone is Gone.FAILED  # type: ignore[union-attr]


def test_records_of_ended_jobs_are_removed_after_a_while(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders, clock: Clock
) -> None:
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    allocator.cancel([order.name], 0.0)
    comes_to(allocator, order.name, AllocationState.ENDED)
    assert jobs.removed == []
    clock.now += module.ENDED_S
    assert seen(allocator, order.name).state is AllocationState.ENDED  # type: ignore[union-attr]
    assert jobs.removed == [order.name]
    for _ in range(3):
        assert seen(allocator, order.name) is not None, "it is named for those who look later"
    clock.now += module.GONE_S
    allocator.look()
    assert seen(allocator, order.name) is None


def test_looks_become_fewer_when_nothing_changes(
    allocator: HttpJobsAllocator, orders: Orders, clock: Clock
) -> None:
    order = orders.order()
    allocator.submit(order)
    assert allocator.look_every_s == module.QUICK_LOOK_S
    comes_to(allocator, order.name, AllocationState.RUNNING)
    clock.now += module.QUICK_FOR_S
    assert allocator.look_every_s == module.SLOW_LOOK_S


def test_nodes_of_one_job_read_one_script(
    allocator: HttpJobsAllocator, jobs: PlainJobs, orders: Orders
) -> None:
    """Mutation: the first of them removes what the others begin with."""
    order = orders.order()
    object.__setattr__(order, "nodes", 3)
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    processes = jobs.machines.jobs["id-0001"].processes
    assert all(each.poll() is None for each in processes)
    assert set(files(orders)) == {".config", ".start"}
    allocator.cancel([order.name], 0.0)
    comes_to(allocator, order.name, AllocationState.ENDED)
    assert files(orders) == {}
