"""Architectures: as decisions of a controller, and as the parameters of a trial.

Decisions are whole numbers, in the order in which a controller makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tuners import values
from tuners.errors import TunerArgumentError


@dataclass(frozen=True)
class MacroSpace:
    """A whole network (section 2.3): for each layer an operation, and which of all earlier layers
    it sees beside the one before it.

    An architecture is ``[{"operation": name, "skips": [numbers of earlier layers]}, …]``, layers
    counted from 0; ``skips`` never name the layer just before: that one is always an input.
    """

    operations: tuple[str, ...]
    layers: int

    def architecture(self, decisions: Sequence[int]) -> list[dict[str, Any]]:
        """Decisions in the form that a trial gets. They are, per layer, the operation, then yes or
        no for each earlier one but the last."""
        found, rest = [], iter(decisions)
        for layer in range(self.layers):
            operation = self.operations[next(rest)]
            skips = [earlier for earlier in range(max(0, layer - 1)) if next(rest)]
            found.append({"operation": operation, "skips": skips})
        return found

    def decisions(self, architecture: Any) -> list[int]:
        """The inverse of :meth:`architecture`. Raises ``ValueError`` for what is none."""
        found: list[int] = []
        if not isinstance(architecture, Sequence) or len(architecture) != self.layers:
            raise ValueError(f"is no list of {self.layers} layers")
        for number, layer in enumerate(architecture):
            found.append(self.operations.index(layer["operation"]))
            found.extend(int(earlier in layer["skips"]) for earlier in range(max(0, number - 1)))
        return found


@dataclass(frozen=True)
class MicroSpace:
    """Cells that a network is built of (section 2.4): each node combines two earlier nodes, each
    by an operation of its own. Nodes 0 and 1 are the outputs of the two cells before.

    An architecture is ``{cell: [{"inputs": [i, j], "operations": [name, name]}, …]}``, one entry
    for each of the ``nodes`` after the two inputs.
    """

    operations: tuple[str, ...]
    nodes: int
    cells: tuple[str, ...] = ("normal", "reduction")

    def architecture(self, decisions: Sequence[int]) -> dict[str, list[dict[str, Any]]]:
        """Decisions in the form that a trial gets: per node two inputs, then two operations."""
        rest = iter(decisions)
        found: dict[str, list[dict[str, Any]]] = {}
        for cell in self.cells:
            found[cell] = []
            for _ in range(self.nodes):
                inputs = [next(rest), next(rest)]
                operations = [self.operations[next(rest)], self.operations[next(rest)]]
                found[cell].append({"inputs": inputs, "operations": operations})
        return found

    def decisions(self, architecture: Any) -> list[int]:
        """The inverse of :meth:`architecture`. Raises ``ValueError`` for what is none."""
        found: list[int] = []
        if not isinstance(architecture, Mapping) or set(architecture) != set(self.cells):
            raise ValueError(f"does not have the cells {', '.join(self.cells)}")
        for cell in self.cells:
            for node in architecture[cell]:
                found.extend(int(each) for each in node["inputs"])
                found.extend(self.operations.index(each) for each in node["operations"])
        return found


Space = MacroSpace | MicroSpace


def make_space(
    kind: str, operations: Sequence[str], layers: int, nodes: int, cells: Sequence[str]
) -> Space:
    """Checks class arguments.

    Args:
        kind: ``macro`` or ``micro``.
        operations: names, two or more.
        layers: of a macro network.
        nodes: of a micro cell, beside its two inputs.
        cells: names of micro cells.

    Raises:
        TunerArgumentError: names the one that does not fit.
    """
    names = _names("operations", operations, 2)
    layers, nodes = values.whole("layers", layers, 1), values.whole("nodes", nodes, 1)
    cell_names = _names("cells", cells, 1)
    if values.one_of("space", kind, ("macro", "micro")) == "macro":
        return MacroSpace(names, layers)
    return MicroSpace(names, nodes, cell_names)


def _names(argument: str, given: Sequence[str], least: int) -> tuple[str, ...]:
    proper = not isinstance(given, str) and isinstance(given, Sequence)
    proper = proper and all(isinstance(each, str) and each for each in given)
    if not proper or len(given) < least or len(set(given)) != len(given):
        raise TunerArgumentError(
            f"{argument} is a list of at least {least} different names, not {given!r}."
        )
    return tuple(given)
