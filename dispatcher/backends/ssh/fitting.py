"""Whether a machine can run trials, and bringing there what it lacks of ours."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from dispatcher.backends.ssh.archive import Archives
from dispatcher.backends.ssh.machine import Machine
from dispatcher.errors import PermanentBackendError
from dispatcher.ssh import SshConnection, unpack

#: The oldest Python that trials run with, and what it must be able to import.
OLDEST = (3, 11)
MODULES = {"msgspec": "msgspec", "zmq": "pyzmq", "numpy": "numpy", "blake3": "blake3"}

#: What they can do without, and what they miss then.
USEFUL = {"filelock": "files of parents are read from the share for each child, and not kept"}

#: Importing numpy from a cold network file system takes long.
PROBE_S = 120.0
UNPACK_S = 3600.0
TIDY_S = 600.0

_log = logging.getLogger("bequeath.backends.ssh")

_PROBE = Path(__file__).with_name("probe_program.py")
_TIDY = Path(__file__).with_name("tidy_program.py")

#: Of code and of runtimes each, how many of those used last stay on a machine, whoever uses them.
KEPT = 8
_MOST_SAID = 300


class HostUnfit(PermanentBackendError):
    """Raised when a machine lacks what trials need; its text says what, and what to do."""


class Probed(msgspec.Struct, frozen=True):
    """What a machine said it has."""

    version: tuple[int, int, int]
    executable: str
    folder: str
    folder_trouble: str
    missing: dict[str, str]
    code: list[str]
    runtime: list[str]


class Fitted(NamedTuple):
    """Absolute paths on the machine: the work folder, our package, the trial's code."""

    folder: str
    runtime: str
    code: str


def fit(connection: SshConnection, machine: Machine, archives: Archives) -> Fitted:
    """Probe a machine and bring there what it does not have yet. Blocks for transfers.

    Raises:
        HostUnfit: trials cannot run there.
        BackendError: the connection or the machine is in the way.
    """
    runtime, code = archives.runtime, archives.code
    trees = (f"runtime/{runtime.digest}", f"code/{code.digest}")
    found = probe(connection, machine, trees)
    problem = problem_with(found, machine)
    if problem:
        raise HostUnfit(problem, where=machine.name)
    for name in lacks(found):
        _log.info("%s: no %s: %s", machine.name, name, USEFUL[name])
    fitted = Fitted(found.folder, *(f"{found.folder}/{tree}" for tree in trees))
    python = machine.command()
    if runtime.digest not in found.runtime:
        below = f"{fitted.runtime}/trial_runtime"
        unpack(connection, runtime.path, runtime.digest, below, python=python, limit_s=UNPACK_S)
    if code.digest not in found.code:
        unpack(connection, code.path, code.digest, fitted.code, python=python, limit_s=UNPACK_S)
    if runtime.digest not in found.runtime or code.digest not in found.code:
        _tidy(connection, machine, trees)
    return fitted


def _tidy(connection: SshConnection, machine: Machine, trees: Iterable[str]) -> None:
    """Remove what was brought for others, long ago. That it cannot be done is no reason to stop."""
    argv = machine.command("-", machine.work_folder, str(KEPT), ",".join(trees))
    ran = connection.run(argv, stdin=_TIDY.read_bytes(), limit_s=TIDY_S)
    level = logging.INFO if ran.ok else logging.WARNING
    said = ran.out.decode(errors="replace").strip() if ran.ok else ran.said()
    _log.log(level, "%s: old code and runtimes: %s", machine.name, said[-_MOST_SAID:])


def probe(connection: SshConnection, machine: Machine, trees: Iterable[str]) -> Probed:
    """Ask a machine what it has; makes its work folder, and marks as used which ``trees`` below it
    are there. Raises ``HostUnfit`` without a Python."""
    argv = machine.command("-", machine.work_folder, ",".join(trees), *MODULES, *USEFUL)
    ran = connection.run(argv, stdin=_PROBE.read_bytes(), limit_s=PROBE_S)
    lines = ran.out.splitlines()
    if ran.code == 127:
        raise HostUnfit(f"has no {machine.python!r}", where=machine.name, hint=_OWN_PYTHON)
    if not ran.ok or not lines:
        said = ran.said()[-_MOST_SAID:]
        raise HostUnfit(
            f"{machine.python!r} does not run there (exit code {ran.code}): {said}",
            where=machine.name,
            hint=_OWN_PYTHON,
        )
    try:
        return msgspec.json.decode(lines[-1], type=Probed)
    except msgspec.MsgspecError as error:
        raise HostUnfit(
            f"{machine.python!r} does not answer as a Python: {error}", where=machine.name
        ) from error


def problem_with(found: Probed, machine: Machine) -> str:
    """Why trials cannot run there, or nothing. Pure."""
    if found.version[:2] < OLDEST:
        has = ".".join(map(str, found.version))
        wanted = ".".join(map(str, OLDEST))
        return f"{machine.python!r} is Python {has}, and trials need {wanted}; {_OWN_PYTHON}"
    if found.folder_trouble:
        return f"cannot make the work folder {found.folder_trouble}; 'workFolder' names another"
    lacking = [name for name, trouble in found.missing.items() if trouble and name not in USEFUL]
    if lacking:
        packages = " ".join(MODULES.get(name, name) for name in lacking)
        return (
            f"{found.executable} cannot import {', '.join(lacking)} "
            f"({found.missing[lacking[0]]}); install there: {packages}"
        )
    return ""


def lacks(found: Probed) -> list[str]:
    """What is not there and would be useful. Pure."""
    return [name for name in USEFUL if found.missing.get(name)]


_OWN_PYTHON = "'python' of the machine names another one"
