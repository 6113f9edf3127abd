"""Operations that compute what plots show; they change nothing."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dispatcher.operations import arguments as given
from dispatcher.operations.operation import Arguments, Call
from dispatcher.plots import shapes

P = TypeVar("P", bound=shapes.Plot)


def importance(call: Call, wanted: given.ChooseMetric) -> shapes.Importance:
    """Judge which parameters results depend on."""
    return _data(call, "importance", wanted, shapes.Importance)


def slices(call: Call, wanted: given.ChooseParameters) -> shapes.Slices:
    """Show results over each of some parameters."""
    return _data(call, "slice", wanted, shapes.Slices)


def contour(call: Call, wanted: given.ChoosePair) -> shapes.Contour:
    """Show the mean result over two parameters."""
    return _data(call, "contour", wanted, shapes.Contour)


def parallel(call: Call, wanted: given.ChooseParameters) -> shapes.Parallel:
    """Show trials over several parameters."""
    return _data(call, "parallel", wanted, shapes.Parallel)


def pareto(call: Call, wanted: given.ChooseObjectives) -> shapes.Front:
    """Show the Pareto front."""
    return _data(call, "pareto", wanted, shapes.Front)


def hypervolume(call: Call, wanted: given.ChooseReference) -> shapes.Hypervolume:
    """Show how the hypervolume grew."""
    return _data(call, "hypervolume", wanted, shapes.Hypervolume)


def timeline(call: Call, wanted: given.ChooseWorker) -> shapes.Timeline:
    """Show attempts over time."""
    return _data(call, "timeline", wanted, shapes.Timeline)


def slots(call: Call, wanted: given.ChooseSpan) -> shapes.Slots:
    """Show how many slots were busy, and why no more were."""
    return _data(call, "slots", wanted, shapes.Slots)


def _data(call: Call, kind: str, wanted: Arguments, shape: type[P]) -> P:
    found = call.handle.plot_data(kind, msgspec.structs.asdict(wanted))
    assert isinstance(found, shape)
    return found
