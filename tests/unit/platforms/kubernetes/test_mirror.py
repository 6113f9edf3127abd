"""A picture of objects follows the server: what changes, what is cut, what is forgotten."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from dispatcher.errors import BackendError
from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.kubernetes.api import mirror as mirror_module
from dispatcher.platforms.kubernetes.api.errors import Busy, NotAllowed, Unreachable
from dispatcher.platforms.kubernetes.api.mirror import Mirror
from dispatcher.platforms.kubernetes.api.server import JOBS, ApiServer, ObjectKind, ObjectList
from tests.support.kubernetes import api_server
from tests.support.processes import wait_until
from tests.unit.platforms.kubernetes.test_server import job
from trial_runtime.retry import growing_pause

Served = api_server.ApiServer
PATIENCE_S = 120.0


@pytest.fixture
def times() -> ServerClock:
    return ServerClock()


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The failures in a row after which pauses were made: while each lasts a reason is given."""
    made: list[int] = []

    def noted(failures: int, first_s: float, longest_s: float) -> float:
        made.append(failures)
        return growing_pause(failures, first_s, longest_s)

    monkeypatch.setattr(mirror_module, "growing_pause", noted)
    return made


@pytest.fixture
def mirror(
    client: ApiServer, times: ServerClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Mirror]:
    monkeypatch.setattr(mirror_module, "FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(mirror_module, "LONGEST_PAUSE_S", 0.05)
    monkeypatch.setattr(mirror_module, "FIRST_HOPELESS_PAUSE_S", 0.05)
    made = Mirror(client, JOBS, "bequeath/service=s", times)
    yield made
    made.close()


def names(mirror: Mirror) -> list[str]:
    return sorted(each["metadata"]["name"] for each in mirror.objects(PATIENCE_S))


def until(condition: Callable[[], object]) -> None:
    wait_until(condition, "it comes to that", PATIENCE_S)


def fails(mirror: Mirror, kind: type[BackendError]) -> bool:
    try:
        mirror.objects(PATIENCE_S)
    except kind:
        return True
    return False


def test_it_follows_what_changes_and_asks_nothing_more(
    mirror: Mirror, client: ApiServer, there: Served
) -> None:
    client.create(JOBS, job("a"))
    assert names(mirror) == ["a"]
    until(lambda: there.count("WATCH") == 1)
    there.asked.clear()
    client.create(JOBS, job("b"))
    until(lambda: names(mirror) == ["a", "b"])
    there.objects.change("jobs", "trials", "b", lambda x: x.update(status={"active": 1}))
    until(lambda: any(each.get("status") for each in mirror.objects(PATIENCE_S)))
    there.objects.remove("jobs", "trials", "a")
    until(lambda: names(mirror) == ["b"])
    assert [each["metadata"]["name"] for each in mirror.gone()] == ["a"]
    assert mirror.gone() == []
    assert [each for each in there.asked if not each.startswith("POST")] == []


def test_a_cut_watch_goes_on_from_where_it_was(
    mirror: Mirror, client: ApiServer, there: Served
) -> None:
    names(mirror)
    until(lambda: there.count("WATCH") == 1)
    lists = there.count("GET")
    there.cut_watches(b'{"type": "ADD')
    client.create(JOBS, job("a"))
    until(lambda: names(mirror) == ["a"])
    assert there.count("GET") == lists
    assert there.count("WATCH") == 2


def test_after_410_all_are_listed_and_what_is_missing_has_gone(
    mirror: Mirror, client: ApiServer, there: Served, pauses: list[int]
) -> None:
    """At once: a version that is forgotten is no failure. Mutation: a pause after each 410."""
    client.create(JOBS, job("a"))
    client.create(JOBS, job("b"))
    assert names(mirror) == ["a", "b"]
    until(lambda: there.count("WATCH") == 1)
    with there.objects.lock:  # nobody is told of it
        there.cut_watches()
        there.objects.remove("jobs", "trials", "a")
        client_names = [event.object["metadata"]["name"] for event in there.objects.history]
        there.objects.forget()
    until(lambda: names(mirror) == ["b"])
    assert [each["metadata"]["name"] for each in mirror.gone()] == ["a"]
    assert client_names[-1] == "a"
    assert pauses == []


def test_an_end_that_says_nothing_has_all_listed_anew(
    mirror: Mirror, client: ApiServer, there: Served
) -> None:
    """Mutation: the same version is asked for again, for ever."""
    names(mirror)
    until(lambda: there.count("WATCH") == 1)
    lists = there.count("GET")
    there.cut_watches(b'{"type": "ERROR", "object": {"reason": "Expired"}}\n')
    client.create(JOBS, job("a"))
    until(lambda: not fails(mirror, BackendError) and names(mirror) == ["a"])
    assert there.count("GET") == lists + 1


def test_what_has_no_name_is_no_object(mirror: Mirror, client: ApiServer, there: Served) -> None:
    """Mutation: each look at the picture fails until all is listed anew."""
    client.create(JOBS, job("a"))
    assert names(mirror) == ["a"]
    until(lambda: there.count("WATCH") == 1)
    version = there.objects.version
    about = f'{{"resourceVersion": "{version}"}}'
    there.cut_watches(f'{{"type": "ADDED", "object": {{"metadata": {about}}}}}\n'.encode())
    client.create(JOBS, job("b"))
    until(lambda: names(mirror) == ["a", "b"])


def test_a_server_that_forgets_what_it_has_just_listed_is_asked_less_and_less(
    mirror: Mirror, client: ApiServer, there: Served, pauses: list[int]
) -> None:
    """Mutation: all is listed anew at once after each 410, and a list counts as a recovery."""
    there.fail("WATCH", 410, times=4)
    client.create(JOBS, job("a"))
    until(lambda: not fails(mirror, BackendError) and there.count("WATCH") == 5)
    assert names(mirror) == ["a"]
    assert pauses == [1, 2, 3, 4]
    assert there.count("GET") == 5


def test_while_the_server_cannot_be_asked_the_reason_is_given(
    mirror: Mirror, client: ApiServer, there: Served
) -> None:
    client.create(JOBS, job("a"))
    names(mirror)
    until(lambda: there.count("WATCH") == 1)
    there.fail("WATCH", 503, times=1000)
    there.cut_watches()
    until(lambda: fails(mirror, Busy))
    client.create(JOBS, job("b"))
    there.faults.clear()
    until(lambda: not fails(mirror, BackendError))
    until(lambda: names(mirror) == ["a", "b"])


def test_a_right_that_is_taken_away_in_the_middle(
    mirror: Mirror, client: ApiServer, there: Served
) -> None:
    names(mirror)
    until(lambda: there.count("WATCH") == 1)
    there.denied.add(("watch", "jobs"))
    there.cut_watches()
    until(lambda: fails(mirror, NotAllowed))
    there.denied.clear()
    until(lambda: not fails(mirror, BackendError))


def test_a_server_that_never_answered(
    mirror: Mirror, there: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    there.fail("GET", None, times=1000)
    with pytest.raises(Unreachable, match="cannot list jobs"):
        mirror.objects(PATIENCE_S)


def test_a_list_that_takes_long_is_waited_for_no_longer_than_wanted(
    mirror: Mirror, client: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, in_time = threading.Event(), client.list

    def late(kind: ObjectKind, labels: str) -> ObjectList:
        let_go.wait(60)
        return in_time(kind, labels)

    monkeypatch.setattr(client, "list", late)
    with pytest.raises(Unreachable, match="no list of jobs within 0 s"):
        mirror.objects(0)
    let_go.set()
    assert names(mirror) == []


def test_what_nobody_has_thought_of_is_a_reason_and_no_silence(
    mirror: Mirror, client: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(client, "list", broken)
    with pytest.raises(Unreachable, match="RuntimeError: a fault of ours"):
        mirror.objects(PATIENCE_S)
    monkeypatch.undo()
    until(lambda: not fails(mirror, BackendError))


def test_its_end_waits_for_nothing(mirror: Mirror, there: Served) -> None:
    """The server would keep the watch for minutes."""
    names(mirror)
    until(lambda: there.count("WATCH") == 1)
    mirror.close()
    until(lambda: not any(x.name == "kubernetes jobs" for x in threading.enumerate()))


def test_the_time_is_the_servers(mirror: Mirror, times: ServerClock, there: Served) -> None:
    there.skew_s = -7200.0
    names(mirror)
    assert abs(times.now() - (time.time() - 7200)) < 30
    assert times.since(there.objects.timestamp()) == pytest.approx(0, abs=30)


@pytest.mark.parametrize("stamp", [None, "", "soon", "2026-11-23T09:00:00", 7])
def test_a_time_stamp_that_is_none(stamp: object) -> None:
    assert ServerClock().since(stamp) is None


def test_a_date_that_is_none_changes_nothing() -> None:
    times = ServerClock(clock=lambda: 5.0, wall=lambda: 100.0)
    times.note("")
    times.note("yesterday")
    assert times.now() == 100.0
    times.note("Mon, 23 Nov 2026 09:00:00 GMT")
    assert times.since("2026-11-23T08:00:00Z") == 3600.0
    assert times.since("2026-11-23T12:00:00+02:00") == 0.0  # is to come: no negative age
