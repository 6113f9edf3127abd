"""Tuners and assessors that other packages bring, by the names that they register.

A package registers a class in its ``pyproject.toml``; the name is then as good as a built-in one::

    [project.entry-points."bequeath.tuners"]
    Annealing = "my_package.annealing:AnnealingTuner"

The group for assessors is ``bequeath.assessors``. A built-in name cannot be taken.
"""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from tuners.errors import TunerArgumentError

Kind = Literal["tuner", "assessor"]


def plugins(kind: Kind) -> dict[str, EntryPoint]:
    """Name → entry point of all that are installed; nothing is imported."""
    return {point.name: point for point in entry_points(group=f"bequeath.{kind}s")}


def brought_by(point: EntryPoint) -> str:
    """The package of an entry point, with its version, for people."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value


def load_plugin(kind: Kind, point: EntryPoint) -> type:
    """Imports a registered class.

    Raises:
        TunerArgumentError: it cannot be imported, or is no class that could be one.
    """
    whose = f"the {kind} {point.name!r} of {brought_by(point)}"
    try:
        loaded = point.load()
    except (ImportError, AttributeError) as error:
        raise TunerArgumentError(
            f"{whose} cannot be imported: {error}.",
            f"Its entry point is {point.value!r}: update or repair that package.",
        ) from error
    method = "generate_parameters" if kind == "tuner" else "assess_trial"
    many = "generate_multiple_parameters" if kind == "tuner" else method
    if not isinstance(loaded, type) or not (hasattr(loaded, method) or hasattr(loaded, many)):
        raise TunerArgumentError(
            f"{whose} is no {kind}: {point.value!r} is {loaded!r}.",
            f"An entry point of the group bequeath.{kind}s names a class with {method}.",
        )
    return loaded
