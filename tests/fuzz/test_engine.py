"""Peers that have their secret and say anything: engine, core, desk, drivers and store live on."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core.actions import StartAttempt, WorkerAction
from tests.fuzz.budget import seeds
from tests.fuzz.engine_room import EVIL, TAKEN_OVER, EngineRoom
from tests.support.local_backend import LocalBackend

FRAMES = 300


def test_no_frame_ends_the_engine_or_loses_what_a_restart_needs(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    faults: dict[str, int] = {}
    ended = whole = 0
    for seed in seeds(usual=12):
        folder = tmp_path / str(seed)
        folder.mkdir()
        room = EngineRoom(folder, seed, FRAMES)
        try:
            room.run()  # raises what ended the engine
            assert room.reopened() == [], f"seed {seed}: a restart would lose something"
            whole += room.left <= 0  # some tuners end their experiment, as they may
            ended += room.state.results_seen
            for who, many in room.faults.counts.items():
                faults[who] = faults.get(who, 0) + many
            unreadable = room.backend.statistics().refused.get("unreadable message", 0)
            faults["word"] = faults.get("word", 0) + unreadable
        finally:
            room.close()
        lines = [record.getMessage() for record in caplog.records]
        caplog.clear()
        assert all(len(line) < 1000 and line.isprintable() for line in lines), "a log was written"
        assert len(lines) <= 2 * FRAMES.bit_length(), "the log grows with what is refused"
    # What nobody may say is counted, and the experiment went on under it.
    assert faults.keys() >= {"local", "tuner", "word"}, faults
    assert ended > 0
    assert whole >= 6


def test_a_machine_that_is_taken_over_decides_its_own_trials_and_no_others(tmp_path: Path) -> None:
    """Mutation: ``Engine._is_its_own`` believes all."""
    refused = own = others = 0
    for seed in seeds(usual=8):
        folder = tmp_path / str(seed)
        folder.mkdir()
        room = EngineRoom(folder, seed, FRAMES, beside=True)
        given: dict[str, set[tuple[int, int]]] = {}
        for name, backend in room.backends.items():
            given[name] = watch_starts(backend)
        try:
            room.run()
            assert room.reopened() == [], f"seed {seed}: a restart would lose something"
            query = room.journal.query
            believed = query("SELECT trial, attempt, value FROM metrics WHERE counted")
            for trial, attempt, value in believed:
                if value == EVIL:
                    assert (trial, attempt) in given[TAKEN_OVER], f"seed {seed}"
                    own += 1
                else:
                    assert (trial, attempt) in given["local"], f"seed {seed}"
                    others += 1
            for trial in room.state.trials.values():
                if trial.weights is not None and trial.weights.digest == EVIL:
                    assert (trial.id, trial.attempt) in given[TAKEN_OVER], f"seed {seed}"
            refused += room.faults.counts.get(TAKEN_OVER, 0)
        finally:
            room.close()
    assert own > 0 and others > 0 and refused > 0  # noqa: PT018 - or nothing was tried


def watch_starts(backend: LocalBackend) -> set[tuple[int, int]]:
    """The attempts that an agent is given from now on."""
    given: set[tuple[int, int]] = set()
    perform = backend.perform

    def noting(action: WorkerAction) -> None:
        if isinstance(action, StartAttempt):
            given.add((action.trial, action.attempt))
        perform(action)

    backend.perform = noting  # type: ignore[method-assign]
    return given
