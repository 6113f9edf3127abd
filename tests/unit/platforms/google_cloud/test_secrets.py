"""Jobs that share no folder with this machine: what an agent must know is a secret of Secret
Manager, which the job reads as the account that it runs as."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.http_services.errors import Invalid
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.google_cloud import in_job
from dispatcher.platforms.http_jobs import allocator as looking
from tests.support.processes import wait_until
from tests.support.services.faults import Clock, persists
from tests.support.services.google import AI_PLATFORM, VERTEX, PlayedGoogle, PlayedOnGoogle
from tests.support.services.played import Orders, whole_section
from tests.unit.platforms.google_cloud.on_google import reaches


@pytest.fixture(params=[VERTEX, AI_PLATFORM], ids=["vertex", "aiplatform"])
def played(request: pytest.FixtureRequest) -> PlayedOnGoogle:
    made: PlayedOnGoogle = request.param
    return made


@pytest.fixture
def served(played: PlayedOnGoogle, tmp_path: Path) -> Iterator[PlayedGoogle]:
    with played.serving(tmp_path, 4) as service:
        yield service


@pytest.fixture
def orders(played: PlayedOnGoogle, served: PlayedGoogle, tmp_path: Path) -> Orders:
    section = whole_section(played, served, tmp_path)
    return Orders({k: v for k, v in section.items() if k != "sharedFolder"}, tmp_path)


def test_a_job_reads_its_secret_and_shows_it_to_nobody(
    orders: Orders, served: PlayedGoogle
) -> None:
    """Mutations: it stands in the command; it is an argument of a process; it stays for ever."""
    clock = Clock()
    allocator = orders.allocator(clock)
    order = orders.order()
    program = "import signal, sys; text = open(sys.argv[1]).read(); "
    program += "print('ticket', 's3cret-' 'ticket' in text, flush=True); signal.pause()"
    allocator.submit(replace(order, arguments=("-c", program)))
    assert list(served.secrets) == [order.name]
    reaches(allocator, order.name, AllocationState.RUNNING)
    wait_until(lambda: "ticket True" in allocator.answer(order), "it has read its secret")
    shown = served.shown(order.name)
    process = served.job(order.name).processes[0].pid
    shown += Path(f"/proc/{process}/cmdline").read_text()
    for secret in ("s3cret-ticket", "routing-s3cret", "s3cret-value"):
        assert secret not in shown
        for version in served.secrets[order.name]:
            assert version not in shown
    assert not list(orders.folder.glob("**/*.config"))
    served.machines.stop(served.ids(order.name)[0], "", 5.0)
    reaches(allocator, order.name, AllocationState.ENDED)
    clock.wait(looking.ENDED_S)
    allocator.look()
    assert served.secrets == {}
    allocator.close()


def test_a_cancelled_job_leaves_no_secret(orders: Orders, served: PlayedGoogle) -> None:
    """Neither does one that is cancelled by a sweep, after its head."""
    served.machines.places = 0
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    allocator.cancel([order.name], 0.0)
    assert served.secrets == {}
    allocator.close()


def test_a_job_that_was_never_had_leaves_no_secret(orders: Orders, served: PlayedGoogle) -> None:
    """Its answer was an error, and nobody asks for it again. Mutation: keys for thirty days."""
    path, _ = served.lists()
    allocator = orders.allocator()
    first, second = orders.order(1), orders.order(2)
    served.fail(f"POST {path}", 500)
    with pytest.raises(PassingBackendError):
        allocator.submit(first)
    served.fail(f"POST {path}", 500, done=True)
    with pytest.raises(PassingBackendError):
        allocator.submit(second)
    assert set(served.secrets) == {first.name, second.name}
    allocator.close()
    assert set(served.secrets) == {second.name}, "that job is there"


@pytest.mark.parametrize("what", ["POST /v1/projects/lab-project-7/secrets", "POST "])
def test_answers_that_are_lost_leave_one_job_and_one_secret(
    what: str, orders: Orders, served: PlayedGoogle
) -> None:
    """Mutation: a secret that exists is an error."""
    allocator = orders.allocator()
    order = orders.order()
    served.fail(what, 500, done=True, times=2)
    persists(lambda: allocator.submit(order))
    assert served.alive() == [order.name]
    assert list(served.secrets) == [order.name]
    reaches(allocator, order.name, AllocationState.RUNNING)
    allocator.close()


def test_a_job_that_is_refused_leaves_no_secret(orders: Orders, served: PlayedGoogle) -> None:
    path, _ = served.lists()
    served.fail(f"POST {path}", 400)
    allocator = orders.allocator()
    with pytest.raises(Invalid):
        allocator.submit(orders.order())
    assert served.secrets == {}
    allocator.close()


def test_a_secret_that_is_too_long_is_refused_here(orders: Orders, served: PlayedGoogle) -> None:
    """With one sentence. Mutation: the service's own, about a payload."""
    allocator = orders.allocator()
    order = orders.order()
    long = replace(order, environment={**order.environment, "LONG": "x" * (70 << 10)})
    with pytest.raises(PermanentBackendError, match="a secret has 64 KiB at most"):
        allocator.submit(long)
    assert served.secrets == {}
    assert served.count("POST") == 0
    allocator.close()


def test_a_right_that_comes_late_is_waited_for(
    orders: Orders, served: PlayedGoogle, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And one that never comes ends the job with a sentence, not with an empty script. Mutation:
    a job that has read nothing ends well."""
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    monkeypatch.setenv("GCE_METADATA_HOST", served.address.partition("//")[2])
    jobs: Any = orders.platform.jobs(orders.service, orders.label)
    address = jobs.apis.keep_secret("abc-worker-1", "c2VjcmV0", {})
    served.fail("GET /v1", 403, times=2)
    assert in_job.secret_at(address) == "c2VjcmV0"
    assert pauses == [1, 5]
    served.fail("GET /v1", 403, times=4)
    with pytest.raises(SystemExit, match="cannot be read: HTTP Error 403"):
        in_job.secret_at(address)
    jobs.close()


def test_a_job_that_reads_nothing_does_not_end_well(
    played: PlayedOnGoogle, served: PlayedGoogle, tmp_path: Path
) -> None:
    """Mutation: an empty script is run, and its end is one of a worker that left."""
    section = whole_section(played, served, tmp_path, python="/nowhere/python")
    orders = Orders({k: v for k, v in section.items() if k != "sharedFolder"}, tmp_path)
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is Gone.FAILED
    assert "status of 69" in ended.reason
    assert "/nowhere/python" in ended.reason
    allocator.close()
