"""What it costs that a store counts its changes, and what those who follow it have to read.

The same commits, made once by the core, go into stores with the count and into stores without it,
in turns: no head, no peers, no waiting for the disk. Without it, numbers are not taken, rows are
replaced without being compared, and there is no index over the numbers.
"""

from __future__ import annotations

import copy
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from unittest import mock

from benchmarks.rows import Row, row
from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason, Trial, Weights
from dispatcher.core.settings import Settings
from dispatcher.ports import JournalEntry
from dispatcher.queries import ExperimentReader, changes, cursor_now, list_trials
from dispatcher.store import SqliteJournal, statements
from dispatcher.store import journal as journal_module

US = 1e6
ROUNDS = 5

#: Trials whose events come together, as they do in a head that runs four empty ones at once.
TOGETHER = 4

Batch = tuple[list[JournalEntry], list[Trial]]

#: Times what the same commits cost without the count, and bytes. Chosen as benchmarks/README.md
#: explains for the floors.
COMMITS, METRICS, SIZE = 1.3, 1.4, 1.4


def run(*, quick: bool = False) -> list[Row]:
    """All rows; ``quick`` has fewer trials."""
    share = 5 if quick else 1
    return [
        *_price("the commits of a trial", COMMITS, batches_of(4_000 // share, metrics=0)),
        *_price(
            "… of one with 100 metrics", METRICS, batches_of(500 // share, metrics=100), size=True
        ),
        *_following(batches_of(10_000 // share, metrics=0)),
    ]


def _price(what: str, target: float, batches: list[Batch], *, size: bool = False) -> list[Row]:
    trials = _trials(batches)
    counted, plain = [], []
    for _ in range(ROUNDS):
        plain.append(_written(batches, counting=False))
        counted.append(_written(batches, counting=True))
    ours, bare = (min(cpu for cpu, _ in each) / trials * US for each in (counted, plain))
    rows = [
        row(
            f"{what}, with a count of changes against without",
            f"≤ {target:g} ×",
            f"{ours / bare:.2f} × ({ours:.0f} against {bare:.0f} µs of CPU)",
            ours <= target * bare,
            f"the least of {ROUNDS} each, {trials:,} trials; the store alone, no waiting for disks",
        )
    ]
    if size:
        big, small = counted[0][1], plain[0][1]
        rows.append(
            row(
                "… the store's size",
                f"≤ {SIZE:g} ×",
                f"{big / small:.2f} × ({big / trials:.0f} against {small / trials:.0f} bytes)",
                big <= SIZE * small,
                "for each trial of 100 metrics",
            )
        )
    return rows


def _following(batches: list[Batch]) -> list[Row]:
    """A reader that looks four times a second, beside one that reads all trials each time."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with closing(SqliteJournal.open(folder / "journal.sqlite", epoch=1)) as journal:
            write_batches(journal, batches[:-60])
            with ExperimentReader.open(folder) as reader:
                cursor = cursor_now(reader)
                write_batches(journal, batches[-60:])
                changed = len(changes(reader, cursor).trials)
                some = _least(lambda: changes(reader, cursor))
                nothing = _least(lambda: changes(reader, cursor_now(reader)))
                everything = _least(lambda: list_trials(reader))
                many = len(list_trials(reader))
    return [
        row(
            f"what changed of {many:,} trials, against reading them",
            "≤ 0.1 ×",
            f"{some / everything:.3f} × ({some * 1e3:.1f} against {everything * 1e3:.0f} ms)",
            some <= 0.1 * everything,
            f"{changed} had changed, each with its attempts; {nothing * US:.0f} µs if none has",
        )
    ]


def _least(do: Callable[[], object]) -> float:
    def once() -> float:
        begun = time.process_time()
        do()
        return time.process_time() - begun

    return min(once() for _ in range(ROUNDS))


def _written(batches: list[Batch], *, counting: bool) -> tuple[float, int]:
    """Seconds of CPU for all commits, and the bytes of the store."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        path = Path(name) / "journal.sqlite"
        if not counting:
            stack.enter_context(_without_count())
        with closing(SqliteJournal.open(path, epoch=1)) as journal:
            if not counting:
                for index in ("trials_by_touch", "metrics_by_touch"):
                    journal.raw.execute(f"DROP INDEX {index}")
            begun = time.process_time()
            write_batches(journal, batches)
            cpu = time.process_time() - begun
            journal.query("PRAGMA wal_checkpoint(TRUNCATE)")
            return cpu, path.stat().st_size


def write_batches(journal: SqliteJournal, batches: list[Batch]) -> None:
    for entries, touched in batches:
        journal.append(entries, touched, durable=False)


@contextmanager
def _without_count() -> Iterator[None]:
    with (
        mock.patch.object(journal_module, "next_touch", return_value=0),
        mock.patch.object(statements, "UPSERT_IF_OTHER", statements.UPSERT_TRIAL),
    ):
        yield


def _trials(batches: list[Batch]) -> int:
    return sum(isinstance(entry.event, e.Proposed) for entries, _ in batches for entry in entries)


def batches_of(trials: int, *, metrics: int) -> list[Batch]:
    """The commits of a head that runs so many trials, each a child of one before."""
    settings = Settings(slots=TOGETHER, lookahead=TOGETHER)
    state = core.new_state(settings)
    batches: list[Batch] = []
    now = 1_000.0

    def commit(*events: e.Event) -> None:
        nonlocal now
        entries = []
        for event in events:
            now += 0.001
            entries.append(JournalEntry(now, event, core.apply(state, event, now).counted))
        batches.append((entries, [copy.copy(state.trials[one]) for one in state.dirty]))
        state.dirty.clear()

    commit(e.ExperimentCreated(settings), e.HeadStarted(1))
    commit(e.WorkerJoined(WorkerId("local"), TOGETHER), e.TunerHostReady())
    for _ in range(0, trials, TOGETHER):
        ids = list(state.open)[:TOGETHER]
        commit(*(
            e.Proposed(t, json.dumps({"width": 32 + t % 7, "lr": 0.001 * t, "act": "relu"}),
                       f"t/{t}", f"t/{t - TOGETHER}" if t >= TOGETHER else None)
            for t in ids
        ))  # fmt: skip
        commit(*(e.AttemptStarted(t, 1, 4_000) for t in ids))
        for seq in range(1, metrics + 1):
            commit(*(e.MetricReported(t, 1, seq, repr(seq / 7)) for t in ids))
        last = metrics + 1
        digest = "d" * 64
        commit(*(e.FinalReported(t, 1, last, "0.5") for t in ids))
        commit(*(
            event
            for t in ids
            for event in (
                e.WeightsPublished(t, 1, last + 1, Weights(digest, "bequeath", 1_234)),
                e.AttemptEnded(t, 1, EndReason.FINISHED, exit_code=0, cpu_s=0.1, wall_s=0.1),
            )
        ))  # fmt: skip
        commit(*(e.ResultDelivered(t) for t in ids))
        commit(*(e.EndDelivered(t) for t in ids))
    return batches
