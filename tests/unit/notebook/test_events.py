"""Events of an experiment for ``async for``: each once, in order, bounded and cancellable."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dispatcher.api import Experiment
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import UserError
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from dispatcher.experiments.view import ExperimentView
from dispatcher.notebook import events as module
from dispatcher.notebook import following
from dispatcher.notebook.following import ExperimentEvent
from dispatcher.store import SqliteJournal
from tests.unit.notebook.test_showing import VALUES
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life


class Run:
    """An experiment that seems to run: a store that the real core writes."""

    def __init__(self, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = make_folder(base)
        config = build_experiment(VALUES, base_folder=self.folder)
        (self.folder / "experiment.json").write_text(to_json(config))
        self._journal = SqliteJournal.open(self.folder / "journal.sqlite")
        self.life = Life(self._journal, trial_retries=0)
        self.life.begin()
        self.led = True
        monkeypatch.setattr(ExperimentView, "running", property(lambda _: self.led))
        monkeypatch.setattr(module, "EVERY_S", 0.001)

    def begin(self, trial: int) -> None:
        self.life.propose(trial, None, json.dumps({"x": trial}))
        self.life.say(e.AttemptStarted(TrialId(trial), 1, 4000 + trial))

    def whole(self, trial: int, value: str) -> None:
        self.life.propose(trial, None, json.dumps({"x": trial}))
        self.life.run(trial, value)
        self.life.deliver(trial)

    def close(self) -> None:
        self.led = False
        self._journal.close()


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(tmp_path / "home", monkeypatch)


def kinds(events: list[ExperimentEvent]) -> list[tuple[str, int | None]]:
    return [(one.kind, one.number) for one in events if one.kind != "metric"]


async def _all(events: AsyncIterator[ExperimentEvent]) -> list[ExperimentEvent]:
    return [one async for one in events]


def test_each_comes_once_and_in_order(run: Run) -> None:
    """Mutations: what a look has seen comes again; the end overtakes the last trials."""

    async def listen() -> list[ExperimentEvent]:
        heard = []
        async for one in Experiment.open(run.folder).events():
            heard.append(one)
            if (one.kind, one.number) == ("trial_start", 0):
                run.whole(1, "0.5")
            elif (one.kind, one.number) == ("new_best", 1):
                run.whole(2, "0.25")
                run.close()
        return heard

    run.begin(0)
    heard = asyncio.run(listen())
    assert kinds(heard) == [
        ("trial_start", 0), ("trial_start", 1), ("trial_end", 1), ("new_best", 1),
        ("trial_start", 2), ("trial_end", 2), ("experiment_end", None),
    ]  # fmt: skip
    assert [one.value for one in heard if one.kind == "trial_end"] == [0.5, 0.25]
    assert [one.value for one in heard if one.kind == "metric"] == [0.1, 0.2] * 2
    assert heard[-1].text


def test_the_past_may_be_left_out(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The best of before stays the one that is to be beaten."""
    looked = threading.Event()

    class Looking(following.EventFollower):
        def page(self) -> following.EventPage:
            page = super().page()
            looked.set()
            return page

    monkeypatch.setattr(module, "EventFollower", Looking)
    run.whole(0, "0.5")

    async def listen() -> list[ExperimentEvent]:
        waiting = asyncio.ensure_future(_all(Experiment.open(run.folder).events(past=False)))
        await asyncio.to_thread(looked.wait)
        run.whole(1, "0.4")
        run.whole(2, "0.7")
        run.close()
        return await waiting

    assert kinds(asyncio.run(listen())) == [
        ("trial_start", 1), ("trial_start", 2), ("trial_end", 1), ("trial_end", 2),
        ("new_best", 2), ("experiment_end", None),
    ]  # fmt: skip


def test_pages_are_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: all that has happened is read at once."""
    monkeypatch.setattr(following, "MOST", 3)
    for trial in range(10):
        run.whole(trial, f"0.{trial}")
    run.close()
    page = following.EventFollower(run.folder).page()
    assert len({one.number for one in page.events}) <= 3
    assert page.more
    events = asyncio.run(_all(Experiment.open(run.folder).events()))
    assert [one.number for one in events if one.kind == "trial_end"] == [*range(10)]


def test_it_can_be_cancelled(run: Run) -> None:
    run.begin(0)

    async def listen() -> None:
        heard = asyncio.Event()

        async def follow() -> None:
            async for _ in Experiment.open(run.folder).events():
                heard.set()

        task = asyncio.ensure_future(follow())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)

    asyncio.run(listen())


def test_before_the_start_it_is_an_error_at_once() -> None:
    """Mutation: at the first event."""
    with pytest.raises(UserError, match="has not been started"):
        Experiment(VALUES).events()
