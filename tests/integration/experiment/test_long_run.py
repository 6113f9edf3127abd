"""Many trials hold on to nothing, and a journal that is folded as it grows is resumed as ever.

The long version is ``make soak``: 20,000 trials, and memory as well.
"""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import psutil
import pytest

from dispatcher.core.model import Phase
from dispatcher.head import Head
from dispatcher.store import SqliteJournal, compaction
from dispatcher.store.verify import verify
from tests.integration.experiment.conftest import CODE, Lab
from tests.support.processes import processes_of


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


def _held(folder: Path) -> dict[str, tuple[int, int]]:
    """Threads and descriptors of the head, and of what it started, by what they are."""
    found = {"head": (psutil.Process().num_threads(), psutil.Process().num_fds())}
    for process in processes_of(folder):
        if process.pid != psutil.Process().pid:
            name = next((word for word in process.cmdline() if "." in word[1:]), "?")
            found[f"{name} {process.pid}"] = (process.num_threads(), process.num_fds())
    return found


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal is folded every few hundred rows, not every fifty thousand."""
    monkeypatch.setattr(compaction, "ROWS_BETWEEN", 400)
    monkeypatch.setattr(compaction, "ROWS_A_TRIAL", 0)


def test_six_hundred_trials_hold_on_to_nothing(lab: Lab, often: None) -> None:
    folder = _make(lab, "Keeping", 600)
    head = Head(folder)
    samples: list[dict[str, tuple[int, int]]] = []

    def watch() -> None:
        for mark in (150, 400):
            while head.trials_over < mark:
                time.sleep(0.005)
            samples.append(_held(folder))

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert head.run() is Phase.COMPLETED
    watcher.join(30)
    early, late = samples
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
        stopper.join(30)
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
    while head.trials_over < trials:
        time.sleep(0.005)
    head.request_stop("now", "for the test")
