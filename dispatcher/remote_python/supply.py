"""The wheels of modules that a machine's Python lacks, fetched to this machine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.probed import Probed
from dispatcher.wheelhouse import USEFUL, Wheel, WheelCache, WheelPlan, WheelsMissing, plan


class Supply(NamedTuple):
    """Wheels for one machine.

    Attributes:
        planned: which it gets.
        files: those that are not there yet, on this machine, by module.
        without: modules that it will not have, and can do without.
    """

    planned: WheelPlan
    files: Mapping[str, Path]
    without: tuple[str, ...]

    @property
    def brought(self) -> dict[str, Wheel]:
        """All that it has by us once the files are there, by module."""
        return {x: wheel for x, wheel in self.planned.wheels.items() if x not in self.without}


def supply(probed: Probed, name: str, cache: WheelCache) -> Supply:
    """Plan and fetch the wheels that a machine lacks. Blocks while pip downloads.

    Args:
        probed: the machine's answer.
        name: of the machine, for people.
        cache: the wheels on this machine.

    Raises:
        HostUnfit: it cannot have what trials need; says what to install there, or which file to
            put here.
    """
    planned = plan(probed.host, probed.missing, probed.versions)
    problem = planned.problem(probed.executable, probed.host)
    if problem:
        raise HostUnfit(problem, where=name)
    new = {x: wheel for x, wheel in planned.wheels.items() if wheel.digest not in probed.modules}
    files = _fetched(cache, new, probed, name) if new else {}
    without = [*planned.without, *(x for x in new if x not in files)]
    return Supply(planned, files, tuple(without))


def _fetched(
    cache: WheelCache, wheels: Mapping[str, Wheel], probed: Probed, name: str
) -> dict[str, Path]:
    """The files by module; of those that trials can do without perhaps not all."""
    try:
        return dict(zip(wheels, cache.get(wheels.values(), probed.host), strict=True))
    except WheelsMissing as error:
        needed = {module: wheel for module, wheel in wheels.items() if module not in USEFUL}
        if len(needed) == len(wheels):
            raise _lacks(probed, name, needed, error) from error
    try:
        return dict(zip(needed, cache.get(needed.values(), probed.host), strict=True))
    except WheelsMissing as error:
        raise _lacks(probed, name, needed, error) from error


def _lacks(
    probed: Probed, name: str, wheels: Mapping[str, Wheel], error: WheelsMissing
) -> HostUnfit:
    packages = " ".join(wheel.project for wheel in wheels.values())
    return HostUnfit(
        f"{probed.executable} has no {', '.join(wheels)}, "
        f"and what would be brought {error.message}",
        hint=f"{error.hint}; or install there: {packages}",
        where=name,
    )
