"""Networks that are paths through one with all weights: an operation a layer, and skips.

All layers are of one width. A layer reads the mean of the layer before and of those it skips to, as
in Pham et al. (2018), section 2.3, and does one of the operations, each with weights of its own:
one layer of rectified units, or two of which the first has but a few. What such a bottleneck does
not let through is lost, unless a skip leads past it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.tuner_nas.cost import Size
from benchmarks.tuner_nas.task import CLASSES, MANY, PIXELS, Array, Weights, drawn

LAYERS, WIDTH = 6, 64
#: How many units an operation has in its bottleneck; 0: it has none.
OPERATIONS = {"whole": 0, "eight": 8, "four": 4, "two": 2}
#: Who learns from few digits learns them by heart before a long training ends.
SHARES = MANY

#: ``[{"operation": name, "skips": [earlier layers]}, …]``, layers counted from 0.
Architecture = Sequence[Mapping[str, Any]]


def fresh(dice: np.random.Generator) -> Weights:
    """Initial weights of everything. An architecture that is trained alone uses its own only."""
    weights: Weights = {
        "stem": drawn(PIXELS, WIDTH, dice),
        "head": drawn(WIDTH, CLASSES, dice) / np.float32(2),
    }
    for layer in range(LAYERS):
        for operation, few in OPERATIONS.items():
            if few:
                weights[f"{layer}.{operation}.in"] = drawn(WIDTH, few, dice)
            weights[f"{layer}.{operation}"] = drawn(few or WIDTH, WIDTH, dice)
    return weights


def scores(
    weights: Weights, architecture: Architecture, pictures: Array
) -> tuple[Array, Callable[[Array], Weights]]:
    """What an architecture says, and the way back."""
    told = [np.maximum(pictures @ weights["stem"].T, 0)]
    read: list[tuple[Array, Array]] = []  # what a layer reads, and what its last matrix reads
    for number, chosen in enumerate(architecture):
        x = told[number]
        if chosen["skips"]:
            x = sum((told[skip + 1] for skip in chosen["skips"]), start=x)
            x = x / np.float32(1 + len(chosen["skips"]))
        operation = chosen["operation"]
        inner = x
        if OPERATIONS[operation]:
            inner = np.maximum(x @ weights[f"{number}.{operation}.in"].T, 0)
        read.append((x, inner))
        told.append(np.maximum(inner @ weights[f"{number}.{operation}"].T, 0))

    def back(slope: Array) -> Weights:
        found = {"head": slope.T @ told[-1]}
        due: list[Any] = [None] * len(told)
        due[-1] = slope @ weights["head"]
        for number in reversed(range(len(architecture))):
            operation, skips = architecture[number]["operation"], architecture[number]["skips"]
            (x, inner), out, flow = read[number], told[number + 1], due[number + 1]
            flow = flow * (out > 0)
            found[f"{number}.{operation}"] = flow.T @ inner
            flow = flow @ weights[f"{number}.{operation}"]
            if OPERATIONS[operation]:
                flow = flow * (inner > 0)
                found[f"{number}.{operation}.in"] = flow.T @ x
                flow = flow @ weights[f"{number}.{operation}.in"]
            if skips:
                flow = flow / np.float32(1 + len(skips))
            for source in (number, *(skip + 1 for skip in skips)):
                due[source] = flow if due[source] is None else due[source] + flow
        found["stem"] = (due[0] * (told[0] > 0)).T @ pictures
        return found

    return told[-1] @ weights["head"].T, back


def size(architecture: Architecture) -> Size:
    """What a picture goes through."""
    layers, inner = 1.0, PIXELS * WIDTH + WIDTH * CLASSES
    for chosen in architecture:
        few = OPERATIONS[chosen["operation"]]
        layers += 2 if few else 1
        inner += 2 * WIDTH * few if few else WIDTH * WIDTH
    return Size(layers, inner)


def mean_size() -> Size:
    """What a picture goes through on average, when every operation is as likely as any other."""
    alike = [size([{"operation": one, "skips": []}] * LAYERS) for one in OPERATIONS]
    return Size(
        sum(one.layers for one in alike) / len(alike),
        sum(one.multiplications for one in alike) / len(alike),
    )


def space() -> dict[str, Any]:
    """All architectures, as random search and single path one-shot know them."""
    found: dict[str, Any] = {}
    for number in range(LAYERS):
        found[f"layer{number}"] = {"_type": "choice", "_value": list(OPERATIONS)}
        for earlier in range(number - 1):
            found[f"skip{earlier}to{number}"] = {"_type": "choice", "_value": [False, True]}
    return found


def architecture_of(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The architecture that parameters of this space name."""
    return [
        {
            "operation": parameters[f"layer{number}"],
            "skips": [e for e in range(number - 1) if parameters[f"skip{e}to{number}"]],
        }
        for number in range(LAYERS)
    ]
