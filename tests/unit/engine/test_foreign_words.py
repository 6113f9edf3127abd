"""What a backend of somebody else's says about attempts of others is not applied."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.engine import _is_its_own


@dataclass
class Trial:
    attempt: int
    worker: str | None


@dataclass
class State:
    trials: dict[int, Trial] = field(default_factory=dict)


@pytest.mark.parametrize(
    "attempt, worker, its_own",
    [(1, "lake", True), (1, "local", False), (2, "local", True), (1, None, True)],
    ids=["its own", "another's", "superseded", "nobody's"],
)
def test_an_end_of_another_worker_s_attempt(
    attempt: int, worker: str | None, its_own: bool
) -> None:
    state: Any = State({7: Trial(attempt, worker)})
    end = e.AttemptEnded(TrialId(7), 1, EndReason.FINISHED)
    assert _is_its_own(state, end, "lake") is its_own
    assert _is_its_own(state, e.WorkerJoined(WorkerId("lake"), 1), "lake")
