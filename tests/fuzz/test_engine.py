"""Peers that have their secret and say anything: engine, core, desk, drivers and store live on."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.budget import seeds
from tests.fuzz.engine_room import EngineRoom

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
            unreadable = room.backend.statistics().refused.get("unreadable word", 0)
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
