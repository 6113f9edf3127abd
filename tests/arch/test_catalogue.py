"""Each kind of event has one row with its properties, one effect, and no list beside them."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args, get_type_hints

import pytest

from dispatcher.core import ENDS_OF_ATTEMPTS
from dispatcher.core import events as e
from dispatcher.core.arrows import ARROWS
from dispatcher.core.machine import EFFECTS
from dispatcher.core.model import TrialState
from dispatcher.core.transitions import (
    attempt,
    disk,
    request,
    store,
    tuner_host,
    user,
    weights,
    worker,
)
from dispatcher.store import trial_rows

FAMILIES = (attempt, disk, request, store, tuner_host, user, weights, worker)


def names(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def test_every_event_has_one_row() -> None:
    assert set(get_args(e.Event)) == e.CATALOGUE.keys()


def test_every_event_with_a_row_in_the_journal_has_one_effect() -> None:
    listed = [kind for family in FAMILIES for kind in family.EFFECTS]
    assert len(listed) == len(set(listed))
    assert set(listed) == EFFECTS.keys()
    assert EFFECTS.keys() == {kind for kind, row in e.CATALOGUE.items() if row.journalled}


@pytest.mark.parametrize("kind", EFFECTS, ids=lambda kind: kind.__name__)
def test_an_effect_takes_its_own_kind(kind: type) -> None:
    """The table says ``Any``, which no type checker follows."""
    effect: Any = EFFECTS[kind]
    for cell in effect.__closure__ or ():  # of a quiet one
        effect = cell.cell_contents
    hints = get_type_hints(effect)
    ((_, taken),) = [(name, hint) for name, hint in hints.items() if name.strip("_") == "event"]
    assert taken is kind


@pytest.mark.parametrize("kind", e.CATALOGUE, ids=lambda kind: kind.__name__)
def test_a_row_fits_its_event(kind: type) -> None:
    row = e.CATALOGUE[kind]
    assert ("trial" in names(kind)) == bool(row.legal)
    assert row.by
    assert not row.legal.keys() & row.late
    if row.late or row.after_kill or row.of_host:
        assert row.legal
    assert (kind in e.OF_ATTEMPTS) == ({"trial", "attempt"} <= names(kind))
    assert row.journalled or row.durable, "nothing to lose"


def test_whatever_a_worker_or_its_agent_reports_is_never_a_fault_of_ours() -> None:
    for kind in e.reported_by(e.Origin.WORKER):
        row = e.CATALOGUE[kind]
        assert not row.legal or {*row.legal, *row.late} == set(TrialState), kind


def test_tables_for_people_are_filled_from_events_that_a_replay_finds() -> None:
    for kind in trial_rows.NOTES:
        assert e.CATALOGUE[kind].journalled, kind


def test_ends_of_attempts_are_those_events_that_may_end_one() -> None:
    """Mutation: an event that delivers a trial that ran, without the metric it is judged by."""
    end = (TrialState.RUNNING, TrialState.DELIVERING)
    ending = {kind for kind in e.CATALOGUE if end in ARROWS[kind]}
    assert ending == ENDS_OF_ATTEMPTS
