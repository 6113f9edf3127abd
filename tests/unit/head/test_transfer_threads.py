"""A few threads fetch from many workers, and nobody there holds up all others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from dispatcher.attempt_files import transfer_threads
from dispatcher.attempt_files.transfer_threads import (
    MOST,
    MOST_DOUBTFUL,
    MOST_HANGING,
    TransferThreads,
    Turn,
)
from tests.support.processes import wait_until


def ours() -> int:
    """How many threads there are."""
    return sum(thread.name.startswith("transfer ") for thread in threading.enumerate())


@pytest.fixture
def threads() -> Iterator[TransferThreads]:
    made = TransferThreads("transfer")
    yield made
    made.close(0.0)
    made.join(60.0)
    assert ours() == 0


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end, so that all threads do end."""
    made = threading.Event()
    yield made
    made.set()


def hangs(gate: threading.Event) -> Callable[[Turn], None]:
    return lambda turn: assert_opens(gate)


def assert_opens(gate: threading.Event) -> None:
    assert gate.wait(120)


def test_there_are_no_more_than_some_threads_and_none_without_work(
    threads: TransferThreads, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a thread for each piece of work; threads that are idle stay."""
    monkeypatch.setattr(transfer_threads, "IDLE_S", 0.05)
    assert ours() == 0
    most, done, lock = 0, 0, threading.Lock()

    def work(turn: Turn) -> None:
        nonlocal most, done
        assert gate.wait(120)
        with lock:
            most, done = max(most, ours()), done + 1

    for _ in range(500):
        threads.put(work)
    assert ours() == MOST
    gate.set()
    assert threads.wait_until_idle(120)
    assert (done, most) == (500, MOST)
    wait_until(lambda: ours() == 0, "those that are idle end")
    threads.put(work)
    assert threads.wait_until_idle(120)
    assert done == 501


def test_what_has_failed_before_leaves_room_for_others(
    threads: TransferThreads, gate: threading.Event
) -> None:
    """Mutation: what is doubtful may take all threads."""
    for _ in range(3 * MOST):
        threads.put(hangs(gate), doubtful=True)
    wait_until(lambda: ours() == MOST_DOUBTFUL, "some are tried")
    done = threading.Event()
    threads.put(lambda turn: done.set())
    assert done.wait(60)
    assert ours() <= MOST
    gate.set()
    assert threads.wait_until_idle(120), "all doubtful ones have their turn"


def test_threads_that_hang_are_replaced_up_to_a_bound(
    threads: TransferThreads, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: one that hangs counts; there is no bound."""
    for _ in range(10 * MOST):
        threads.put(hangs(gate))
    done = threading.Event()
    threads.put(lambda turn: done.set())
    assert not done.wait(0.1)
    assert ours() == MOST
    monkeypatch.setattr(transfer_threads, "HANGS_S", 0.0)

    def there_are(count: int) -> bool:
        threads.relieve()
        return ours() == count

    wait_until(lambda: there_are(MOST + MOST_HANGING), "they are replaced")
    assert there_are(MOST + MOST_HANGING), "and not one more"
    monkeypatch.undo()
    gate.set()
    assert done.wait(60)
    wait_until(lambda: ours() <= MOST, "there are no more than before")


def test_a_turn_is_over_when_others_wait(
    threads: TransferThreads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a turn has no end; one ends though nobody waits."""
    monkeypatch.setattr(transfer_threads, "TURN_S", 0.0)
    monkeypatch.setattr(transfer_threads, "MOST", 1)
    alone, done = threading.Event(), threading.Event()

    def work(turn: Turn) -> None:
        assert turn.goes_on(), "nobody waits"
        alone.set()
        while turn.goes_on():
            pass

    threads.put(work)
    assert alone.wait(60)
    threads.put(lambda turn: done.set())
    assert done.wait(60)


def test_an_error_harms_no_other(threads: TransferThreads) -> None:
    def fails(turn: Turn) -> None:
        raise ValueError("made up")

    for _ in range(2 * MOST):
        threads.put(fails)
    done = threading.Event()
    threads.put(lambda turn: done.set())
    assert done.wait(60)


def test_a_close_lets_what_waits_have_its_turn_and_ends_all(threads: TransferThreads) -> None:
    """Mutation: threads outlive the close."""
    asked: list[bool] = []
    for _ in range(50):
        threads.put(lambda turn: asked.append(turn.goes_on()), doubtful=True)
    threads.close(time.monotonic() + 3600)
    threads.join(60)
    assert (asked, ours()) == ([True] * 50, 0)
    threads.close(time.monotonic())
    threads.put(lambda turn: asked.append(turn.goes_on()))
    threads.join(60)
    assert (asked[50:], ours()) == ([False], 0)
