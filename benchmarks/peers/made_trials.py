"""The same made-up search for whoever shows it: trials that inherit, with curves.

Standard library alone, since peers import it in environments of their own. Drawn by seed, so that
ours and a peer's storage hold the same trials with the same values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

OPERATIONS = ["conv3", "conv5", "sep3", "sep5", "pool", "skip"]
OPTIMIZERS = ["adam", "sgd", "lion"]
WIDTHS = [16, 32, 64, 128]
BLOCKS = 4

#: Trials begin and end so many seconds apart; four are made at once.
TOGETHER, TRIAL_S = 4, 20.0

#: When the first one began, in seconds since the epoch.
BEGAN = 1_790_000_000.0


class MadeTrial(NamedTuple):
    """One trial that has ended well. Times are seconds since the epoch."""

    number: int
    parent: int | None
    parameters: dict[str, Any]
    curve: list[float]
    value: float
    began: float
    ended: float


def made_trials(trials: int, metrics: int, seed: int = 1) -> Iterator[MadeTrial]:
    """Yield so many trials of so many intermediate values each: an evolution by tournaments."""
    draw = random.Random(seed)
    alive: list[MadeTrial] = []
    batch: list[MadeTrial] = []
    for number in range(trials):
        parent = None
        genes = _drawn(draw)
        base = draw.uniform(0.5, 0.6)
        if len(alive) >= 8 and draw.random() > 0.03:
            parent = max(draw.sample(alive, 4), key=lambda one: one.value)
            genes = dict(parent.parameters)
            _mutate(draw, genes)
            base = parent.value
        value = base + (1 - base) * draw.gauss(0.0, 0.02)
        speed = draw.uniform(2, 8) / max(1, metrics)
        curve = [value * (1 - 0.5 * math.exp(-speed * (step + 1))) for step in range(metrics)]
        began = BEGAN + number // TOGETHER * TRIAL_S + draw.uniform(0, 1)
        ended = began + TRIAL_S - draw.uniform(1.1, 3)
        one = MadeTrial(
            number, parent.number if parent else None, genes, curve, value, began, ended
        )
        yield one
        batch.append(one)
        if len(batch) == TOGETHER:  # parents have ended before children begin
            alive = [*alive, *batch][-200:]
            batch = []


def _drawn(draw: random.Random) -> dict[str, Any]:
    return {
        "lr": 10 ** draw.uniform(-4, -1),
        "dropout": draw.uniform(0, 0.5),
        "width": draw.choice(WIDTHS),
        "depth": draw.randint(2, 9),
        "optimizer": draw.choice(OPTIMIZERS),
        **{f"op{block}": draw.choice(OPERATIONS) for block in range(BLOCKS)},
    }


def _mutate(draw: random.Random, genes: dict[str, Any]) -> None:
    name = draw.choice(sorted(genes))
    if name == "lr":
        genes["lr"] = min(0.1, max(1e-4, genes["lr"] * 10 ** draw.uniform(-0.4, 0.4)))
    else:
        genes[name] = _drawn(draw)[name]
