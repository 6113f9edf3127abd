"""Was there what an experiment says that it failed of? Rows of misfortunes, counted again.

Whatever counts "in a row" has to begin anew where the row was broken. The core's counters are not
looked at here: a reason for an end is held against the journal. Where the journal does not tell
what broke a row (a proposal may have been refused), the benefit of the doubt is the core's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dispatcher.core import events as e
from dispatcher.core.settings import HOST_RESTARTS_IN_A_ROW, WORKER_LOSSES_IN_A_ROW

_WORKER = re.compile(r"(?:^|; )worker (\S+) cannot be kept alive: ")
_RAISED = re.compile(r"^the tuner raised (\d+) times in a row; ")
_ABANDONED = re.compile(r"^the last (\d+) requests failed with their parents")
_ERRORS = (e.RequestEnd.ERROR, e.RequestEnd.NONSENSE)


def unwarranted(events: Sequence[e.Event], reason: str) -> list[str]:
    """What the journal says against ``phase_reason``, one sentence each; empty if nothing."""
    found = [_of_worker(events, name) for name in _WORKER.findall(reason)]
    if told := _RAISED.match(reason):
        found.append(_of_tuner(events, int(told[1])))
    if told := _ABANDONED.match(reason):
        found.append(_of_requests(events, int(told[1])))
    lost = [event for event in events if isinstance(event, e.TunerHostLost)]
    if reason and lost and reason == lost[-1].reason:
        found.append(_of_host(events))
    return [text for text in found if text]


def _of_worker(events: Sequence[e.Event], name: str) -> str:
    losses = 0
    for event in events:
        match event:
            case e.HeadStarted():
                losses = 0
            case e.WorkerJoined(worker=worker) if worker == name:
                losses = 0
            case e.WorkerLost(worker=worker, kept_out=False, planned=False) if worker == name:
                losses += WORKER_LOSSES_IN_A_ROW if event.hopeless else 1
    missing = losses < WORKER_LOSSES_IN_A_ROW
    return f"worker {name} is given up after {losses} losses in a row" if missing else ""


def _of_tuner(events: Sequence[e.Event], number: int) -> str:
    errors = 0
    ran = _that_ran(events)
    for event in events:
        match event:
            case e.HeadStarted():
                errors = 0
            case e.Proposed(trial=trial):
                errors = 0 if trial in ran else errors + 1  # it may have been refused
            case e.RequestFailed(kind=kind) if kind in _ERRORS:
                errors += 1
            case e.ResultDelivered(error=text) | e.EndDelivered(error=text) if text:
                errors += 1
    return f"the tuner raised {errors} times in a row, not {number}" if errors < number else ""


def _of_requests(events: Sequence[e.Event], number: int) -> str:
    failed = 0
    ran = _that_ran(events)
    for event in events:
        match event:
            case e.HeadStarted() | e.EndDelivered():
                failed = 0
            case e.Proposed(trial=trial) if trial in ran:
                failed = 0
            case e.RequestFailed(kind=e.RequestEnd.ABANDONED):
                failed += 1
    return f"{failed} requests failed in a row, not {number}" if failed < number else ""


def _of_host(events: Sequence[e.Event]) -> str:
    restarts = 0
    for event in events:
        match event:
            case e.HeadStarted() | e.EndDelivered():
                restarts = 0
            case e.TunerHostLost(fatal=True):
                restarts += HOST_RESTARTS_IN_A_ROW + 1
            case e.TunerHostLost():
                restarts += 1
    few = restarts <= HOST_RESTARTS_IN_A_ROW
    return f"the tuner host is given up after {restarts} losses in a row" if few else ""


def _that_ran(events: Sequence[e.Event]) -> set[int]:
    """Trials of which an attempt was seen: their proposals were taken."""
    return {event.trial for event in events if isinstance(event, e.AttemptStarted)}
