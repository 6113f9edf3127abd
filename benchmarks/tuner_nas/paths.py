"""Networks that are paths through one with all weights: an operation a layer, and skips.

All layers are of one width. A layer reads the mean of the layer before and of those it skips to, as
in Pham et al. (2018), section 2.3, and does one of the operations, each with weights of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.tuner_nas.cost import Size
from benchmarks.tuner_nas.task import CLASSES, PIXELS, Array, Weights, drawn

LAYERS, WIDTH = 5, 48
#: How many units there are inside: ``same`` has none, ``narrow`` goes through a bottleneck.
OPERATIONS = {"relu": WIDTH, "tanh": WIDTH, "narrow": 6, "same": 0}

#: ``[{"operation": name, "skips": [earlier layers]}, …]``, layers counted from 0.
Architecture = Sequence[Mapping[str, Any]]


def fresh(dice: np.random.Generator) -> Weights:
    """Initial weights of everything. An architecture that is trained alone uses its own only."""
    weights: Weights = {
        "stem": drawn(PIXELS, WIDTH, dice),
        "head": drawn(WIDTH, CLASSES, dice) / np.float32(2),
    }
    for layer in range(LAYERS):
        weights[f"{layer}.relu"] = drawn(WIDTH, WIDTH, dice)
        weights[f"{layer}.tanh"] = drawn(WIDTH, WIDTH, dice) / np.float32(2)
        weights[f"{layer}.narrow.in"] = drawn(WIDTH, OPERATIONS["narrow"], dice)
        weights[f"{layer}.narrow"] = drawn(OPERATIONS["narrow"], WIDTH, dice)
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
        if operation == "narrow":
            inner = np.maximum(x @ weights[f"{number}.narrow.in"].T, 0)
        out = x
        if operation != "same":
            out = inner @ weights[f"{number}.{operation}"].T
        if operation in ("relu", "narrow"):
            out = np.maximum(out, 0)
        elif operation == "tanh":
            out = np.tanh(out)
        read.append((x, inner))
        told.append(out)

    def back(slope: Array) -> Weights:
        found = {"head": slope.T @ told[-1]}
        due: list[Any] = [None] * len(told)
        due[-1] = slope @ weights["head"]
        for number in reversed(range(len(architecture))):
            operation, skips = architecture[number]["operation"], architecture[number]["skips"]
            (x, inner), out, flow = read[number], told[number + 1], due[number + 1]
            if operation in ("relu", "narrow"):
                flow = flow * (out > 0)
            elif operation == "tanh":
                flow = flow * (1 - out * out)
            if operation != "same":
                found[f"{number}.{operation}"] = flow.T @ inner
                flow = flow @ weights[f"{number}.{operation}"]
            if operation == "narrow":
                flow = flow * (inner > 0)
                found[f"{number}.narrow.in"] = flow.T @ x
                flow = flow @ weights[f"{number}.narrow.in"]
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
        units = OPERATIONS[chosen["operation"]]
        layers += {"same": 0, "narrow": 2}.get(chosen["operation"], 1)
        inner += WIDTH * units * (2 if chosen["operation"] == "narrow" else 1)
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
