"""What an older core has decided is decided again, from the first row and from a base it left.

``journals-VERSION.jsonl.gz`` holds simulated lives as they were before workers offered devices:
of each row the fact, what was decided then, and at one or two of them the whole state as it was
kept. The first three are kept while the order of the queue is not that of its numbers.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dispatcher import codec
from dispatcher.core import State, apply, new_state
from dispatcher.core import events as e
from dispatcher.state_codec import decode_state

RECORDED = Path(__file__).parent / "journals-0.1.1.jsonl.gz"


def lives() -> Iterable[dict[str, Any]]:
    with gzip.open(RECORDED, "rt", encoding="ascii") as file:
        return [json.loads(line) for line in file]


def decided(state: State, row: dict[str, Any]) -> list[Any]:
    """As it was written down; fields that came since may say what they like, and what people are
    told may be told otherwise."""
    event = codec.decode(row["kind"], base64.b64decode(row["event"]))
    actions = [[type(x).__name__, asdict(x)] for x in apply(state, event, row["at"]).actions]
    found = without_reports(json.loads(json.dumps(actions)))
    for now, then in zip(found, without_reports(row["actions"]), strict=False):
        if now[0] == then[0]:
            now[1] = {name: value for name, value in now[1].items() if name in then[1]}
    return found


def without_reports(actions: list[Any]) -> list[Any]:
    """What is done; of the end of an experiment the phase, without the sentence on it."""
    return [
        [
            kind,
            {name: value for name, value in said.items() if (kind, name) != ("Finish", "reason")},
        ]
        for kind, said in actions
        if not kind.startswith("Report")
    ]


@pytest.mark.parametrize("life", lives(), ids=lambda life: str(life["seed"]))
def test_what_an_older_core_decided_is_decided_again(life: dict[str, Any]) -> None:
    rows = life["rows"]
    created = codec.decode(rows[0]["kind"], base64.b64decode(rows[0]["event"]))
    assert isinstance(created, e.ExperimentCreated)
    begins: dict[int, State] = {0: new_state(created.settings)}
    for number, row in enumerate(rows, 1):
        if "base" in row:
            begins[number] = decode_state(map(base64.b64decode, row["base"]))
    assert len(begins) > 1
    for first, state in begins.items():
        for number, row in enumerate(rows[first:], first + 1):
            then = without_reports(row["actions"])
            assert decided(state, row) == then, f"row {number}, begun behind {first}"
