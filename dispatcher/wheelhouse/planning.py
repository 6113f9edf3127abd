"""Plans which modules to bring to a machine, from what it has. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from dispatcher.wheelhouse.pythons import HostPython
from dispatcher.wheelhouse.wheels import MODULES, OURS_FIRST, Wheel, choose

#: Modules that trials can do without, and what they miss then.
USEFUL = {
    "filelock": "files of parents are read from the share for each child, and not kept",
    "pynvml": "GPUs are not seen",
}

_ABSENT = "ModuleNotFoundError: "


@dataclass(frozen=True)
class WheelPlan:
    """Wheels by module: ``last`` come after all that its Python has itself, ``first`` before,
    since its own is too old. ``lacking``: by module, why it is not there; ``without``: those of
    them for which there is no wheel."""

    last: Mapping[str, Wheel] = field(default_factory=dict)
    first: Mapping[str, Wheel] = field(default_factory=dict)
    lacking: Mapping[str, str] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    @property
    def wheels(self) -> dict[str, Wheel]:
        """All of them."""
        return {**self.last, **self.first}

    def problem(self, executable: str, host: HostPython) -> str:
        """Why trials cannot run there whatever is brought, or nothing."""
        needed = [module for module in self.without if module not in USEFUL]
        if not needed:
            return ""
        why = self.lacking[needed[0]]
        packages = " ".join(MODULES[module] for module in needed)
        return (
            f"{executable} cannot import {', '.join(needed)} ({why}), and none that we know fits "
            f"it ({host}); install there: {packages}"
        )


def plan(host: HostPython, troubles: Mapping[str, str], versions: Mapping[str, str]) -> WheelPlan:
    """Plan the modules to bring.

    Args:
        host: the machine's Python.
        troubles: by module, why it cannot be imported; empty if it can.
        versions: by module, those of modules that can be imported.
    """
    asked = MODULES.keys() if host.gpus else MODULES.keys() - {"pynvml"}
    lacking = {name: why for name, why in troubles.items() if name in asked and why}
    for name, least in OURS_FIRST.items():
        if name in versions and version_of(versions[name]) < least:
            wanted = ".".join(map(str, least))
            lacking[name] = f"its {versions[name]} is older than {wanted}"
    fitting = choose(host, lacking)
    # One that is there and broken would be found before one that comes after it.
    absent = [name for name, why in lacking.items() if why.startswith(_ABSENT)]
    return WheelPlan(
        last={name: fitting[name] for name in absent if name in fitting},
        first={name: fitting[name] for name in fitting if name in OURS_FIRST and name in versions},
        lacking=lacking,
        without=tuple(
            name
            for name in lacking
            if name not in fitting or not (name in absent or name in versions)
        ),
    )


def version_of(text: str) -> tuple[int, ...]:
    """The first two numbers of a version; none of what is no version, which is old then."""
    return tuple(int(part) for part in re.findall(r"\d+", text)[:2])
