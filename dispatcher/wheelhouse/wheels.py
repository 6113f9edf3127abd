"""The known wheels, and the choice of those that fit a machine. Pure but for reading the list."""

from __future__ import annotations

import importlib.resources
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache

from dispatcher.wheelhouse.pythons import HostPython

#: Modules that code of ours imports on a machine, and the projects that have them.
MODULES = {
    "msgspec": "msgspec",
    "zmq": "pyzmq",
    "blake3": "blake3",
    "numpy": "numpy",
    "filelock": "filelock",
    "pynvml": "nvidia_ml_py",
}

#: The oldest version of a machine's own that will do. Where it is older, ours goes first for trials
#: of ours; of others any version will do, since torch and others have to fit it.
OURS_FIRST = {"msgspec": (0, 18), "zmq": (22, 0)}


@dataclass(frozen=True)
class Wheel:
    """A wheel by its file's name and the SHA-256 of its content."""

    file: str
    digest: str

    @property
    def project(self) -> str:
        """The name by which pip knows it."""
        return self.file.split("-")[0]

    @property
    def version(self) -> str:
        """The version of the project."""
        return self.file.split("-")[1]

    @property
    def tags(self) -> tuple[list[str], list[str], list[str]]:
        """Pythons, binary interfaces and platforms, of which each combination is served."""
        pythons, abis, platforms = self.file.removesuffix(".whl").split("-")[-3:]
        return pythons.split("."), abis.split("."), platforms.split(".")

    def fits(self, host: HostPython) -> bool:
        """Whether that Python can import it."""
        pythons, abis, platforms = self.tags
        return any(host.runs(p, a, x) for p in pythons for a in abis for x in platforms)


@cache
def known_wheels() -> tuple[Wheel, ...]:
    """The list that came with us, in the form of ``sha256sum``."""
    text = importlib.resources.files(__package__).joinpath("wheels.sha256").read_text("ascii")
    return read_list(text)


def read_list(text: str) -> tuple[Wheel, ...]:
    """The wheels of a list with ``DIGEST  FILE`` in each line."""
    return tuple(
        Wheel(file, digest) for digest, file in (line.split() for line in text.splitlines())
    )


def choose(
    host: HostPython, modules: Collection[str], wheels: Iterable[Wheel] | None = None
) -> dict[str, Wheel]:
    """The newest wheel that fits, by module; modules for which there is none are not in it.

    Args:
        host: the machine's Python.
        modules: by the names under which they are imported.
        wheels: to choose from; None for the list that came with us.
    """
    known = known_wheels() if wheels is None else tuple(wheels)
    newest: dict[str, Wheel] = {}
    for module in modules:
        project = MODULES.get(module)
        fitting = [wheel for wheel in known if wheel.project == project and wheel.fits(host)]
        if fitting:
            newest[module] = max(fitting, key=lambda wheel: _order(wheel.version))
    return newest


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) if part.isdigit() else 0 for part in version.split("."))
