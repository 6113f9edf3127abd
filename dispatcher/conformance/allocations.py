"""More tests for platforms whose workers are allocations of a scheduler; see ``docs/backends.md``.

They need fixtures that only the author of a platform can write: ``scarce_service``, ``busy_queue``,
``take_away`` and ``short_wall`` (:mod:`dispatcher.conformance.plugin` says what each is).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from dispatcher.conformance.rig import Rig
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationState,
    service_label,
)
from dispatcher.platforms.allocations.held import OUR_REASONS
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.given import ServiceGiven
from dispatcher.platforms.registry import platform_of

Busy = Callable[[], AbstractContextManager[None]]


def test_one_that_waits_says_why_and_is_no_loss(
    scarce_folder: Callable[..., Any], busy_queue: Busy
) -> None:
    rig = Rig(scarce_folder())
    try:
        with busy_queue():
            _ask_for_all(rig)
            for worker in rig.workers:
                assert _waits(rig, worker).reason
            assert not _losses(rig)
        for worker in rig.workers:
            rig.joined(worker)
        assert not _losses(rig)
    finally:
        rig.close(leave_running=False)
    assert _there(rig) == [], "nothing of ours is left at the scheduler"


def test_one_whose_place_is_taken_back_comes_again_and_is_not_blamed(
    scarce_folder: Callable[..., Any], take_away: Callable[[], None]
) -> None:
    rig = Rig(scarce_folder())
    try:
        rig.launch()
        pids: dict[str, int] = {}
        for number, worker in enumerate(rig.workers, 1):
            rig.start(worker, number, "wait")
            pids[worker] = rig.first_number(number)
        take_away()
        (lost, *_) = rig.wait(lambda: _losses(rig), "a place is taken back")
        assert lost.planned, lost
        assert lost.reason, "it says how"
        rig.events = [each for each in rig.events if not isinstance(each, e.WorkerJoined)]
        assert rig.joined(lost.worker).holds == (), rig.report()
        after = len(rig.workers) + 1
        rig.start(lost.worker, after, "look", pids=[pids[lost.worker]])
        rig.end(after)
        assert rig.final(after) == 0, "what ran in that place has ended"
        assert all(loss.planned and loss.worker == lost.worker for loss in _losses(rig))
    finally:
        rig.close(leave_running=False)
    assert _there(rig) == []


def test_one_that_reaches_its_wall_time_has_announced_it_and_comes_again(
    scarce_folder: Callable[..., Any], short_wall: Any
) -> None:
    rig = Rig(scarce_folder(trainingService=short_wall))
    try:
        rig.launch()
        worker = rig.workers[0]
        rig.wait(lambda: _offers_an_end(rig, worker), "the end of its place is known")
        lost = rig.wait(lambda: _losses(rig, worker), "its wall time is over")[0]
        assert lost.planned, lost
        rig.events = [each for each in rig.events if not isinstance(each, e.WorkerJoined)]
        rig.joined(worker)
    finally:
        rig.close(leave_running=False)
    assert _there(rig) == []


def test_a_head_that_dies_before_its_workers_join_leaves_one_allocation_each(
    scarce_folder: Callable[..., Any], busy_queue: Busy
) -> None:
    folder = scarce_folder()
    first = Rig(folder)
    with busy_queue():
        try:
            _ask_for_all(first)
            for worker in first.workers:
                _waits(first, worker)
            before = _there(first)
            assert len(before) == len(first.workers), first.report()
        finally:
            first.leads = False
            first.die()
        second = Rig(folder, 2, known=True)
        try:
            _ask_for_all(second)
            for worker in second.workers:
                _waits(second, worker)
            assert _there(second) == before, "nothing was ordered twice, and nothing given back"
        except BaseException:
            second.close(leave_running=False)
            raise
    try:
        for worker in second.workers:
            assert second.joined(worker).holds == ()
        assert _there(second) == before
        assert not _losses(second)
    finally:
        second.close(leave_running=False)
        first.worker_set.close(leave_running=True, deadline_s=0.0)  # its threads
    assert _there(second) == []


def _ask_for_all(rig: Rig) -> None:
    for worker in rig.workers:
        rig.perform(a.LaunchWorker(worker))


def _waits(rig: Rig, worker: WorkerId) -> e.WorkerWaits:
    """The newest wait of a worker, with the reason of its scheduler."""

    def look() -> e.WorkerWaits | None:
        waits = [x for x in rig.events if isinstance(x, e.WorkerWaits) and x.worker == worker]
        return waits[-1] if waits and waits[-1].reason not in ("", *OUR_REASONS) else None

    return rig.wait(look, f"{worker} waits")


def _losses(rig: Rig, worker: WorkerId | None = None) -> list[e.WorkerLost]:
    lost = [each for each in rig.events if isinstance(each, e.WorkerLost)]
    return [each for each in lost if worker in (None, each.worker)]


def _offers_an_end(rig: Rig, worker: WorkerId) -> bool:
    told = [x for x in rig.events if isinstance(x, e.WorkerJoined | e.WorkerOffers)]
    offers = [x.offer for x in told if x.worker == worker and x.offer is not None]
    return any(offer.ends_at is not None for offer in offers)


def _there(rig: Rig) -> list[str]:
    """The names of all allocations of ours that have not ended, by the scheduler's own account."""
    listed = [x for x in _listed(rig) if x.state is not AllocationState.ENDED]
    return sorted(each.name for each in listed)


def _listed(rig: Rig) -> list[Allocation]:
    services: dict[int, Any] = {}
    for service, planned in rig.config.workers:
        services.setdefault(id(service), (service, planned))
    listed: list[Allocation] = []
    for service, first in services.values():
        if not isinstance(service, AllocationService):
            continue
        platform: Any = platform_of(service)
        experiment = rig.folder.id
        allocator = platform.allocator(
            ServiceGiven(
                service_label(experiment, first.name),
                experiment,
                service,
                Path(rig.folder.path),
                None,
                _nothing,
                lambda: "",
            )
        )
        try:
            listed += allocator.look()
        finally:
            allocator.close()
    return listed


def _nothing() -> Any:
    raise AssertionError("nothing is brought anywhere")
