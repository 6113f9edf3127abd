"""From a world in which something went wrong to the smallest one in which it still does.

One kind of accident after another is taken out, the experiment is made smaller, and what is
left is told. Dice fall differently in a smaller world, so that some neighbours of the seed are
tried as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace

from tests.sim.judging import Judgement, judge
from tests.support.odds import Case, Odds

#: Seeds tried for each smaller world.
NEIGHBOURS = 12


def shrink(judgement: Judgement, *, rounds: int = 4) -> Judgement:
    """The shortest story found that goes wrong in the same way."""
    best, kind = judgement, _kind(judgement)
    for _ in range(rounds):
        before = best
        for smaller in _smaller(best.case):
            found = _still_wrong(smaller, kind, best)
            best = found or best
        if best is before:
            break
    return best


def _kind(judgement: Judgement) -> str:
    """What went wrong, without numbers."""
    return re.sub(r"\d+", "#", judgement.found[0])[:60]


def _still_wrong(case: Case, kind: str, best: Judgement) -> Judgement | None:
    shortest = None
    for offset in range(NEIGHBOURS):
        tried = judge(replace(case, seed=case.seed + offset))
        if tried.found and _kind(tried) == kind:
            bound = (shortest or best).story
            if len(tried.story) <= len(bound):
                shortest = tried
    return shortest


def _smaller(case: Case) -> Iterator[Case]:
    for field in fields(Odds):
        value = getattr(case.odds, field.name)
        if field.name == "latency_s":
            if value > 0.005:
                yield replace(case, odds=replace(case.odds, latency_s=0.005))
        elif field.name == "tuner_slowness":
            if value != 1.0:
                yield replace(case, odds=replace(case.odds, tuner_slowness=1.0))
        elif value:
            yield replace(case, odds=replace(case.odds, **{field.name: type(value)(0)}))
            if isinstance(value, int) and value > 1:
                yield replace(case, odds=replace(case.odds, **{field.name: 1}))
    if len(case.workers) > 1:
        yield replace(case, workers={"local": case.workers["local"]})
    if case.settings.slots > 1:
        one = replace(case.settings, slots=1)
        yield replace(case, settings=one, workers=dict.fromkeys(case.workers, 1))
    for limit in (1, 2, 3, 5, 10, 20):
        if limit < (case.settings.max_trials or 0):
            yield replace(case, settings=replace(case.settings, max_trials=limit))
    if case.settings.trial_retries:
        yield replace(case, settings=replace(case.settings, trial_retries=0))
