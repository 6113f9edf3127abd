"""Tests of all that bequeath relies on, for each worker of a service; see ``docs/backends.md``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dispatcher.attempt_files.attempt_at import AttemptAt
from dispatcher.attempt_files.places import PlaceFiles, ShowsNoFiles
from dispatcher.attempt_files.ways import files_of
from dispatcher.conformance.rig import CALL_S, Rig
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason
from dispatcher.errors import BackendError
from dispatcher.experiment.needs import OfferedResources
from dispatcher.experiment.platform_base import FilePlatform, S
from dispatcher.platforms.registry import platform_of
from dispatcher.remote_python.findings import HostNeeds
from dispatcher.wiring.needs import worker_rules
from dispatcher.wiring.places import places

REFERENCE = re.compile(r"(env|file):.")


def test_each_worker_joins_with_its_slots(rig: Rig) -> None:
    for _, planned in rig.config.workers:
        joined = rig.joined(WorkerId(planned.name))
        assert joined.slots == planned.slots
        assert joined.holds == (), "nothing was started there"


def test_an_attempt_from_its_order_to_its_end(rig: Rig, numbers: Iterator[int]) -> None:
    """Events come in order, each once, even if messages were sent twice on the way."""
    for worker in rig.workers:
        trial = next(numbers)
        rig.start(worker, trial, "finish")
        end = rig.end(trial)
        assert (end.reason, end.exit_code, end.signal) == (EndReason.FINISHED, 0, None), (
            rig.report()
        )
        assert len(rig.events_of(trial, e.AttemptStarted)) == 1
        metrics = rig.events_of(trial, e.MetricReported)
        assert [json.loads(each.value) for each in metrics] == [0, 1, 2]
        numbered = [each.seq for each in metrics]
        numbered += [each.seq for each in rig.events_of(trial, e.FinalReported)]
        assert numbered == sorted(set(numbered)), "messages are numbered in order"
        assert rig.final(trial)["default"] == 1.5
        about = [each for each in rig.events if getattr(each, "trial", None) == trial]
        assert isinstance(about[0], e.AttemptStarted)
        assert isinstance(about[-1], e.AttemptEnded)


def test_weights_arrive_with_their_digest_and_are_inherited(
    rig: Rig, numbers: Iterator[int]
) -> None:
    for worker in rig.workers:
        parent, child = next(numbers), next(numbers)
        rig.start(worker, parent, "save")
        assert rig.end(parent).reason is EndReason.FINISHED, rig.report()
        (published,) = rig.events_of(parent, e.WeightsPublished)
        assert published.weights.digest
        rig.start(
            worker,
            child,
            "save",
            restore_path=str(rig.root / str(parent)),
            restore_digest=published.weights.digest,
            restore_kind=published.weights.kind,
        )
        assert rig.end(child).reason is EndReason.FINISHED, rig.report()
        assert rig.final(child) == 2.0


def test_a_parent_that_cannot_be_is_no_start(rig: Rig, numbers: Iterator[int]) -> None:
    """The parent lies outside of all roots: no trial may begin with it, and the end names why."""
    for worker in rig.workers:
        child = next(numbers)
        rig.start(
            worker,
            child,
            "save",
            restore_path="/nowhere/of/ours",
            restore_digest="0" * 64,
            restore_kind="bequeath",
        )
        end = rig.end(child)
        assert end.reason is EndReason.START_FAILED, end
        assert end.text, "it says why"
        assert not rig.events_of(child, e.FinalReported)


def test_an_order_that_comes_twice_starts_one_attempt(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        trial = next(numbers)
        rig.start(worker, trial, "finish")
        rig.start(worker, trial, "finish")
        rig.end(trial)
        rig.start(worker, trial, "finish")
        after = next(numbers)
        rig.start(worker, after, "finish")
        rig.end(after)
        assert len(rig.events_of(trial, e.AttemptStarted)) == 1
        assert len(rig.events_of(trial, e.AttemptEnded)) == 1


def test_exit_codes_and_signals_are_told(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        failing, dying = next(numbers), next(numbers)
        rig.start(worker, failing, "fail")
        end = rig.end(failing)
        assert (end.reason, end.exit_code) == (EndReason.FAILED, 3), rig.report()
        rig.start(worker, dying, "die")
        end = rig.end(dying)
        assert (end.reason, end.signal) == (EndReason.SIGNALLED, 9), rig.report()


def test_one_that_is_told_to_stop_may_say_its_last_words(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        trial = next(numbers)
        rig.start(worker, trial, "wait")
        pid = rig.first_number(trial)
        rig.stop(worker, trial, 60.0)
        assert rig.end(trial).reason is EndReason.KILLED, rig.report()
        finals = rig.events_of(trial, e.FinalReported)
        assert [json.loads(each.value) for each in finals] in ([], [pid])


def test_one_that_does_not_stop_is_ended_by_force(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        trial, after = next(numbers), next(numbers)
        rig.start(worker, trial, "ignore")
        pid = rig.first_number(trial)
        rig.stop(worker, trial, 0.5)
        assert rig.end(trial).reason is EndReason.KILLED, rig.report()
        rig.start(worker, after, "look", pids=[pid])
        rig.end(after)
        assert rig.final(after) == 0, "it is really gone"


def test_a_stop_of_what_is_not_there_is_no_error(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        rig.stop(worker, next(numbers), 0.0)
        trial = next(numbers)
        rig.start(worker, trial, "finish")
        assert rig.end(trial).reason is EndReason.FINISHED


def test_all_slots_of_a_worker_are_used_at_once(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        trials = [next(numbers) for _ in range(min(4, rig.joined(worker).slots))]
        for trial in trials:
            rig.start(worker, trial, "wait")
        assert len({rig.first_number(trial) for trial in trials}) == len(trials)
        for trial in trials:
            rig.stop(worker, trial, 60.0)
        for trial in trials:
            rig.end(trial)


def test_what_an_attempt_has_printed_can_be_read(rig: Rig, numbers: Iterator[int]) -> None:
    for worker in rig.workers:
        trial = next(numbers)
        rig.start(worker, trial, "finish")
        rig.end(trial)
        try:
            files = files_of(rig.folder, AttemptAt(worker, trial, 1))
        except BackendError as error:
            pytest.skip(str(error))  # offering it is up to a platform
        try:
            piece = rig.beside(partial(files.read, "stdout", 0, 1000))
        finally:
            files.close()
        assert piece is not None
        assert b"said by finish" in piece.data


def test_files_of_several_attempts_are_read_by_one_way(rig: Rig, numbers: Iterator[int]) -> None:
    """As all are fetched from one worker; and again after it was closed."""
    for place in places(rig.config):
        trials = [next(numbers), next(numbers)]
        for trial in trials:
            rig.start(WorkerId(place.worker), trial, "finish")
            rig.end(trial)
        way = PlaceFiles(rig.config, rig.folder, place)
        try:
            attempts = [AttemptAt(place.worker, each, 1) for each in trials]
            pieces = [rig.beside(partial(way.of(each).read, "stdout", 0, 99)) for each in attempts]
            way.close()
            pieces.append(rig.beside(partial(way.of(attempts[0]).read, "stdout", 0, 99)))
        except ShowsNoFiles as error:
            pytest.skip(str(error))  # offering it is up to a platform
        finally:
            way.close()
        assert all(piece is not None and b"said by finish" in piece.data for piece in pieces)


def test_what_a_section_lacks_is_said_of_its_own_keys(rig: Rig) -> None:
    """Nothing of a section that is in order; of one whose files and variables are gone, below its
    own path, by keys that it has, and with a reason."""
    for index, service in enumerate(rig.config.services):
        platform, at = platform_of(service), ("trainingService", index)
        assert list(platform.check(service, at, rig.config)) == []
        for problem in platform.check(bereft(service), at, rig.config):
            assert problem.path[:2] == at
            value: Any = service.model_dump(by_alias=True)
            for key in problem.path[2:]:
                value = value[key]  # it is there
            assert problem.text


def test_each_worker_is_in_the_storage_domain_that_its_platform_names(rig: Rig) -> None:
    """It is the same whenever somebody asks; and it is the one that the file names, unless the
    platform has a method of its own that knows better."""
    rules = worker_rules(rig.config)
    for place in places(rig.config):
        platform = platform_of(place.service)
        domain = platform.storage_domain(place.service, place.part)
        assert isinstance(domain, str)
        assert platform.storage_domain(place.service, place.part) == domain
        assert domain == (rules[place.worker].domain if place.worker in rules else "")
        moved = {"storage_domain": "elsewhere"}
        service, part = place.service.model_copy(update=moved), place.part
        if isinstance(part, OfferedResources):
            part = part.model_copy(update=moved)
        named = platform.storage_domain(service, part)
        assert isinstance(named, str)
        if is_inherited(platform.storage_domain):
            assert named == "elsewhere"


def is_inherited(method: Callable[..., str]) -> bool:
    """Whether a platform has that method from our base class. The methods of another package's
    object come wrapped in a ``partial``, whose last argument they are."""
    inner = method.args[-1] if isinstance(method, partial) else method
    return getattr(inner, "__func__", None) is FilePlatform.storage_domain


def test_machines_can_be_looked_at_beside_their_workers(rig: Rig) -> None:
    """Asks each machine that a platform names: what is found is said, and not raised; and what the
    suite's own experiment has left there is seen."""
    for place in places(rig.config):
        host = platform_of(place.service).host(place.worker, place.part)
        if host is None:
            continue
        assert host.name == place.worker
        assert host.label
        findings = host.check(HostNeeds())
        assert findings
        assert all(each.topic and each.text for each in findings)
        assert f"{rig.folder.id}/{place.worker}" in host.leftovers()
        assert host.remove([f"{rig.folder.id}/{place.worker}"]) == [], "a process there uses it"


def bereft(section: S) -> S:
    """The section with other files, which are not there, and references that lead nowhere."""
    return section.model_validate(_bereft(section.model_dump(by_alias=True)))


def _bereft(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _bereft(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_bereft(each) for each in value]
    if isinstance(value, Path):
        return Path("/nowhere/of/ours")
    return "env:BEQUEATH_NOWHERE" if isinstance(value, str) and REFERENCE.match(value) else value


def test_no_call_has_kept_the_head_waiting(rig: Rig) -> None:
    """The engine has one thread: other threads do what takes time."""
    assert rig.longest_s < CALL_S


def test_heads_come_and_go_and_attempts_go_on(new_folder: Callable[..., Any]) -> None:
    """The first is killed, the second leaves as on a take-over, the third ends all."""
    folder = new_folder()
    first = Rig(folder)
    pids: dict[str, int] = {}
    trials = {worker: number for number, worker in enumerate(first.workers, 1)}
    try:
        first.launch()
        first.acknowledging = False  # it dies before anything is on its disk
        for worker, trial in trials.items():
            first.start(worker, trial, "wait")
            pids[worker] = first.first_number(trial)
    finally:
        first.die()

    second = Rig(folder, 2, known=True)
    try:
        second.launch()
        for worker, trial in trials.items():
            assert (trial, 1) in second.joined(worker).holds, second.report()
            assert second.first_number(trial) == pids[worker], "said again, by the same process"
    finally:
        second.close(leave_running=True)
        first.worker_set.close(leave_running=True, deadline_s=0.0)  # its threads

    third = Rig(folder, 3, known=True)
    try:
        third.launch()
        for worker, trial in trials.items():
            assert (trial, 1) in third.joined(worker).holds, third.report()
            third.stop(worker, trial, 0.0)  # as the core does with what it does not know
            third.end(trial)
    finally:
        third.close(leave_running=False)


def test_a_worker_that_dies_is_lost_and_comes_back_without_what_it_ran(
    new_folder: Callable[..., Any],
) -> None:
    folder = new_folder()
    rig = Rig(folder)
    try:
        rig.launch()
        for service, planned in rig.config.workers:
            if not platform_of(service).has_agent:
                continue  # there is no agent whose death a trial could bring about
            worker = WorkerId(planned.name)
            before = 10 * rig.workers.index(worker)
            rig.start(worker, before + 1, "kill parent")
            pid = rig.first_number(before + 1)
            rig.stop(worker, before + 1, 600.0)
            rig.events = [each for each in rig.events if not isinstance(each, e.WorkerJoined)]
            assert rig.joined(worker).holds == (), rig.report()
            assert any(isinstance(x, e.WorkerLost) and x.worker == worker for x in rig.events)
            rig.start(worker, before + 2, "look", pids=[pid])
            rig.end(before + 2)
            assert rig.final(before + 2) == 0, "what a dead agent left is ended"
    finally:
        rig.close(leave_running=False)


def test_the_end_leaves_nothing_running(new_folder: Callable[..., Any]) -> None:
    folder = new_folder()
    pids: dict[str, int] = {}
    rig = Rig(folder)
    try:
        rig.launch()
        for number, worker in enumerate(rig.workers, 1):
            rig.start(worker, number, "ignore")
            pids[worker] = rig.first_number(number)
    finally:
        rig.close(leave_running=False)
    after = Rig(folder, 2, known=True)
    try:
        after.launch()
        for number, worker in enumerate(after.workers, 11):
            after.start(worker, number, "look", pids=[pids[worker]])
            after.end(number)
            assert after.final(number) == 0, after.report()
    finally:
        after.close(leave_running=False)
