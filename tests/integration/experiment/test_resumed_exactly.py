"""A search that was killed in the middle proposes what it would have proposed without.

Each tuner runs once undisturbed and once with SIGKILL for its head, twice, and for its tuner
host; what was proposed under each number must be the same. The serial form of evolution is
used: its answers do not depend on which of two trials happened to be faster.
"""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.store.journal import SqliteJournal
from tests.integration.experiment.conftest import CODE, Lab
from tests.support.checker import check_store
from tests.support.lengths import every
from tests.support.processes import find_process, is_gone, wait_until

TRIALS = 140

#: Trials over at which the head is killed for the first time: all calls are repeated then.
FIRST = (2, 6)

#: A tuner host keeps a state every 50 results of its own life: after this many are over, and once
#: it has, the host is killed, and a few trials later the head again.
SECOND = 75
LATER = 5

#: A state is kept at a moment without a request under way; on a machine that is very busy there
#: may be none, and the calls are repeated once more.
ENOUGH = TRIALS - 30

#: From this trial on they wait until all has been done to the search.
HELD = ENOUGH + 3 * LATER
STATELESS = "evolution without state()"
EVOLUTION = {"population_size": 6, "sample_size": 3, "asynchronous": False}
TUNERS: dict[str, dict[str, Any]] = {
    "random": {"name": "Random", "classArgs": {"seed": 5}},
    "grid": {"name": "GridSearch"},
    "evolution": {"name": "RegularizedEvolution", "classArgs": {"seed": 5, **EVOLUTION}},
    "pbt": {"name": "PBT", "classArgs": {"seed": 5, "population_size": 5, "asynchronous": False}},
    "hyperband": {"name": "Hyperband", "classArgs": {"seed": 5, "max_budget": 9}},
    "morphisms": {
        "name": "NetworkMorphism",
        "classArgs": {"seed": 5, "neighbours": 5, "blocks": [{"width": 4}]},
    },
    STATELESS: {
        "className": "scored:Forgetful",
        "codeDirectory": str(CODE),
        "classArgs": {"seed": 5, **EVOLUTION},
    },
}
SPACE = {
    "x": {"_type": "quniform", "_value": [0, 1, 0.02]},
    "wide": {"_type": "choice", "_value": [1, 2, 4, 8]},
}


def _create(lab: Lab, tuner: str, **keys: Any) -> Path:
    return lab.create(
        tuner=TUNERS[tuner],
        trialFunction="scored:score",
        searchSpace=SPACE,
        maxTrialNumber=TRIALS,
        headGrace=60,
        lookahead=4,
        **keys,
    )


def _proposals(lab: Lab, folder: Path) -> dict[int, Any]:
    return {
        event.trial: json.loads(event.parameters)
        for event in lab.rows(folder)
        if isinstance(event, e.Proposed)
    }


def _has_a_state(folder: Path) -> bool:
    journal = SqliteJournal.open(folder / "journal.sqlite")
    try:
        return journal.latest_snapshot() is not None
    finally:
        journal.close()


def _kill(process: psutil.Process) -> None:
    process.send_signal(signal.SIGKILL)
    wait_until(lambda: is_gone(process), "the killed process is gone")


@pytest.mark.parametrize("tuner", every(5, TUNERS))
def test_a_killed_search_proposes_what_it_would_have(lab: Lab, tuner: str) -> None:
    undisturbed = _create(lab, tuner)
    phase, notices = lab.run(undisturbed)
    assert phase is Phase.COMPLETED, notices

    disturbed = _create(lab, tuner, trialEnvironment=lab.hold(HELD))
    ended = lambda: lab.snapshot(disturbed)["ended"]  # noqa: E731
    first = random.Random(tuner).randint(*FIRST)
    head = lab.start(disturbed)
    wait_until(lambda: ended() >= first, f"{first} trials over")
    _kill(psutil.Process(head))
    head = lab.start(disturbed)
    wait_until(lambda: ended() >= SECOND, f"{SECOND} trials over")
    wait_until(
        lambda: tuner == STATELESS or _has_a_state(disturbed) or ended() >= ENOUGH,
        "a state is kept, or the end is near",
    )
    _kill(find_process(disturbed, "dispatcher.tuner_host"))
    third = min(ended() + LATER, HELD - 2 * LATER)
    wait_until(lambda: ended() >= third, f"{third} trials over")
    _kill(psutil.Process(head))
    lab.let_go()
    phase, notices = lab.run(disturbed)
    assert phase is Phase.COMPLETED, notices
    assert check_store(disturbed / "journal.sqlite") == []
    assert tuner != STATELESS or not _has_a_state(disturbed)
    assert _proposals(lab, disturbed) == _proposals(lab, undisturbed)
