"""Modules for machines whose Python lacks them: wheels, unpacked beside our code."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.probing import HostUnfit, Probed, probe
from dispatcher.ssh import SshConnection, unpack_wheel
from dispatcher.wheelhouse import USEFUL, Wheel, WheelCache, WheelPlan, WheelsMissing, plan

UNPACK_S = 3600.0

_log = logging.getLogger("bequeath.backends.ssh")


class ModuleFolders(NamedTuple):
    """Folders there with modules, searched after and before all that its Python has itself."""

    last: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


def upload_modules(
    connection: SshConnection, machine: Machine, cache: WheelCache, probed: Probed
) -> ModuleFolders:
    """Bring the modules that our code needs there. Blocks for pip and for transfers.

    Args:
        connection: to the machine.
        machine: the one that lacks modules.
        cache: the wheels on this machine.
        probed: the machine's answer.

    Raises:
        HostUnfit: it cannot be; says what to install there, or which file to put here.
        BackendError: the connection or the machine is in the way.
    """
    planned = plan(probed.host, probed.missing, probed.versions)
    problem = planned.problem(probed.executable, probed.host)
    if problem:
        raise HostUnfit(problem, where=machine.name)
    for name in planned.without:
        _log.info("%s: no %s: %s", machine.name, name, USEFUL[name])
    place = f"{probed.folder}/modules/{probed.python.tag}"
    new = {name: w for name, w in planned.wheels.items() if w.digest not in probed.modules}
    files = _fetched(cache, new, probed, machine) if new else {}
    for name, path in files.items():
        digest = new[name].digest
        _log.info("%s: its Python has no %s: brings %s", machine.name, name, path.name)
        unpack_wheel(
            connection,
            path,
            digest,
            f"{place}/{digest}",
            python=machine.command(),
            limit_s=UNPACK_S,
        )
    there = {*probed.modules, *(new[name].digest for name in files)}
    last, first = (
        tuple(wheel.digest for wheel in wheels.values() if wheel.digest in there)
        for wheels in (planned.last, planned.first)
    )
    if files:
        _see_that_they_serve(connection, machine, planned, last, first)
    return ModuleFolders(*(tuple(f"{place}/{x}" for x in some) for some in (last, first)))


def _fetched(
    cache: WheelCache, wheels: Mapping[str, Wheel], probed: Probed, machine: Machine
) -> dict[str, Path]:
    """The files by module; of those that trials can do without perhaps not all."""
    try:
        return dict(zip(wheels, cache.get(wheels.values(), probed.host), strict=True))
    except WheelsMissing as error:
        needed = {name: wheel for name, wheel in wheels.items() if name not in USEFUL}
        if len(needed) == len(wheels):
            raise _lacks(probed, machine, needed, error) from error
        for name in wheels.keys() - needed.keys():
            _log.info("%s: no %s: %s", machine.name, name, USEFUL[name])
    try:
        return dict(zip(needed, cache.get(needed.values(), probed.host), strict=True))
    except WheelsMissing as error:
        raise _lacks(probed, machine, needed, error) from error


def _lacks(
    probed: Probed, machine: Machine, wheels: Mapping[str, Wheel], error: WheelsMissing
) -> HostUnfit:
    packages = " ".join(wheel.project for wheel in wheels.values())
    return HostUnfit(
        f"{probed.executable} has no {', '.join(wheels)}, "
        f"and what would be brought {error.message}",
        hint=f"{error.hint}; or install there: {packages}",
        where=machine.name,
    )


def _see_that_they_serve(
    connection: SshConnection,
    machine: Machine,
    planned: WheelPlan,
    last: tuple[str, ...],
    first: tuple[str, ...],
) -> None:
    """Check that the modules that were just brought can be imported. Raises ``HostUnfit``."""
    again = probe(connection, machine, (), first=first, last=last)
    for name in planned.wheels:
        trouble = again.missing.get(name)
        if trouble and name not in USEFUL:
            raise HostUnfit(
                f"{again.executable} cannot import {name}, though it was brought there: {trouble}",
                where=machine.name,
                hint=f"is all of {again.folder}/modules there? it can be removed",
            )
