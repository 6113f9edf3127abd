"""What a backend says about attempts of others is not applied, whoever wrote it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.engine import Engine


@dataclass
class Trial:
    attempt: int
    worker: str | None


@dataclass
class State:
    trials: dict[int, Trial] = field(default_factory=dict)


def engine_with(trial: Trial) -> Engine:
    state: Any = State({7: trial})
    nobody: Any = None
    backends: Any = {"lake": nobody, "local": nobody}
    return Engine(state, nobody, nobody, nobody, backends, nobody, nobody)


@pytest.mark.parametrize(
    "attempt, worker, its_own",
    [
        (1, "lake", True),
        (1, "lake/host-3", True),
        (1, "local", False),
        (2, "local", True),
        (1, None, True),
        (0, None, False),
    ],
    ids=["its own", "its own host's", "another's", "superseded", "nobody's", "not given yet"],
)
def test_words_of_another_worker_s_attempt(attempt: int, worker: str | None, its_own: bool) -> None:
    engine = engine_with(Trial(attempt, worker))
    seven = TrialId(7)
    for word in (
        e.AttemptEnded(seven, 1, EndReason.FINISHED),
        e.AttemptStarted(seven, 1, 99),
        e.MetricReported(seven, 1, 1, "0.5"),
        e.FinalReported(seven, 1, 1, "0.5"),
        e.WeightsPublished(seven, 1, 1, Weights("ab", "files", 1)),
        e.VersionOffered(seven, 1, 1, "omega", 0, "omega/7.1-0", "ab", 1),
    ):
        assert engine._is_its_own(word, "lake") is its_own, word
    assert engine._is_its_own(e.WorkerJoined(WorkerId("lake"), 1), "lake")
