"""Asks a machine what it has."""

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
_MOST_TEXT = 300

_log = logging.getLogger("bequeath.backends.ssh")


class HostUnfit(PermanentBackendError):
    """Raised when a machine lacks something that trials need; the text names it, and a remedy."""


class PythonFacts(msgspec.Struct, frozen=True):
    """Facts of a machine's Python that decide which wheels it can have; ``tag`` tells the folders
    of several Pythons apart. ``prolog``: the exit code of the user's prolog."""

    implementation: str
    tag: str
    cpu: str
    libc: str
    libc_version: tuple[int, int]
    gpus: bool = False
    prolog: int = 0


class Probed(msgspec.Struct, frozen=True):
    """The answer of a machine. ``missing``: by module, why it cannot be imported, or nothing;
    ``code``, ``runtime``, ``modules``: trees that were brought there before."""

    version: tuple[int, int, int]
    executable: str
    folder: str
    folder_trouble: str
    missing: dict[str, str]
    code: list[str]
    runtime: list[str]
    python: PythonFacts
    versions: dict[str, str] = {}
    modules: list[str] = []

    @property
    def host(self) -> HostPython:
        """The machine's Python, as wheels see it."""
        facts = self.python
        return HostPython(
            self.version[:2],
            facts.implementation,
            facts.cpu,
            facts.libc,
            facts.libc_version,
            facts.gpus,
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
    """Ask a machine what it has; makes its work folder. Blocks.

    Args:
        connection: to the machine.
        machine: the one to ask.
        trees: paths below its work folder, marked as used where they are there.
        first: digests of wheels there, from which modules can be had before the Python's own.
        last: the same, for modules after its own.

    Raises:
        HostUnfit: it has no Python that answers.
    """
    brought = f"{','.join(first)};{','.join(last)}"
    argv = machine.command("-", machine.work_folder, ",".join(trees), brought, *MODULES)
    ran = connection.run(argv, stdin=probe_text(), limit_s=PROBE_S)
    lines = ran.out.splitlines()
    if not ran.ok or not lines:
        complaint = ran.complaint()[-_MOST_TEXT:]
        if ran.code == 127 and complaint.endswith(
            f"{machine.python}: not found"
        ):  # not so the prolog's
            raise HostUnfit(f"has no {machine.python!r}", where=machine.name, hint=OWN_PYTHON)
        raise HostUnfit(
            f"{machine.python!r} does not run there (exit code {ran.code}): {complaint}",
            where=machine.name,
            hint=OWN_PYTHON,
        )
    try:
        probed = msgspec.json.decode(lines[-1], type=Probed)
    except UNREADABLE as error:
        raise HostUnfit(
            f"{machine.python!r} does not answer as a Python: {brief(error)}", where=machine.name
        ) from error
    if probed.python.prolog:
        complaint = ran.err.strip().decode(errors="replace")[-_MOST_TEXT:]
        ended = f"its prolog ended with exit code {probed.python.prolog}"
        _log.warning("%s: %s%s", machine.name, ended, f": {complaint}" if complaint else "")
    return probed


def problem_with(probed: Probed, machine: Machine, oldest: tuple[int, int]) -> str:
    """Why nothing can be brought there, or nothing. Pure.

    Args:
        probed: the machine's answer.
        machine: the one that answered.
        oldest: major and minor of the oldest Python that will do.
    """
    if probed.version[:2] < oldest:
        has = ".".join(map(str, probed.version))
        wanted = ".".join(map(str, oldest))
        return f"{machine.python!r} is Python {has}, and trials need {wanted}; {OWN_PYTHON}"
    if probed.folder_trouble:
        return (
            f"its work folder cannot be used: {probed.folder_trouble}; 'workFolder' names another, "
            "which only its user can change, below folders of that user or root"
        )
    return ""
