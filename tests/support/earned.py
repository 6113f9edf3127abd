"""Was the end that a search is said to have earned earned? Counted again, by the journal alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dispatcher.core import events as e
from dispatcher.core.settings import Settings

_TARGET = re.compile(r"^the target (\S+) is reached by trial (\d+): (\S+)")
_NO_PROGRESS = re.compile(r"^no progress in (\d+) trials: the best is (\S+), of trial (\d+)")
_NONE_KEPT = re.compile(r"^no progress in (\d+) trials: no result keeps the bounds")
_TIME = "all trials together have taken "


def is_earned(reason: str) -> bool:
    """Whether this is the reason of an end that a search earns."""
    by_results = (_TARGET, _NO_PROGRESS, _NONE_KEPT)
    return any(one.match(reason) for one in by_results) or reason.startswith(_TIME)


def unearned(events: Sequence[e.Event], reason: str) -> list[str]:
    """What the journal says against ``phase_reason``, one sentence each; empty if nothing."""
    found = []
    settings = _settings(events)
    if told := _TARGET.match(reason):
        target, trial, value = float(told[1]), int(told[2]), float(told[3])
        if (value < target) if settings.maximize else (value > target):
            found.append(f"{value:g} does not reach the target {target:g}")
        found.extend(_reported(events, settings, trial, value))
    if told := _NO_PROGRESS.match(reason):
        many, value, trial = int(told[1]), float(told[2]), int(told[3])
        found.extend(_reported(events, settings, trial, value))
        ended = {event.trial for event in events if isinstance(event, e.FinalReported)}
        if settings.substitute_result is not None or settings.assess:
            return found  # trials that report nothing in the end have results, too
        if len(ended) <= many:
            found.append(f"{len(ended)} trials have results: no {many} followed another")
    if told := _NONE_KEPT.match(reason):
        if not (settings.at_most or settings.at_least):
            found.append("there are no bounds that a result could break")
        ended = {event.trial for event in events if isinstance(event, e.FinalReported)}
        if not settings.assess and settings.substitute_result is None and len(ended) < int(told[1]):
            found.append(f"{len(ended)} trials have results, not {told[1]}")
    return found


def _settings(events: Sequence[e.Event]) -> Settings:
    given = [getattr(event, "settings", None) for event in events]
    return [one for one in given if one is not None][-1]


def _reported(events: Sequence[e.Event], settings: Settings, trial: int, value: float) -> list[str]:
    """A result that nobody has reported is nobody's."""
    if settings.substitute_result is not None and float(settings.substitute_result) == value:
        return []
    for event in events:
        if isinstance(event, e.FinalReported | e.LastMetricKept) and event.trial == trial:
            try:
                if f"{float(event.value):.6g}" == f"{value:.6g}":
                    return []
            except ValueError:
                continue
    return [f"trial {trial} has reported no {value:g}"]
