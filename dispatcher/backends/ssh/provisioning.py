"""Makes a machine fit for trials: looks what it has, and brings there what it lacks of ours."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from dispatcher.backends.ssh.archive import Archives
from dispatcher.backends.ssh.machine import Machine
from dispatcher.backends.ssh.probing import HostUnfit, probe, problem_with
from dispatcher.backends.ssh.upload import UNPACK_S, ModuleFolders, upload_modules
from dispatcher.ssh import SshConnection, program_text, unpack

#: The oldest Python that trials run with.
OLDEST = (3, 9)

TIDY_S = 600.0

_log = logging.getLogger("bequeath.backends.ssh")

_TIDY = [Path(__file__).with_name(f"{name}_program.py") for name in ("processes", "tidy")]

#: Number of trees that stay on a machine, those used last, of code and of runtimes each.
KEPT = 8
_MOST_TEXT = 300


class Fitted(NamedTuple):
    """Absolute paths on the machine: the work folder, our package, the trial's code, and the
    modules that its Python has not."""

    folder: str
    runtime: str
    code: str
    modules: ModuleFolders = ModuleFolders()


def fit(connection: SshConnection, machine: Machine, archives: Archives) -> Fitted:
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
    probed = probe(connection, machine, trees)
    problem = problem_with(probed, machine, OLDEST)
    if problem:
        raise HostUnfit(problem, where=machine.name)
    modules = upload_modules(connection, machine, archives.wheels, probed)
    places = [f"{probed.folder}/{tree}" for tree in trees]
    fitted = Fitted(probed.folder, places[0], places[1], modules)
    python = machine.command()
    if runtime.digest not in probed.runtime:
        below = f"{fitted.runtime}/trial_runtime"
        unpack(connection, runtime.path, runtime.digest, below, python=python, limit_s=UNPACK_S)
    if code.digest not in probed.code:
        unpack(connection, code.path, code.digest, fitted.code, python=python, limit_s=UNPACK_S)
    if runtime.digest not in probed.runtime or code.digest not in probed.code:
        _tidy(connection, machine, (*trees, *modules.last, *modules.first))
    return fitted


def _tidy(connection: SshConnection, machine: Machine, trees: Iterable[str]) -> None:
    """Remove trees that were brought for others, long ago. A failure is only logged."""
    argv = machine.command("-", machine.work_folder, str(KEPT), ",".join(trees))
    program = "\n".join([program_text("python_facts"), *(part.read_text() for part in _TIDY)])
    ran = connection.run(argv, stdin=program.encode(), limit_s=TIDY_S)
    level = logging.INFO if ran.ok else logging.WARNING
    text = ran.out.decode(errors="replace").strip() if ran.ok else ran.complaint()
    _log.log(level, "%s: old code and runtimes: %s", machine.name, text[-_MOST_TEXT:])
