"""From a world in which something went wrong to a small one in which it still does.

First all kinds of accidents but one are taken out, then one after the other, then the experiment
is made smaller. Dice fall differently in another world, so some neighbours of the seed are tried
as well.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

from tests.sim.judging import Judgement, judge
from tests.support.odds import Case, Odds

#: Seeds tried for each smaller world.
NEIGHBOURS = 8

#: What a world without accidents looks like.
_CALM: dict[str, Any] = {
    field.name: type(field.default)(0) for field in fields(Odds) if field.name != "keeps_state"
} | {"latency_s": 0.005, "tuner_slowness": 1.0}


def shrink(judgement: Judgement, *, seconds: float = 30.0) -> Judgement:
    """The shortest story found in that time that goes wrong in the same way."""
    give_up = time.monotonic() + seconds
    best, kind, changed = judgement, _kind(judgement), True
    while changed:
        changed = False
        for smaller in _smaller(best.case):
            if time.monotonic() > give_up:
                return best
            found = _still_wrong(smaller, kind)
            if found is not None:
                best, changed = found, True
                break
    return best


def _kind(judgement: Judgement) -> str:
    """What went wrong, without numbers."""
    return re.sub(r"[\d.]+", "#", judgement.found[0])[:60]


def _still_wrong(case: Case, kind: str) -> Judgement | None:
    for offset in range(NEIGHBOURS):
        tried = judge(replace(case, seed=case.seed + offset))
        if tried.found and _kind(tried) == kind:
            return tried
    return None


def _smaller(case: Case) -> Iterator[Case]:
    """Smaller worlds, the much smaller ones first."""
    odds = case.odds
    loud = [name for name, calm in _CALM.items() if getattr(odds, name) != calm]
    settings = case.settings
    for limit in (1, 2, 3, 5, 10, 20):
        if limit < (settings.max_trials or 0):
            yield replace(case, settings=replace(settings, max_trials=limit))
    if len(loud) > 1:
        yield replace(case, odds=replace(odds, **_CALM))
        for name in loud:
            rest = {other: calm for other, calm in _CALM.items() if other != name}
            yield replace(case, odds=replace(odds, **rest))
    for name in loud:
        yield replace(case, odds=replace(odds, **{name: _CALM[name]}))
    for name in loud:
        if isinstance(getattr(odds, name), int) and getattr(odds, name) > 1:
            yield replace(case, odds=replace(odds, **{name: 1}))
    if len(case.workers) > 1:
        yield replace(case, workers={"local": case.workers["local"]})
    if settings.slots > 1:
        one = replace(settings, slots=1)
        yield replace(case, settings=one, workers=dict.fromkeys(case.workers, 1))
