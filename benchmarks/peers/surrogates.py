"""Problems that need no training, the same for our tuners and for those of others.

Each knows its search space (in NNI's JSON), and the worst and the best value that it has: the
*range* that differences are measured by. Larger is better. Imported by peers' own Pythons too, so
the standard library is all it knows.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Config = Mapping[str, Any]
Space = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class BlackBox:
    """A configuration has a value, at once; with several objectives the first is ``value[0]``."""

    space: Space
    value: Callable[[Config], Any]
    low: float
    high: float
    objectives: int = 1


@dataclass(frozen=True)
class Curves:
    """A configuration has a value after each epoch; what is seen of it is noisy."""

    space: Space
    value: Callable[[Config, int], float]
    low: float
    high: float
    noise: float

    def seen(self, config: Config, epoch: int, dice: random.Random) -> float:
        """What a training reports."""
        return self.value(config, epoch) + dice.gauss(0.0, self.noise)


@dataclass(frozen=True)
class Population:
    """A network in training: its state moves on, by hyperparameters that may change."""

    space: Space
    start: tuple[float, ...]
    train: Callable[[tuple[float, ...], Config], tuple[float, ...]]
    value: Callable[[tuple[float, ...]], float]
    low: float
    high: float
    noise: float = 0.0

    def seen(self, state: tuple[float, ...], dice: random.Random) -> float:
        """What a generation reports."""
        return self.value(state) + (dice.gauss(0.0, self.noise) if self.noise else 0.0)


@dataclass
class Best:
    """The best of what was seen, and what it is in truth: that is what its user gets."""

    seen: float = -math.inf
    true: float = -math.inf

    def take(self, seen: float, true: float) -> None:
        """Takes one in."""
        if seen > self.seen:
            self.seen, self.true = seen, true


@dataclass
class Front:
    """Points of two objectives, from 0 up, and the area that they dominate."""

    points: list[tuple[float, float]] = field(default_factory=list)

    def area(self) -> float:
        """The hypervolume above (0, 0)."""
        whole, upper = 0.0, 0.0
        for first, second in sorted(self.points, reverse=True):
            if second > upper:
                whole += max(0.0, first) * (second - upper)
                upper = second
        return whole


# ---- black boxes -------------------------------------------------------------------------------

_ACTIVATION = {"relu": 0.0, "gelu": 0.05, "tanh": 0.4, "sigmoid": 0.9}
_SHIFT = {"sgd": 1.0, "adam": 0.0, "rmsprop": 0.3}


def _mixed(config: Config) -> float:
    """Of every kind a parameter; the best rate depends on the optimiser, the width on the depth."""
    rate = math.log10(config["lr"]) + 2.5 - _SHIFT[config["optimiser"]]
    width = (math.log2(config["width"]) - 8 + 0.25 * config["depth"]) / 1.5
    depth = (config["depth"] - 7) / 5
    dropout = (config["dropout"] - 0.2) / 0.3
    bowl = rate**2 + width**2 + depth**2 + dropout**2 + 0.15 * _SHIFT[config["optimiser"]]
    return math.exp(-0.5 * bowl - _ACTIVATION[config["activation"]])


MIXED = BlackBox(
    {
        "lr": {"_type": "loguniform", "_value": [1e-5, 1.0]},
        "optimiser": {"_type": "choice", "_value": list(_SHIFT)},
        "width": {"_type": "randint", "_value": [8, 513]},
        "depth": {"_type": "randint", "_value": [1, 13]},
        "dropout": {"_type": "uniform", "_value": [0.0, 0.6]},
        "activation": {"_type": "choice", "_value": list(_ACTIVATION)},
    },
    _mixed,
    0.0,
    1.0,
)

_GRID = {
    "lr": [1e-5, 1e-4, 1e-3, 3e-3, 1e-2, 1e-1],
    "width": [16, 64, 128, 256, 512],
    "depth": [1, 4, 7, 12],
    "activation": list(_ACTIVATION),
}


def _on_grid(config: Config) -> float:
    return _mixed({**config, "optimiser": "adam", "dropout": 0.2})


_ON_GRID = [
    _on_grid(dict(zip(_GRID, point)))  # noqa: B905 - Pythons of peers, too
    for point in itertools.product(*_GRID.values())
]

#: The same for those who go through a grid: 480 points.
GRID = BlackBox(
    {name: {"_type": "choice", "_value": values} for name, values in _GRID.items()},
    _on_grid,
    min(_ON_GRID),
    max(_ON_GRID),
)

_HARTMANN_A = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
_HARTMANN_P = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)
_HARTMANN_C = (1.0, 1.2, 3.0, 3.2)


def _hartmann(config: Config) -> float:
    point = [config[f"x{n}"] for n in range(6)]
    return sum(
        c * math.exp(-sum(a * (x - p) ** 2 for a, x, p in zip(row, point, place)))  # noqa: B905
        for c, row, place in zip(_HARTMANN_C, _HARTMANN_A, _HARTMANN_P)  # noqa: B905
    )


#: Hartmann's function of six numbers: six local optima, the best 3.32237.
HARTMANN = BlackBox(
    {f"x{n}": {"_type": "uniform", "_value": [0.0, 1.0]} for n in range(6)},
    _hartmann,
    0.0,
    3.32237,
)

_NODES, _OPERATIONS = 20, ("conv3", "conv5", "pool", "skip")


def _chain_table() -> tuple[list[list[list[float]]], float, float]:
    """What two operations in a row are worth, and the worst and best of all 4 ** 20 chains."""
    dice = random.Random("a chain of operations")
    table = [[[dice.random() for _ in _OPERATIONS] for _ in _OPERATIONS] for _ in range(_NODES - 1)]
    bounds = []
    for extreme in (min, max):
        reached = [0.0] * len(_OPERATIONS)
        for pair in table:
            reached = [
                extreme(reached[one] + pair[one][other] for one in range(len(_OPERATIONS)))
                for other in range(len(_OPERATIONS))
            ]
        bounds.append(extreme(reached))
    return table, bounds[0], bounds[1]


_TABLE, _WORST, _BEST = _chain_table()


def _chain(config: Config) -> float:
    places = [_OPERATIONS.index(config[f"node{n:02}"]) for n in range(_NODES)]
    pairs = zip(_TABLE, places, places[1:])  # noqa: B905
    return (sum(pair[one][other] for pair, one, other in pairs) - _WORST) / (_BEST - _WORST)


#: Architectures as a table: twenty operations, worth what neighbours are worth to one another.
CHAIN = BlackBox(
    {f"node{n:02}": {"_type": "choice", "_value": list(_OPERATIONS)} for n in range(_NODES)},
    _chain,
    0.0,
    1.0,
)


def _two(config: Config) -> tuple[float, float]:
    """ZDT1 (Zitzler, Deb and Thiele 2000) with four numbers, turned round: 0 is the worst."""
    first = config["x0"]
    away = 1 + 3 * sum(config[f"x{n}"] for n in range(1, 4))
    return 1 - first, max(0.0, 10 - away * (1 - math.sqrt(first / away))) / 10


TWO = BlackBox(
    {f"x{n}": {"_type": "uniform", "_value": [0.0, 1.0]} for n in range(4)},
    _two,
    0.0,
    29 / 30,  # what the front dominates: the integral of (9 + sqrt(x0)) / 10
    objectives=2,
)

# ---- learning curves ---------------------------------------------------------------------------


def _curve(config: Config, epoch: int) -> float:
    """Curves that cross: a high rate is quick and ends lower, so early ranks deceive."""
    rate = math.log10(config["lr"])
    decay = math.log10(config["decay"])
    fit = math.exp(-0.3 * (rate + 2.2) ** 2 - 0.15 * (decay + 4) ** 2)
    fit *= 1 - 0.3 * ((config["width"] - 300) / 300) ** 2
    fit *= {"cosine": 1.0, "step": 0.9, "constant": 0.7}[config["schedule"]]
    slowness = min(30.0, max(0.7, 10 ** (-0.6 * (rate + 1))))
    return 0.1 + 0.85 * fit * (1 - math.exp(-((epoch / slowness) ** 0.8)))


CURVES = Curves(
    {
        "lr": {"_type": "loguniform", "_value": [1e-4, 1.0]},
        "decay": {"_type": "loguniform", "_value": [1e-6, 1e-2]},
        "width": {"_type": "randint", "_value": [16, 513]},
        "schedule": {"_type": "choice", "_value": ["constant", "step", "cosine"]},
    },
    _curve,
    0.1,
    0.95,
    noise=0.01,
)

# ---- populations -------------------------------------------------------------------------------


def _toy_train(state: tuple[float, ...], config: Config) -> tuple[float, ...]:
    """Four steps of gradient ascent on the surrogate, whose h is the hyperparameter."""
    weights: Sequence[float] = state
    for _ in range(4):
        weights = [
            one * (1 - 2 * 0.01 * min(1.0, config[f"h{n}"])) for n, one in enumerate(weights)
        ]
    return tuple(weights)


#: Jaderberg et al. (2017), section 3.3 and figure 2: Q = 1.2 - |theta|^2, seen through h.
TOY = Population(
    {f"h{n}": {"_type": "loguniform", "_value": [0.01, 1.0]} for n in range(2)},
    (0.9, 0.9),
    _toy_train,
    lambda state: 1.2 - sum(one * one for one in state),
    1.2 - 2 * 0.9**2,
    1.2,
)


def _decay_train(state: tuple[float, ...], config: Config) -> tuple[float, ...]:
    """Progress whose best rate falls by three powers of ten on the way, and undone far above it."""
    progress = state[0]
    off = math.log10(config["lr"]) - (-0.5 - 3 * progress)
    momentum = 1 - ((config["momentum"] - 0.9) / 0.9) ** 2
    gain = 0.05 * momentum * math.exp(-2 * off * off)
    loss = 0.03 * min(1.0, max(0.0, off - 0.5))
    return (min(1.0, max(0.0, progress + gain - loss)),)


DECAY = Population(
    {
        "lr": {"_type": "loguniform", "_value": [1e-4, 1.0]},
        "momentum": {"_type": "uniform", "_value": [0.0, 0.99]},
    },
    (0.0,),
    _decay_train,
    lambda state: state[0],
    0.0,
    1.0,
    noise=0.005,
)

PROBLEMS: dict[str, BlackBox | Curves | Population] = {
    "mixed": MIXED,
    "grid": GRID,
    "hartmann6": HARTMANN,
    "chain": CHAIN,
    "two": TWO,
    "curves": CURVES,
    "toy": TOY,
    "decay": DECAY,
}
