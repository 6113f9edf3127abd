"""Search spaces: read, check, sample, mutate, perturb, enumerate.

It decides what the types mean (NNI's ten; integers with steps and logarithms; lists of blocks),
never which parameters are worth trying. A parameter is NNI's JSON, a short form of a file or what a
function of ``parameters.py`` returns; values that come out are plain Python ones. ``model.py`` is
what to read first.
"""

from __future__ import annotations

from tuners.space.lattice import grid, size
from tuners.space.model import Space, SpaceError
from tuners.space.reading import parse, problems
from tuners.space.sampling import conform, fitting, mutate, perturb, sample
from tuners.space.writing import as_json

__all__ = [
    "Space",
    "SpaceError",
    "as_json",
    "conform",
    "fitting",
    "grid",
    "mutate",
    "parse",
    "perturb",
    "problems",
    "sample",
    "size",
]
