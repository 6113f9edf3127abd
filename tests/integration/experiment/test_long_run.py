"""Many trials hold on to nothing, and a journal that is folded as it grows is resumed as ever.

The long version is ``make soak``: 20,000 trials, and memory as well.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import psutil
import pytest

from dispatcher.core.model import Phase
from dispatcher.head.head import Head
from dispatcher.store import SqliteJournal, compaction
from dispatcher.store.verify import verify
from tests.integration.experiment.conftest import CODE, Lab
from tests.support.processes import processes_of, wait_until, words_of


def _make(lab: Lab, tuner: str, trials: int) -> Path:
    section = {
        "className": f"adding:{tuner}",
        "codeDirectory": str(CODE),
        "classArgs": {"path": str(lab.base / "seen.json")},
    }
    return lab.create(section, trialFunction="adding:double", maxTrialNumber=trials, debug=False)


def _seen(lab: Lab) -> list[int]:
    found: list[int] = json.loads((lab.base / "seen.json").read_text())
    return sorted(found)


Held = dict[str, tuple[int, int]]


def _held(folder: Path) -> Held:
    """Threads and descriptors of the head, and of what it started, by what they are."""
    found = {"head": (psutil.Process().num_threads(), psutil.Process().num_fds())}
    for process in processes_of(folder):
        if process.pid != psutil.Process().pid:
            name = next((word for word in words_of(process) if "." in word[1:]), "?")
            with contextlib.suppress(psutil.Error):  # one that was just passing
                found[f"{name} {process.pid}"] = (process.num_threads(), process.num_fds())
    return found


def _looks(folder: Path) -> list[Held]:
    """A few: what is held for a trial comes and goes."""
    return [_held(folder) for _ in range(4)]


def _of_all(looks: list[Held], choose: Callable[[Iterable[int]], int]) -> Held:
    """Of each process that was there at every look: the least of each, or the most."""
    lasting = set.intersection(*(set(look) for look in looks))
    return {
        name: (choose(look[name][0] for look in looks), choose(look[name][1] for look in looks))
        for name in lasting
    }


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is folded every few hundred rows, not every fifty thousand."""
    monkeypatch.setattr(compaction, "ROWS_BETWEEN", 400)
    monkeypatch.setattr(compaction, "ROWS_A_TRIAL", 0)


def test_six_hundred_trials_hold_on_to_nothing(lab: Lab, often: None) -> None:
    folder = _make(lab, "Keeping", 600)
    head = Head(folder)
    samples: list[list[Held]] = []

    def watch() -> None:
        for mark in (150, 400):
            wait_until(lambda: head.trials_over >= mark, f"{mark} trials are over", 600.0)  # noqa: B023
            samples.append(_looks(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert head.run() is Phase.COMPLETED
    watcher.join(120)
    early, late = _of_all(samples[0], max), _of_all(samples[1], min)
    assert early.keys() == late.keys(), "the same processes"
    for name, (threads, descriptors) in late.items():
        assert threads <= early[name][0] + 1, name
        assert descriptors <= early[name][1] + 3, name
    journal = SqliteJournal.open(folder / "journal.sqlite")
    folding = compaction.Compaction(journal)
    assert folding.base_number() > 400, "the running head has made bases"
    while folding.tidy():  # what it had no time for
        pass
    (count,) = journal.query("SELECT count(*) FROM journal")
    assert count[0] <= journal.last - folding.base_number() + 2
    journal.close()
    assert _seen(lab) == list(range(600))
    assert verify(folder / "journal.sqlite").ok


@pytest.mark.parametrize("tuner", ["Keeping", "Adding"])
def test_a_folded_experiment_is_resumed_exactly(lab: Lab, often: None, tuner: str) -> None:
    """Three heads; a tuner that keeps a state, and one whose calls are repeated."""
    folder = _make(lab, tuner, 1_000)
    store = folder / "journal.sqlite"
    for upto in (200, 400):
        head = Head(folder)
        stopper = threading.Thread(target=_stop_at, args=(head, upto))
        stopper.start()
        assert head.run() is Phase.STOPPED
        stopper.join(120)
        assert verify(store).ok
    config = folder / "experiment.json"
    config.write_text(config.read_text().replace("1000", "500"))
    assert Head(folder).run() is Phase.COMPLETED
    assert _seen(lab) == list(range(500))
    journal = SqliteJournal.open(store)
    assert compaction.Compaction(journal).base() is not None
    journal.close()
    assert verify(store).ok


def _stop_at(head: Head, trials: int) -> None:
    wait_until(lambda: head.trials_over >= trials, f"{trials} trials are over", 600.0)
    head.request_stop("now", "for the test")
