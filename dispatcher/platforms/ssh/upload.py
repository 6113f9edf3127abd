"""Modules for machines whose Python lacks them: wheels, unpacked beside our code."""

from __future__ import annotations

import logging
from typing import NamedTuple

from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.probed import Probe, Probed, probe
from dispatcher.remote_python.runner import RemotePython
from dispatcher.remote_python.supply import Supply, supply
from dispatcher.remote_python.unpacking import unpack
from dispatcher.wheelhouse import USEFUL, WheelCache

_log = logging.getLogger("bequeath.backends.ssh")


class ModuleFolders(NamedTuple):
    """Folders there with modules, searched after and before all that its Python has itself."""

    last: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


def upload_modules(
    python: RemotePython, work_folder: str, cache: WheelCache, probed: Probed
) -> ModuleFolders:
    """Bring the modules that our code needs there. Blocks for pip and for transfers.

    Args:
        python: that of the machine.
        work_folder: of the machine.
        cache: the wheels on this machine.
        probed: the machine's answer.

    Raises:
        HostUnfit: it cannot be; says what to install there, or which file to put here.
        BackendError: the connection or the machine is in the way.
    """
    supplied = supply(probed, python.name, cache)
    for name in supplied.without:
        _log.info("%s: no %s: %s", python.name, name, USEFUL[name])
    place = f"{probed.folder}/modules/{probed.python.tag}"
    for name, path in supplied.files.items():
        digest = supplied.planned.wheels[name].digest
        _log.info("%s: its Python has no %s: brings %s", python.name, name, path.name)
        unpack(python, path, digest, f"{place}/{digest}", verb="unwheel")
    last, first = (
        tuple(wheel.digest for name, wheel in wheels.items() if name in supplied.brought)
        for wheels in (supplied.planned.last, supplied.planned.first)
    )
    if supplied.files:
        asked = Probe(work_folder, first=first, last=last)
        _see_that_they_serve(supplied, probe(python, asked), python.name)
    return ModuleFolders(*(tuple(f"{place}/{x}" for x in some) for some in (last, first)))


def _see_that_they_serve(supplied: Supply, again: Probed, name: str) -> None:
    """Check that the modules that were just brought can be imported. Raises ``HostUnfit``."""
    for module in supplied.planned.wheels:
        trouble = again.missing.get(module)
        if trouble and module not in USEFUL:
            raise HostUnfit(
                f"{again.executable} cannot import {module}, though it was brought there: "
                f"{trouble}",
                where=name,
                hint=f"is all of {again.folder}/modules there? it can be removed",
            )
