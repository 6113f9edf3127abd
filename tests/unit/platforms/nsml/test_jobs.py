"""Runs as NSML takes them, and how they are, by their own files; a misspelt one is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import Invalid, NotLoggedIn, OverQuota
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from dispatcher.platforms.nsml import jobs as module
from dispatcher.platforms.nsml.jobs import NsmlJobs, body_of
from tests.support.processes import wait_until
from tests.support.services.machines import PREEMPTED
from tests.support.services.nsml import ACCESS, API_KEY, PROJECT, Nsml
from tests.support.services.played import Orders
from tests.support.services.server import TOKEN, Asked, Reply

ORDER = JobOrder("abc-worker-1", "abc", "f" * 32, "exec sh /there/abc-worker-1.start",
                 experiment="abc", worker="worker")  # fmt: skip

RUNS = f"/projects/{PROJECT}/runs"

Make = Callable[..., Orders]


def reaches(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = next((each for each in allocator.look() if each.name == name), None)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    found: Allocation = last[0]
    return found


def test_a_run_as_the_contract_has_it(make: Make) -> None:
    service = make(imageType="base", blockStorages=[5, 6]).service
    assert body_of(ORDER, service) == {
        "gpuSvrCode": 31,
        "imagePath": "our/own:1",
        "imageType": "BASE",
        "nodeCount": 1,
        "note": f"bequeath abc-worker-1 {'f' * 32}",
        "blockStorageNoList": [5, 6],
    }


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a run": lambda body: body.update(gpuServerCode=1),
    "the other name of variables": lambda body: body.update(env={}),
    "a missing one": lambda body: body.pop("imageType"),
    "a wrong kind": lambda body: body.update(nodeCount="1"),
    "a wrong word": lambda body: body.update(imageType="OWN"),
    "no node": lambda body: body.update(nodeCount=0),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_run_is_refused(
    what: str, orders: Orders, served: Nsml, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, orders.service))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = NsmlJobs(orders.service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: Nsml) -> None:
    client = NsmlJobs(orders.service, "abc").client
    for method, path, query, body in (
        ("GET", "/projects/runs", {"size": 3}, None),
        ("GET", "/projects/runs", {"page": "first"}, None),
        ("POST", RUNS, {}, body_of(ORDER, orders.service)),  # it has no command
        ("POST", RUNS, {}, None),
        ("DELETE", f"{RUNS}/8", {}, None),
    ):
        with pytest.raises(PermanentBackendError):
            client.ask(method, path, asked="ask", query=query, body=body)
    assert len(served.misspelt) == 5
    served.misspelt.clear()
    served.wrong.clear()  # it cannot refuse them in the words of the contract
    client.close()


def test_the_judge_finds_a_wrong_answer(served: Nsml) -> None:
    """Of ours: an imitation that lies about shapes is none."""
    asked = Asked("GET", f"{RUNS}/8", {}, {}, b"", "", None)
    wrong: list[Any] = [{"runName": "eight"}, {"state": "x"}, {"imageType": "OWN"}, []]
    for document in wrong:
        assert served.judge_answer(asked, Reply(200, document)), document
    assert served.judge_answer(asked, Reply(200, {"runName": "8"})) == []
    assert served.judge_answer(asked, Reply(201, {}))


def test_one_that_waits_shows_the_service_s_own_word(
    allocator: HttpJobsAllocator, orders: Orders, served: Nsml
) -> None:
    served.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    assert reaches(allocator, order.name, AllocationState.WAITING).reason == "NSML says 'A-WORD'"


ENDS: list[tuple[str, float, Gone, str]] = [
    ("", 0.0, Gone.NODE_LOST, "says nothing any more"),
    (PREEMPTED, 5.0, Gone.PREEMPTED, "somebody had it stopped"),
]


@pytest.mark.parametrize("cause, grace_s, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    grace_s: float,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: Nsml,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """NSML does not say it. Mutation: a run whose machine has died runs for days."""
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    monkeypatch.setattr(module, "SILENT_S", 2.0)
    served.machines.stop(served.ids(order.name)[0], cause, grace_s)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


@pytest.mark.parametrize("code, gone, reason", [
    (0, Gone.FINISHED, "exit code 0"), (3, Gone.FAILED, "exit code 3")
])  # fmt: skip
def test_an_agent_that_ends_is_seen_by_its_exit_code(
    code: int, gone: Gone, reason: str, allocator: HttpJobsAllocator, orders: Orders
) -> None:
    order = orders.order()
    object.__setattr__(order, "arguments", ("-c", f"import sys; sys.exit({code})"))
    allocator.submit(order)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert (ended.gone, ended.reason) == (gone, reason)


def test_of_several_nodes_the_first_one_speaks(
    allocator: HttpJobsAllocator, orders: Orders, served: Nsml
) -> None:
    """Each begins once, and knows its rank. Mutations: the second node is taken for a second start;
    its end is that of the run; a stop reaches one of them alone."""
    order = orders.order()
    waits = "signal.pause() if rank == 0 else sys.exit(3)"
    program = f"import os, signal, sys; rank = int(os.environ['NSML_RANK']); {waits}"
    for name, value in {"nodes": 2, "arguments": ("-c", program)}.items():
        object.__setattr__(order, name, value)
    allocator.submit(order)
    folder = Path(orders.service.shared_folder) / "nsml"
    wait_until(lambda: '"ended"' in read(folder / f"{order.name}.1"), "the second has ended")
    assert served.job(order.name).document["nodeCount"] == 2
    reaches(allocator, order.name, AllocationState.RUNNING)
    allocator.cancel([order.name], 0.0)
    assert reaches(allocator, order.name, AllocationState.ENDED).gone is Gone.CANCELLED


def read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_one_that_waits_and_is_stopped_ends_when_it_begins(
    allocator: HttpJobsAllocator, orders: Orders, served: Nsml
) -> None:
    """NSML takes no run back. Mutation: an agent begins an hour after its experiment has ended."""
    served.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.WAITING)
    allocator.cancel([order.name], 0.0)
    assert reaches(allocator, order.name, AllocationState.ENDED).gone is Gone.CANCELLED
    (known,) = orders.allocator().look()
    assert known.gone is Gone.CANCELLED, "the next head knows it before the run begins"
    served.machines.places = 4
    wait_until(lambda: served.alive() == [], "it has ended")
    assert served.job(order.name).code == 0
    (fresh,) = orders.allocator().look()
    assert (fresh.state, fresh.gone) == (AllocationState.ENDED, Gone.CANCELLED)


def test_a_run_that_is_there_twice_is_one_agent(
    allocator: HttpJobsAllocator, orders: Orders, served: Nsml
) -> None:
    """NSML refuses no name. Mutation: the second one ends the first, or says that it has ended."""
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    first = served.job(order.name)
    jobs = NsmlJobs(orders.service, orders.label)
    jobs.client.ask("POST", RUNS, asked="create it again", body=first.document)
    wait_until(lambda: served.job(order.name).ended is not None, "the second one has ended")
    assert served.job(order.name) is not first
    for _ in range(2):
        reaches(allocator, order.name, AllocationState.RUNNING)
    assert first.runs
    stop = Path(orders.service.shared_folder) / f"nsml/{order.name}.stop"
    assert not stop.exists(), "which would end the first: both have one name"
    jobs.close()


def test_words_that_a_file_names_are_ends(make: Make, served: Nsml) -> None:
    """A run that never began, such as one whose image is not to be had. Mutation: it waits for
    ever, or a word that nobody named is an end."""
    served.machines.places = 0
    orders = make(endedStates=["GONE"])
    allocator, order = orders.allocator(), orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.WAITING)
    served.job(order.name).word = "GONE"
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert (ended.gone, ended.reason) == (Gone.FAILED, "NSML says 'GONE'")
    allocator.close()


def test_refusals_have_their_kind(orders: Orders, make: Make, served: Nsml) -> None:
    served.over_quota = True
    jobs = NsmlJobs(orders.service, "abc")
    with pytest.raises(OverQuota, match="leaves no room"):
        jobs.create(ORDER)
    jobs.close()
    jobs = NsmlJobs(make(gpuServer=9).service, "abc")
    with pytest.raises(Invalid, match="no server of the type 9"):
        jobs.create(ORDER)
    jobs.close()


def test_all_pages_are_read_however_small_they_are(orders: Orders, served: Nsml) -> None:
    """Mutations: what is beyond the first page is gone; the note of each is asked for each time."""
    served.machines.places, served.largest_page = 0, 4
    served.fill("abc", 10)
    jobs = NsmlJobs(orders.service, "abc")
    assert len({each.name for each in jobs.list()}) == 10
    assert served.count("GET /projects/runs") == 3
    assert served.count(f"GET {RUNS}/") == 10
    jobs.list()
    assert served.count(f"GET {RUNS}/") == 10
    jobs.close()


def test_a_file_that_is_half_written_changes_nothing(
    allocator: HttpJobsAllocator, orders: Orders, served: Nsml
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    path = Path(orders.service.shared_folder) / "nsml" / order.name
    served.machines.stop(served.ids(order.name)[0], "", 0.0)
    wait_until(lambda: served.alive() == [], "it has been killed")
    for text in ("", '{"word": "ended"', "[1]", '{"word": "ended"}'):
        path.write_text(text)
        (seen,) = allocator.look()
        assert seen.state is AllocationState.RUNNING


def test_keys_are_in_no_error(orders: Orders, served: Nsml) -> None:
    jobs = NsmlJobs(orders.service, "abc")
    served.tokens = {"another"}
    with pytest.raises(NotLoggedIn) as refused:
        jobs.list()
    text = f"{refused.value} {refused.value.hint}"
    assert not [secret for secret in (TOKEN, ACCESS, API_KEY) if secret in text]
    jobs.close()
