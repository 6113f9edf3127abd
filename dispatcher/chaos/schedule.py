"""The schedule of acts: an endless sequence that depends on the seed alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from enum import StrEnum
from typing import Final, NamedTuple


class Kind(StrEnum):
    """Kinds of processes that an act can strike."""

    TRIAL = "trial"  # also warm workers, the fork server, and what they started
    TUNER_HOST = "tuner host"
    AGENT = "agent"
    HEAD = "head"


class Deed(StrEnum):
    """Kinds of acts. A stop is a delay so long that other processes notice it."""

    KILL = "kill"
    STOP = "stop"
    DELAY = "delay"


class Act(NamedTuple):
    """One strike, ``wait_s`` seconds after the one before; ``for_s`` is 0 for a kill.

    ``draw`` in [0, 1) chooses among several of the kind.
    """

    wait_s: float
    kind: Kind
    deed: Deed
    for_s: float
    draw: float


#: Weights of the kinds: trials die most often in reality, too, and a head takes a second or more
#: to come back.
_KINDS: Final = {Kind.TRIAL: 10, Kind.TUNER_HOST: 4, Kind.AGENT: 3, Kind.HEAD: 3}
_DEEDS: Final = {Deed.KILL: 5, Deed.DELAY: 4, Deed.STOP: 1}

#: Shortest and longest, in seconds.
_LENGTHS: Final = {Deed.KILL: (0.0, 0.0), Deed.DELAY: (0.05, 0.4), Deed.STOP: (1.0, 3.0)}

#: No wait is longer than this many times the mean.
_LONGEST: Final = 4.0


def schedule(seed: int, every_s: float) -> Iterator[Act]:
    """The acts of a seed, for ever; their waits are exponential with the mean ``every_s``."""
    rng = random.Random(f"chaos {seed}")  # noqa: S311 - to be repeated, not to be secret
    kinds, deeds = list(_KINDS), list(_DEEDS)
    while True:
        wait_s = min(rng.expovariate(1.0 / every_s), _LONGEST * every_s)
        (kind,) = rng.choices(kinds, weights=list(_KINDS.values()))
        (deed,) = rng.choices(deeds, weights=list(_DEEDS.values()))
        yield Act(wait_s, kind, deed, rng.uniform(*_LENGTHS[deed]), rng.random())
