"""The live picture and the plain lines, from snapshots as the head makes them."""

from __future__ import annotations

import fcntl
import io
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from dispatcher import queries
from dispatcher.cli.status import ends_of_workers
from dispatcher.control.client import HeadClient
from dispatcher.control.server import snapshot as desk_snapshot
from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.core import new_state
from dispatcher.core.settings import Settings
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.experiments.standing import left_by
from dispatcher.live_view.bar import bar
from dispatcher.live_view.picture import picture
from dispatcher.live_view.scene import Observer, Scene, ways_of_workers
from dispatcher.live_view.watching import PlainProgress, Watching, summary
from tests.unit.queries.evolution import evolve, make_folder


def _snapshot(**changes: Any) -> HeadSnapshot:
    """What the desk really answers, with some of it replaced."""
    snapshot = desk_snapshot(new_state(Settings(slots=2, lookahead=8, max_trials=40)), 0.0)
    counts = snapshot["counts"] | changes.pop("counts", {})
    return HeadSnapshot.of({**snapshot, "counts": counts, **changes})


def _running(trial: int, **changes: Any) -> dict[str, Any]:
    row = {"trial": trial, "attempt": 1, "state": "running", "worker": "local", "parent": None}
    return {**row, "for_s": 3.0, "last": None, **changes}


def _drawn(scene: Scene, width: int = 80, height: int = 24) -> list[str]:
    out = io.StringIO()
    console = Console(file=out, width=width, height=height, markup=False, highlight=False)
    console.print(picture(scene, width, height))
    return out.getvalue().rstrip("\n").split("\n")


def test_the_picture_says_who_runs_and_who_waits_for_whom() -> None:
    snapshot = _snapshot(
        running=[_running(7, parent=5, last='{"default": 0.5, "loss": 2}')],
        waiting=[
            {"trial": 9, "mode": "all", "for": [7, 8], "for_s": 12.0},
            {"trial": 10, "mode": "foreign", "for": [], "for_s": 1.0},
        ],
        open=[{"trial": 11, "for_s": 0.5}],
        counts={"running": 1, "blocked": 2, "open": 1},
        ended=7,
    )
    text = "\n".join(_drawn(Scene("digits", snapshot, None, 30.0, 66.0)))
    assert "7/40 trials   30/min   1m 06s left" in text
    assert "0.5  loss=2" in text
    assert "waits for 7, 8" in text
    assert "in a wait of its own" in text
    assert "in the tuner" in text
    assert "slots 1/2 busy   in the tuner 1   waiting for parents 2" in text


def test_the_end_of_a_place_is_shown_and_of_several_the_first() -> None:
    def worker(name: str, ends_in_s: float | None) -> dict[str, Any]:
        return {"name": name, "slots": 1, "busy": 0, "alive": True, "ends_in_s": ends_in_s}

    workers = [worker("local", None), worker("q-1", 7200.0), worker("q-2", 60.0)]
    snapshot = _snapshot(workers=workers)
    text = "\n".join(_drawn(Scene("digits", snapshot, None, None, None)))
    assert "worker q-2 has its place for 1m 00s more" in text
    assert "q-1" not in text
    assert len(ends_of_workers(snapshot)) == 2
    older = {"name": "of an older head", "slots": 1, "busy": 0, "alive": True}
    assert ends_of_workers(_snapshot(workers=[older])) == []


def test_ways_of_agents_are_counted() -> None:
    """Mutations: those of an older head, or of a machine without a choice, are one more way."""
    worker = {"slots": 1, "busy": 0, "alive": True}
    ways = ["folder", "direct", None, "direct"]
    workers = [{**worker, "name": f"q-{n}", "way": way} for n, way in enumerate(ways)]
    assert ways_of_workers(_snapshot(workers=workers)) == "2 direct, 1 folder"
    text = "\n".join(_drawn(Scene("digits", _snapshot(workers=workers), None, None, None)))
    assert "ways  q-1, q-3: direct   q-0: folder" in text, "top names the workers of each"
    assert ways_of_workers(_snapshot(workers=[{**worker, "name": "of an older head"}])) == ""


def test_ways_of_many_agents_fit_into_a_line() -> None:
    """Mutation: a hundred workers fill the screen."""
    worker = {"slots": 1, "busy": 0, "alive": True, "way": "direct"}
    workers = [{**worker, "name": f"queue-{n}"} for n in range(100)]
    text = _drawn(Scene("digits", _snapshot(workers=workers), None, None, None))
    [line] = [line for line in text if line.startswith("ways")]
    assert line.endswith("queue-2 and 97 more: direct")


def test_those_who_stand_at_one_line_share_a_row() -> None:
    place = "`self.over[parent].wait()` at tuner.py:39"
    row = {"mode": "foreign", "for": [], "for_s": 12.0, "place": place}
    snapshot = _snapshot(
        waiting=[{**row, "trial": n, "for_s": 12.0 + n} for n in range(40)]
        + [{**row, "trial": 99, "place": "`other.wait()` at tuner.py:50"}],
        counts={"blocked": 71},
    )
    lines = _drawn(Scene("digits", snapshot, None, None, None), 120)
    assert [line for line in lines if f"40 requests   stand in {place}" in line]
    assert [line for line in lines if "99   stands in `other.wait()` at tuner.py:50" in line]
    assert lines[-3].strip() == "… and 30 more"


@pytest.mark.parametrize("width,height", [(80, 24), (120, 40), (60, 15), (200, 50)])
def test_the_picture_never_outgrows_the_terminal(width: int, height: int) -> None:
    snapshot = _snapshot(
        running=[_running(n, last="0.123456789" * 20) for n in range(200)],
        counts={"running": 5000},
        why={"cause": "BLOCKED", "text": "word " * 100},
    )
    lines = _drawn(Scene("digits", snapshot, None, None, None), width, height)
    assert len(lines) <= height
    assert all(len(line) <= width for line in lines)
    assert any("more" in line for line in lines)


def test_what_is_not_as_it_should_be_is_shown_and_the_picture_stays_within_the_terminal() -> None:
    said = "worker b has been silent for 31 s, nothing new goes there"
    many = [said, *(f"worker {n} is not there; it is being started" for n in range(30))]
    snapshot = _snapshot(troubles=many, running=[_running(n) for n in range(50)])
    lines = _drawn(Scene("digits", snapshot, None, None, None))
    assert any(said in line for line in lines)
    assert len(lines) <= 24
    snapshot = _snapshot(troubles=[said], why={"cause": "WORKER_SUSPECT", "text": f"2: {said}"})
    lines = _drawn(Scene("digits", snapshot, None, None, None))
    assert sum(said in line for line in lines) == 1  # once is enough


def test_what_a_trial_reports_cannot_draw() -> None:
    snapshot = _snapshot(running=[_running(1, last='"\\u001b[2J[red]"')], counts={"running": 1})
    text = "\n".join(_drawn(Scene("x\x1b[2J", snapshot, None, None, None)))
    assert "\x1b" not in text
    assert "[red]" in text


def test_no_head_no_picture() -> None:
    assert _drawn(Scene("digits", None, None, None, None, "not running")) == [
        "digits  not running …"
    ]


def test_plain_lines_come_now_and_then_and_at_news() -> None:
    progress = PlainProgress(every_s=10.0)

    def look(at: float, ended: int, phase: str = "running") -> list[str]:
        snapshot = _snapshot(ended=ended, phase=phase)
        return progress.lines(Scene("digits", snapshot, None, None, None), at)

    assert len(look(100.0, 0)) == 1
    assert look(101.0, 1) == []
    assert len(look(110.0, 5)) == 1
    assert len(look(112.0, 5, "draining")) == 1
    assert progress.lines(Scene("digits", None, None, None, None), 200.0) == []


def test_a_line_says_how_far_it_is() -> None:
    snapshot = _snapshot(ended=3, counts={"running": 2, "blocked": 1}, phase="draining")
    scene = Scene("digits", snapshot, None, 12.0, 185.0)
    assert summary(scene) == "3/40 trials  2 running  1 waiting  12/min  3m 05s left  draining"


def test_what_is_left_is_the_nearer_limit() -> None:
    snapshot = _snapshot(ended=10, max_trials=40, max_duration_s=None, active_s=5.0)
    assert left_by(snapshot, 1.0) == pytest.approx(30.0)
    assert left_by(snapshot, None) is None
    bounded = _snapshot(ended=10, max_trials=40, max_duration_s=20.0, active_s=5.0)
    assert left_by(bounded, 1.0) == pytest.approx(15.0)
    assert left_by(_snapshot(ended=10, max_trials=None), 1.0) is None
    standing = _snapshot(ended=10, counts={"blocked": 8})
    assert left_by(standing, 1.0) is None, "it would grow for ever"
    assert left_by(_snapshot(ended=10, counts={"blocked": 8, "running": 1}), 1.0) is not None


@pytest.fixture
def evolved_now(tmp_path: Path) -> Path:
    """An experiment of thirty trials, the last of which has just ended, that a head leads."""
    folder = make_folder(tmp_path)
    evolve(folder, 30)
    return folder


def test_those_who_look_at_one_moment_see_one_experiment(
    evolved_now: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a view with a rate, a best trial or a time left of its own."""
    folder = evolved_now
    with queries.ExperimentReader.open(folder) as reader:
        now = float((reader.row("SELECT max(ended_at) FROM trials") or [0])[0])
    head = _snapshot(ended=30, max_trials=40, max_duration_s=None)
    monkeypatch.setattr("dispatcher.experiments.why.asked", lambda _: head)
    monkeypatch.setattr(HeadClient, "snapshot", lambda _: head)
    monkeypatch.setattr(time, "time", lambda: now)
    (folder / "run.json").write_text(
        json.dumps({"pid": 1, "address": "ipc://x", "token": "t", "epoch": 1, "started_at": now})
    )
    with (folder / "head.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        standing = ExperimentHandle(folder).standing()
        observer = Observer(folder, "digits", clock=lambda: now)
        try:
            scene = observer.look()
        finally:
            observer.close()
    summary = standing.experiment
    assert standing.head is scene.snapshot is head
    assert summary.rate is not None
    assert summary.best == scene.best
    assert scene.per_minute == pytest.approx(60 * summary.rate)
    assert scene.left_s == summary.time_left_s == pytest.approx(10 / summary.rate)


class _Cell(io.StringIO):
    """A stream below a cell, as ipykernel has it."""


def test_a_cell_has_a_bar_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Mutation: a notebook gets a line more every ten seconds; a shorter text leaves an end."""
    _Cell.__module__ = "ipykernel.iostream"
    out = _Cell()
    monkeypatch.setattr("sys.stderr", out)
    scenes = iter(
        [
            Scene("digits", _snapshot(ended=10, counts={"waiting": 5}), None, 12.0, 185.0),
            Scene("digits", _snapshot(ended=40), None, None, None),
        ]
    )

    class Looks(Observer):
        def look(self) -> Scene:
            return next(scenes)

    watching = Watching(Looks(tmp_path, "digits"), lambda scene: scene.snapshot.ended == 40,
                        every_s=0.0)  # fmt: skip
    watching.tell("a message")
    watching.show()
    message, first, last = out.getvalue().replace("\n\r", "\n").replace("\r", "\n").splitlines()
    assert message == "a message"
    assert first.startswith(" 25% |██████                  | 10/40 trials  0 running")
    assert last.startswith("100% |████████████████████████| 40/40 trials")
    assert len(last) == len(first)


def test_a_bar_needs_a_number_of_trials() -> None:
    assert bar(3, None) == ""
    assert bar(1, 40) == f"  2% |{'▋':<24}| "
    assert bar(99, 40).startswith("100% |█")


def test_the_last_line_is_what_the_store_knows(
    monkeypatch: pytest.MonkeyPatch, evolved_now: Path
) -> None:
    """Mutation: the head is gone before it has shown the last trials, and the bar stands still."""
    _Cell.__module__ = "ipykernel.iostream"
    out = _Cell()
    monkeypatch.setattr("sys.stderr", out)
    watching = Watching(Observer(evolved_now, "digits"))
    watching.close()
    watching.show()
    assert out.getvalue().startswith("\r30 trials  best 0.")
    assert out.getvalue().endswith("  created\n")
