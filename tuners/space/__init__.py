"""Search spaces in NNI's JSON types: read, check, sample, mutate, perturb, enumerate.

It decides what the ten types mean (choice, nested choice, randint, uniform, quniform, loguniform,
qloguniform, normal, qnormal, lognormal, qlognormal), never which parameters are worth trying.
Values that come out are plain Python ones. ``model.py`` is what to read first.
"""

from __future__ import annotations

from tuners.space.lattice import grid, size
from tuners.space.model import Space, SpaceError
from tuners.space.reading import parse, problems
from tuners.space.sampling import conform, mutate, perturb, sample

__all__ = [
    "Space",
    "SpaceError",
    "conform",
    "grid",
    "mutate",
    "parse",
    "perturb",
    "problems",
    "sample",
    "size",
]
