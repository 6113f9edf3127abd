"""What a machine says it has."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from pathlib import Path

import msgspec

from dispatcher.backends.ssh.machine import Machine
from dispatcher.errors import PermanentBackendError
from dispatcher.ssh import SshConnection, program_text
from dispatcher.wheelhouse import MODULES, HostPython
from trial_runtime.trial_wire import UNREADABLE, brief

#: Importing numpy from a cold network file system takes long.
PROBE_S = 120.0

OWN_PYTHON = "'python' of the machine names another one"

_PROBE = Path(__file__).with_name("probe_program.py")
_MOST_SAID = 300

_log = logging.getLogger("bequeath.backends.ssh")


class HostUnfit(PermanentBackendError):
    """Raised when a machine lacks what trials need; its text says what, and what to do."""


class PythonTold(msgspec.Struct, frozen=True):
    """Which wheels its Python can have; ``tag`` tells the folders of several Pythons apart.
    ``prolog``: with which exit code the user's ended."""

    implementation: str
    tag: str
    cpu: str
    libc: str
    libc_version: tuple[int, int]
    gpus: bool = False
    prolog: int = 0


class Probed(msgspec.Struct, frozen=True):
    """What a machine said it has. ``missing``: by module, why it cannot be imported, or nothing;
    ``code``, ``runtime``, ``modules``: what was brought there before."""

    version: tuple[int, int, int]
    executable: str
    folder: str
    folder_trouble: str
    missing: dict[str, str]
    code: list[str]
    runtime: list[str]
    python: PythonTold
    versions: dict[str, str] = {}
    modules: list[str] = []

    @property
    def host(self) -> HostPython:
        """Its Python, as wheels see it."""
        told = self.python
        return HostPython(
            self.version[:2],
            told.implementation,
            told.cpu,
            told.libc,
            told.libc_version,
            told.gpus,
        )


def probe_text() -> bytes:
    """The program that looks."""
    return program_text("python_facts").encode() + _PROBE.read_bytes()


def probe(
    connection: SshConnection,
    machine: Machine,
    trees: Iterable[str],
    *,
    first: Iterable[str] = (),
    last: Iterable[str] = (),
) -> Probed:
    """Ask a machine what it has; makes its work folder, and marks as used which ``trees`` below it
    are there. ``first``, ``last``: digests of wheels there, from which modules can be had before
    and after its own. Raises ``HostUnfit`` without a Python."""
    brought = f"{','.join(first)};{','.join(last)}"
    argv = machine.command("-", machine.work_folder, ",".join(trees), brought, *MODULES)
    ran = connection.run(argv, stdin=probe_text(), limit_s=PROBE_S)
    lines = ran.out.splitlines()
    if not ran.ok or not lines:
        said = ran.said()[-_MOST_SAID:]
        if ran.code == 127 and said.endswith(f"{machine.python}: not found"):  # not so the prolog's
            raise HostUnfit(f"has no {machine.python!r}", where=machine.name, hint=OWN_PYTHON)
        raise HostUnfit(
            f"{machine.python!r} does not run there (exit code {ran.code}): {said}",
            where=machine.name,
            hint=OWN_PYTHON,
        )
    try:
        found = msgspec.json.decode(lines[-1], type=Probed)
    except UNREADABLE as error:
        raise HostUnfit(
            f"{machine.python!r} does not answer as a Python: {brief(error)}", where=machine.name
        ) from error
    if found.python.prolog:
        said = ran.err.strip().decode(errors="replace")[-_MOST_SAID:]
        ended = f"its prolog ended with exit code {found.python.prolog}"
        _log.warning("%s: %s%s", machine.name, ended, f": {said}" if said else "")
    return found


def problem_with(found: Probed, machine: Machine, oldest: tuple[int, int]) -> str:
    """Why nothing can be brought there, or nothing. Pure."""
    if found.version[:2] < oldest:
        has = ".".join(map(str, found.version))
        wanted = ".".join(map(str, oldest))
        return f"{machine.python!r} is Python {has}, and trials need {wanted}; {OWN_PYTHON}"
    if found.folder_trouble:
        return (
            f"its work folder cannot be used: {found.folder_trouble}; 'workFolder' names another, "
            "which only its user can change, below folders of that user or root"
        )
    return ""
