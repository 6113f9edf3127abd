"""Faults that every service over HTTP has, as tests that each platform's own file takes:

    from tests.support.services.faults import *

    @pytest.fixture
    def played(): return OPENPAI

They ask an allocator as a pool does, with a clock that they move; jobs are real processes.
"""

from __future__ import annotations

import contextlib
import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.http_services.errors import NotLoggedIn
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.allocations.sweeping import sweep
from dispatcher.platforms.http_jobs import allocator as module
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import found_as, sensibly
from tests.support.lengths import every
from tests.support.processes import wait_until
from tests.support.services.played import Orders, PlayedPlatform, whole_section
from tests.support.services.server import PlayedService

__all__ = [
    "allocator",
    "clock",
    "orders",
    "served",
    "test_a_clock_that_is_three_hours_wrong_changes_no_duration",
    "test_a_job_is_ordered_once_whatever_becomes_of_the_answer",
    "test_a_job_that_an_administrator_has_deleted_has_ended",
    "test_a_job_that_is_started_again_counts_no_more",
    "test_a_list_that_lacks_a_page_loses_nobody",
    "test_a_name_that_somebody_else_has_is_refused",
    "test_a_place_that_is_taken_back_is_nobodys_fault",
    "test_a_refused_job_leaves_nothing",
    "test_a_service_that_babbles_loses_nothing",
    "test_a_service_that_is_away_for_ten_minutes_loses_nothing",
    "test_a_state_that_goes_backwards_is_not_believed_at_once",
    "test_a_storm_of_refusals_is_waited_out",
    "test_a_token_that_has_expired_is_said_and_another_one_is_taken",
    "test_a_word_that_nobody_knows_is_no_end",
    "test_nothing_is_left_after_a_sweep",
    "test_nothing_secret_is_shown",
    "test_one_look_is_few_requests_however_many_jobs_there_are",
    "test_two_heads_at_once_have_one_job",
]


class Clock:
    """Time that a test moves; a pause is a step of it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def served(played: PlayedPlatform, tmp_path: Path) -> Iterator[PlayedService]:
    with played.serving(tmp_path, 4) as service:
        yield service


@pytest.fixture
def orders(played: PlayedPlatform, served: PlayedService, tmp_path: Path) -> Orders:
    return Orders(whole_section(played, served, tmp_path), tmp_path)


@pytest.fixture
def allocator(
    orders: Orders, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[HttpJobsAllocator]:
    # Pauses are real, and short: what is tried is whether there is another try.
    monkeypatch.setattr("dispatcher.http_services.patience.FIRST_S", 0.0)
    monkeypatch.setattr("dispatcher.http_services.patience.JITTER_S", 0.0)
    made = orders.allocator(clock)
    yield made
    made.close()


def seen(allocator: HttpJobsAllocator, name: str) -> Allocation | None:
    return next((each for each in allocator.look() if each.name == name), None)


def state(allocator: HttpJobsAllocator, name: str) -> str:
    return str(getattr(seen(allocator, name), "state", "not listed"))


def comes_to(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = seen(allocator, name)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    made: Allocation = last[0]
    return made


def running(allocator: HttpJobsAllocator, orders: Orders) -> str:
    """The name of a job that runs."""
    order = orders.order()
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    return order.name


def persists(ask: Callable[[], object]) -> None:
    """Ask until it is taken, as a pool does."""
    for _ in range(8):
        try:
            ask()
        except PassingBackendError:
            continue
        return
    raise AssertionError("it was never taken")


@pytest.mark.parametrize(
    "status, done",
    [(500, True), (500, False), (502, True), (429, False), (None, True), (None, False)],
    ids=["500, done", "500", "502, done", "429", "cut, done", "cut"],
)
def test_a_job_is_ordered_once_whatever_becomes_of_the_answer(
    status: int | None,
    done: bool,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: PlayedService,
) -> None:
    """Mutations: a request that changes something is repeated blindly; an existing name is an
    error; a head that was killed in between orders a second one."""
    order = orders.order()
    served.fail("POST /", status, done=done)
    served.fail("PUT /", status, done=done)
    persists(lambda: allocator.submit(order))
    assert served.alive() == [order.name]
    orders.allocator().submit(order)  # the next head, which does not know
    assert served.alive() == [order.name]
    assert comes_to(allocator, order.name, AllocationState.RUNNING)


def test_a_refused_job_leaves_nothing(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: files with keys stay in the shared folder for ever."""
    order = orders.order()
    served.fail("POST /", 400, times=4)
    served.fail("PUT /", 400, times=4)
    with pytest.raises(PermanentBackendError):
        allocator.submit(order)
    assert served.alive() == []
    home = Path(order.config.experiment_folder)
    assert [each.name for each in home.glob("*") if each.is_file()] == []


def test_a_name_that_somebody_else_has_is_refused(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: any job of that name is taken for ours, and waited for."""
    order = orders.order()
    served.foreign(order.name)
    with pytest.raises(PermanentBackendError, match="has not ordered"):
        allocator.submit(order)


def test_two_heads_at_once_have_one_job(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService, clock: Clock
) -> None:
    """The one whose lease is over does nothing any more. Mutation: each orders its own."""
    order = orders.order()
    other = orders.allocator(clock)
    other.submit(order)
    allocator.submit(order)
    comes_to(allocator, order.name, AllocationState.RUNNING)
    assert len(served.ids(order.name)) == 1
    assert state(other, order.name) == "running"


def test_a_list_that_lacks_a_page_loses_nobody(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: what a list has no more is gone."""
    name = running(allocator, orders)
    served.hidden.add(name)
    for _ in range(3):
        assert state(allocator, name) == "running"
    served.hidden.clear()
    assert state(allocator, name) == "running"


def test_a_job_that_an_administrator_has_deleted_has_ended(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: it is waited for, for ever."""
    name = running(allocator, orders)
    served.delete(name)
    gone = comes_to(allocator, name, AllocationState.ENDED)
    assert gone.gone is Gone.CANCELLED
    assert "deleted" in gone.reason
    assert state(allocator, name) == "ended", "it stays so, for those who look later"


def test_a_state_that_goes_backwards_is_not_believed_at_once(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService, clock: Clock
) -> None:
    """Mutations: an old list ends an agent that works; one that waits again waits for ever."""
    name = running(allocator, orders)
    if not served.tells_states:
        pytest.skip("this service does not say how a job is")
    served.job(name).word = served.waiting_word
    assert state(allocator, name) == "unknown"
    served.job(name).word = ""
    assert state(allocator, name) == "running"
    served.job(name).word = served.waiting_word
    assert state(allocator, name) == "unknown"
    clock.wait(module.BACK_S)
    assert state(allocator, name) == "waiting", "it has lost its place"


def test_a_word_that_nobody_knows_is_no_end(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: what is not in the table counts as failed."""
    name = running(allocator, orders)
    if not served.tells_states:
        pytest.skip("this service does not say how a job is")
    served.wrong_words = True  # the contract knows no such word either
    served.job(name).word = served.odd_word
    assert state(allocator, name) == "unknown"
    served.job(name).word = ""
    assert state(allocator, name) == "running"


def test_a_job_that_is_started_again_counts_no_more(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: a second agent begins under the ticket of the first."""
    name = running(allocator, orders)
    if not served.tells_restarts:
        pytest.skip("this service does not say that it has started a job again")
    served.machines.begin_again(served.ids(name)[0])
    gone = comes_to(allocator, name, AllocationState.ENDED)
    assert gone.gone is Gone.EVICTED
    wait_until(lambda: allocator.look() is not None and served.alive() == [], "it is ended")


def test_a_place_that_is_taken_back_is_nobodys_fault(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutation: a worker that was preempted is blamed."""
    name = running(allocator, orders)
    served.machines.stop(served.ids(name)[0], "preempted", 0.0)
    gone = comes_to(allocator, name, AllocationState.ENDED)
    assert gone.gone in (Gone.PREEMPTED, Gone.EVICTED, Gone.NODE_LOST), gone
    assert gone.reason


def test_a_token_that_has_expired_is_said_and_another_one_is_taken(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Mutations: an expired token is taken for an empty list; a renewed file is not read again; the
    token is in the text."""
    name = running(allocator, orders)
    (token,) = served.tokens
    served.tokens = {"another-t0ken"}
    with pytest.raises(NotLoggedIn) as refused:
        allocator.look()
    assert token not in str(refused.value)
    served.renew("another-t0ken")
    assert state(allocator, name) == "running"


def test_a_service_that_is_away_for_ten_minutes_loses_nothing(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService, clock: Clock
) -> None:
    """Mutation: what cannot be asked about is gone."""
    name = running(allocator, orders)
    served.is_away = True
    for _ in range(3):
        with pytest.raises(PassingBackendError):
            allocator.look()
        clock.wait(200.0)
    served.is_away = False
    assert state(allocator, name) == "running"


#: What stands in the place of an answer, with the status of a good one: a gateway's null, errors
#: as services word them, and what nobody can read.
BABBLE = (
    "null",
    '{"error": {"code": 500, "message": "m", "details": 5}}',
    '{"error": "m", "Code": "InternalError", "Message": "m", "message": "m", "code": "c"}',
    '{"error": 5, "jobs": 5, "Jobs": {"a": 1}, "runList": [null], "customJobs": [[]], "value": 1}',
    "[null]",
    "[" * 50_000,
)


@pytest.mark.parametrize("text", every(3, BABBLE), ids=range(len(BABBLE)))
def test_a_service_that_babbles_loses_nothing(
    text: str, played: PlayedPlatform, allocator: HttpJobsAllocator, orders: Orders,
    served: PlayedService
) -> None:  # fmt: skip
    """Mutations: an error in the place of a list, or of a job, is the end of all jobs, or a reason
    to order one again; what cannot be read is a fault of ours, after which a place is given up."""
    name = running(allocator, orders)
    platform, service = orders.platform, orders.given
    jobs = platform.jobs(service.section, service.label)
    jobs.list()
    anew = platform.jobs(service.section, service.label)
    served.babbles = text
    for _ in range(4):
        with contextlib.suppress(PassingBackendError):
            assert state(allocator, name) not in ("not listed", AllocationState.ENDED)
        with contextlib.suppress(PassingBackendError):
            assert (there := found_as(name, sensibly(jobs.find, name))) is not None
            assert not isinstance(jobs.states.get(there.word), Gone)
    with contextlib.suppress(PassingBackendError):
        assert found_as(name, sensibly(anew.find, name)) is not None
    with contextlib.suppress(PassingBackendError):
        allocator.cancel([name], 0.0)
    served.babbles = ""
    for each in (jobs, anew):
        assert found_as(name, each.find(name)) is not None
        each.close()
    persists(lambda: allocator.cancel([name], 0.0))
    comes_to(allocator, name, AllocationState.ENDED)
    wait_until(lambda: not served.alive(), "nothing of it is left")


def test_a_storm_of_refusals_is_waited_out(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService, clock: Clock
) -> None:
    """Mutations: a service that wants a pause is asked all the same; the pause never ends."""
    name = running(allocator, orders)
    served.fail("GET /", 429, headers={"Retry-After": "120"})
    with pytest.raises(PassingBackendError):
        allocator.look()
    before = len(served.asked)
    with pytest.raises(PassingBackendError, match="pause"):
        allocator.look()
    assert len(served.asked) == before, "it is left alone"
    restless = orders.allocator(clock)
    served.fail("GET /", 429, times=2)
    assert state(restless, name) == "running", "a few are a matter of moments"


@pytest.mark.parametrize("hours", [3, -3])
def test_a_clock_that_is_three_hours_wrong_changes_no_duration(
    hours: int, played: PlayedPlatform, served: PlayedService, tmp_path: Path, clock: Clock
) -> None:
    """Mutation: the age of a job is the difference of two clocks."""
    served.skew_s = hours * 3600.0
    orders = Orders(whole_section(played, served, tmp_path, wallTime="2h"), tmp_path)
    allocator = orders.allocator(clock)
    name = running(allocator, orders)
    found = seen(allocator, name)
    assert found is not None
    assert found.ends_in_s is not None
    assert 7100 < found.ends_in_s <= 7200
    served.machines.places = 0
    other = orders.order(2, worker="other")
    allocator.submit(other)
    waits = comes_to(allocator, other.name, AllocationState.WAITING)
    assert waits.waiting_s < 60.0
    allocator.close()


def test_one_look_is_few_requests_however_many_jobs_there_are(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService, clock: Clock
) -> None:
    """Mutation: a question for each job."""
    served.machines.places = 0
    served.fill(orders.label, 1000)
    allocator.look()
    clock.wait(60.0)
    before = len(served.asked)
    assert len(allocator.look()) == 1000
    assert len(served.asked) - before <= 3


def test_nothing_is_left_after_a_sweep(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """After a head that was killed. Mutation: the label of another experiment is swept, too."""
    name = running(allocator, orders)
    served.fill("abc123-0dd0dd", 1)  # of another experiment
    swept = sweep(orders.allocator(), orders.label)
    assert swept == [name]
    wait_until(lambda: served.alive() == ["abc123-0dd0dd-worker-0"], "nothing of ours is left")


def test_nothing_secret_is_shown(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedService
) -> None:
    """Neither in what the service shows of a job, nor in a file that others can read. Mutations:
    the configuration is a variable of the job; the command has it in base64."""
    name = running(allocator, orders)
    shown = served.shown(name)
    for text in re.findall(r"[A-Za-z0-9+/]{40,}", shown):
        shown += b64decode(text[: len(text) // 4 * 4]).decode(errors="replace")
    for secret in ("s3cret-ticket", "routing-s3cret", "s3cret-value"):
        assert secret not in shown
    for path in orders.folder.glob("shared/**/*"):
        if path.is_file():
            assert path.stat().st_mode & 0o077 == 0, path
