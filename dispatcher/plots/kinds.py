"""The kinds of plots by name: what each is computed by, and what one can choose of it."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from dispatcher.errors import UserError
from dispatcher.plots.shapes import Plot
from dispatcher.queries import ExperimentReader

#: By name; imported when one is asked for, since they compute with numpy and scikit-learn.
KINDS: Final[dict[str, str]] = {
    "importance": "importance:importance",
    "slice": "slices:slices",
    "contour": "contour:contour",
    "parallel": "parallel:parallel",
    "pareto": "front:pareto_front",
    "hypervolume": "hypervolume:hypervolume",
    "timeline": "timeline:timeline",
    "slots": "slots:slots",
}


def data_of(reader: ExperimentReader, kind: str, choice: Mapping[str, Any]) -> Plot:
    """Compute what a plot shows, for the page and for PNGs alike.

    Args:
        reader: the experiment.
        kind: of :data:`KINDS`.
        choice: arguments of the function that computes it; those that it does not take, and those
            that are None, are left out.

    Raises:
        UserError: there is no such kind, parameter or number, or a library is missing.
        StoreError: the store cannot be read.
    """
    if kind not in KINDS:
        raise UserError(f"there is no plot {kind!r}", hint=f"one of {', '.join(KINDS)}")
    module, _, name = KINDS[kind].partition(":")
    compute: Callable[..., Plot] = getattr(
        importlib.import_module(f"dispatcher.plots.{module}"), name
    )
    taken = inspect.signature(compute).parameters
    given = {key: one for key, one in choice.items() if key in taken and one is not None}
    return compute(reader, **given)
