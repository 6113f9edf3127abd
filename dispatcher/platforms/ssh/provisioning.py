"""Makes a machine fit for trials: looks what it has, and brings there what it lacks of ours."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from dispatcher.platforms.archives import Archives
from dispatcher.platforms.ssh.machine import Machine
from dispatcher.remote_python.bundle import OLDEST
from dispatcher.remote_python.errors import HostUnfit, ProgramFailed
from dispatcher.remote_python.probed import Probe, Probed, probe, problem_with
from dispatcher.remote_python.runner import RemotePython, Runner
from dispatcher.remote_python.supply import Supply, supply
from dispatcher.remote_python.unpacking import unpack
from dispatcher.wheelhouse import USEFUL, WheelCache

TIDY_S = 600.0

_log = logging.getLogger("bequeath.backends.ssh")

#: Number of trees that stay on a machine, those used last, of code and of runtimes each.
KEPT = 8
_MOST_TEXT = 300


class ModuleFolders(NamedTuple):
    """Folders there with modules, searched after and before all that its Python has itself."""

    last: tuple[str, ...] = ()
    first: tuple[str, ...] = ()


class Fitted(NamedTuple):
    """Absolute paths on the machine: the work folder, our package, the trial's code, and the
    modules that its Python has not."""

    folder: str
    runtime: str
    code: str
    modules: ModuleFolders = ModuleFolders()


def fit(connection: Runner, machine: Machine, archives: Archives) -> Fitted:
    """Probe a machine and bring there what it does not have yet. Blocks for transfers.

    Args:
        connection: to the machine.
        machine: the one to make fit.
        archives: packed here.

    Raises:
        HostUnfit: trials cannot run there.
        BackendError: the connection or the machine is in the way.
    """
    runtime, code = archives.runtime, archives.code
    trees = (f"runtime/{runtime.digest}", f"code/{code.digest}")
    python = machine.python_on(connection)
    probed = probe(python, Probe(machine.work_folder, trees=trees))
    if ended := probed.python.prolog:
        complaint = f": {probed.complaint}" if probed.complaint else ""
        _log.warning("%s: its prolog ended with exit code %d%s", machine.name, ended, complaint)
    problem = problem_with(probed, machine.python, OLDEST)
    if problem is not None:
        raise HostUnfit(problem.text, hint=problem.hint, where=machine.name)
    modules = upload_modules(python, machine.work_folder, archives.wheels, probed)
    places = [f"{probed.folder}/{tree}" for tree in trees]
    fitted = Fitted(probed.folder, places[0], places[1], modules)
    if runtime.digest not in probed.runtime:
        unpack(python, runtime.path, runtime.digest, f"{fitted.runtime}/trial_runtime")
    if code.digest not in probed.code:
        unpack(python, code.path, code.digest, fitted.code)
    if runtime.digest not in probed.runtime or code.digest not in probed.code:
        _tidy(python, machine.work_folder, (*trees, *modules.last, *modules.first))
    return fitted


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


def _tidy(python: RemotePython, work_folder: str, trees: Sequence[str]) -> None:
    """Remove trees that were brought for others, long ago. A failure there is only logged."""
    arguments = {"work_folder": work_folder, "keep": KEPT, "trees": trees}
    try:
        gone = python.ask("tidy", arguments, dict[str, list[str]], limit_s=TIDY_S)
    except ProgramFailed as error:
        _log.warning("%s: old code and runtimes: %s", python.name, error.message)
    else:
        _log.info("%s: old code and runtimes: %s", python.name, str(gone)[-_MOST_TEXT:])
