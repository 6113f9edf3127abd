"""Metrics of before a restart, replayed to an advisor between the calls that are repeated."""

from __future__ import annotations

import threading
from pathlib import Path

from dispatcher.ports import AssessorInput
from dispatcher.tuner_host.shown import MetricReplay, shown_in

PATIENCE_S = 120.0


def test_each_trial_was_told_its_metrics_before_its_end_in_the_order_of_all() -> None:
    heard: list[object] = []
    shown = [
        AssessorInput(0, "0", 1, 0),
        AssessorInput(1, "1", 1, 0),
        AssessorInput(1, None),
        AssessorInput(0, "2", 1, 1),
        AssessorInput(0, None),
        AssessorInput(2, "3", 2, 0),
    ]
    replay = MetricReplay(iter(shown), lambda one: heard.append((one.trial, one.value)))
    replay.until_end_of(1)
    assert heard == [(0, "0"), (1, "1")]
    replay.until_end_of(1)  # its end follows its result
    replay.ended(1)
    assert heard == [(0, "0"), (1, "1")]
    replay.until_end_of(0)
    replay.ended(0)
    assert heard[2:] == [(0, "2")]
    replay.rest()
    assert heard[3:] == [(2, "3")]


def test_ends_of_one_instant_may_stand_in_another_order() -> None:
    heard: list[object] = []
    shown = [
        AssessorInput(0, None),
        AssessorInput(1, None),
        AssessorInput(2, "3", 1, 0),
        AssessorInput(2, None),
    ]
    replay = MetricReplay(iter(shown), lambda one: heard.append(one.value))
    replay.until_end_of(1)
    replay.ended(1)
    replay.until_end_of(0)
    replay.ended(0)
    assert heard == [], "what comes later waits for its turn"
    replay.until_end_of(2)
    assert heard == ["3"]


def test_the_file_is_waited_for(tmp_path: Path) -> None:
    path, found = tmp_path / "shown", list[AssessorInput]()
    reader = threading.Thread(target=lambda: found.extend(shown_in(path)), daemon=True)
    reader.start()
    draft = tmp_path / "draft"
    draft.write_bytes(b'[3,"0.5",1,2,false]\n[3,null,0,0,true]\n')
    draft.replace(path)
    reader.join(PATIENCE_S)
    assert found == [AssessorInput(3, "0.5", 1, 2), AssessorInput(3, None, success=True)]
