"""Inspects a machine for what trials need; the results are findings that people can act on."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from dispatcher.errors import BackendError, UserError
from dispatcher.ssh.connection import SshConnection, connect
from dispatcher.ssh.errors import NoPython, SessionRefused
from dispatcher.ssh.host_programs import run_program
from dispatcher.ssh.inspecting_gpus import judge_gpus
from dispatcher.ssh.login import Dial
from dispatcher.ssh.target import SshTarget

#: Modules that the agent and the SDK import; trials may need more.
NEEDED_MODULES = ("msgspec", "zmq", "numpy", "blake3")

#: Packages that are not called as their modules are.
_PACKAGES = {"zmq": "pyzmq", "pynvml": "nvidia-ml-py"}

#: A machine may be this far from our clock (seconds) before times in logs confuse people.
_CLOCK_S = 5.0
_LITTLE_DISK = 1 << 30
#: With less not even our own code has room (bytes).
_NO_DISK = 4 << 20
_LIMIT_S = 120.0


class Severity(StrEnum):
    """The severity of a finding. ``PROBLEM``: trials cannot run there."""

    OK = "ok"
    NOTE = "note"
    PROBLEM = "problem"


@dataclass(frozen=True)
class HostFinding:
    """The result of one check."""

    topic: str
    verdict: Severity
    text: str
    hint: str = ""


@dataclass(frozen=True)
class Supplied:
    """Modules that are brought to a machine, with their versions; and why others cannot be."""

    modules: Mapping[str, str] = field(default_factory=dict)
    trouble: str = ""
    hint: str = ""


@dataclass(frozen=True)
class HostNeeds:
    """The needs that a machine is checked for.

    ``folders`` maps a folder there to a file that must be in it already (it shows that both
    of us mean the same folder); an empty name asks for nothing. ``python``: the command by which
    it is called there. ``useful`` maps modules that trials can do without to what they miss then.
    ``unsafe`` gives, for a version of a package, why it is not to be used, or nothing.
    ``read_folders``: those that trials only read from.
    ``cpus``, ``gpus``, ``gpu_memory`` (bytes): needs of each trial; ``gpu_indices``: those
    that the file names.
    ``supply``: gets the answer of the program ``probe``; returns which modules are brought there.
    """

    python: str | Sequence[str] = "python3"
    oldest: tuple[int, int] = (3, 9)
    modules: Sequence[str] = NEEDED_MODULES
    useful: Mapping[str, str] = field(default_factory=dict)
    unsafe: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    work_folder: str = "~"
    folders: Mapping[str, str] = field(default_factory=dict)
    read_folders: Sequence[str] = ()
    cpus: float = 0.0
    gpus: float = 0.0
    gpu_memory: int = 0
    gpu_indices: tuple[int, ...] = ()
    supply: Callable[[Mapping[str, Any]], Supplied] = lambda facts: Supplied()


def inspect(target: SshTarget, needs: HostNeeds, *, dial: Dial | None = None) -> list[HostFinding]:
    """Log in and look. Blocks for minutes at most; a check that cannot be made is a finding, too.

    Makes a temporary file in each folder, and removes it.

    Args:
        target: the machine, and how to log in.
        needs: those of trials.
        dial: as for :func:`~dispatcher.ssh.connect`.
    """
    started = time.monotonic()
    try:
        with connect(target, dial=dial) as connection:
            took = time.monotonic() - started
            text = f"as {connection.user} in {took:.1f} s"
            findings = [HostFinding("login", Severity.OK, text)]
            try:
                findings += _look(connection, needs)
            except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
                text = f"answers what it should not: {type(error).__name__}: {error}"
                hint = (
                    "what runs there is not the Python that is named; can that machine be trusted?"
                )
                findings.append(HostFinding("python", Severity.PROBLEM, text[:300], hint))
            return findings
    except (BackendError, UserError) as error:
        return [HostFinding("login", Severity.PROBLEM, str(error.message), error.hint)]


def _look(connection: SshConnection, needs: HostNeeds) -> Iterator[HostFinding]:
    folders = {**dict.fromkeys(needs.read_folders), needs.work_folder: "", **needs.folders}
    modules = [*needs.modules, *needs.useful]
    asked = json.dumps({"modules": modules, "packages": [*needs.unsafe], "folders": folders})
    before = time.time()
    try:
        facts = run_program(
            connection, "probe", [asked], python=needs.python, alone=False, limit_s=_LIMIT_S
        )
    except NoPython as error:
        yield HostFinding("python", Severity.PROBLEM, error.message, error.hint)
        return
    except (BackendError, UserError) as error:
        yield HostFinding("commands", Severity.PROBLEM, error.message, error.hint)
        return
    after = time.time()
    if ended := facts["python"].get("prolog"):
        text = f"its last command ended with exit code {ended}; trials begin all the same"
        hint = "run it there by hand; where that is meant, end it with '; :'"
        yield HostFinding("prolog", Severity.NOTE, text, hint)
    yield from _python(facts, needs)
    yield from _modules(facts, needs)
    yield from _packages(facts, needs)
    yield _clock(float(facts["time"]), before, after)
    yield from _work_folder(facts["folders"][needs.work_folder])
    for path, token in needs.folders.items():
        yield _weights(facts["folders"][path], wanted=bool(token))
    for path in needs.read_folders:
        yield _to_read(facts["folders"][path])
    yield _gpus(connection, needs)
    yield _sftp(connection)


def _gpus(connection: SshConnection, needs: HostNeeds) -> HostFinding:
    try:
        facts = run_program(connection, "gpus", [], python=needs.python, alone=False, limit_s=60.0)
    except BackendError as error:
        return HostFinding("gpus", Severity.NOTE, f"cannot be looked at: {error.message}")
    gpus = judge_gpus(facts, wanted=needs.gpus, indices=needs.gpu_indices, memory=needs.gpu_memory)
    verdict = Severity.PROBLEM if gpus.bad else Severity.OK
    return HostFinding("gpus", verdict, gpus.text, gpus.hint)


def _python(facts: Mapping[str, Any], needs: HostNeeds) -> Iterator[HostFinding]:
    version = ".".join(str(x) for x in facts["version"])
    text = f"{version} at {facts['executable']}, {facts['cores']} cores"
    if tuple(facts["version"][:2]) >= needs.oldest:
        yield HostFinding("python", Severity.OK, text)
        if needs.cpus > (facts["cores"] or needs.cpus):
            text = f"{facts['cores']} cores, and each trial needs {needs.cpus:g} (trialCpuNumber)"
            yield HostFinding("cores", Severity.PROBLEM, text)
        return
    oldest = ".".join(str(x) for x in needs.oldest)
    hint = f"name one of {oldest} or later (python: /opt/…/bin/python3)"
    yield HostFinding("python", Severity.PROBLEM, f"too old: {text}", hint)


def _modules(facts: Mapping[str, Any], needs: HostNeeds) -> Iterator[HostFinding]:
    modules = facts["modules"]
    supplied = needs.supply(facts)
    brought = supplied.modules
    there = [
        f"{name} {modules[name]['version']}".strip()
        for name in modules
        if not _lacks(modules[name]) and name not in brought
    ]
    missing = [name for name in needs.modules if _lacks(modules[name]) and name not in brought]
    if missing:
        why = "; ".join(modules[name]["trouble"] for name in missing)
        names = " ".join(_PACKAGES.get(name, name) for name in missing)
        hint = f"{facts['executable']} -m pip install {names}"
        if supplied.trouble:
            why, hint = f"{why}; {supplied.trouble}", f"{supplied.hint}; or {hint}"
        yield HostFinding("modules", Severity.PROBLEM, f"missing: {why}", hint)
    else:
        texts = [", ".join(there)] if there else []
        if brought:
            along = ", ".join(f"{name} {version}" for name, version in brought.items())
            texts.append(f"brought there: {along}")
        yield HostFinding("modules", Severity.OK, "; ".join(texts))
    for name, missed in needs.useful.items():
        if _lacks(modules[name]) and name not in brought:
            hint = f"{facts['executable']} -m pip install {name}"
            yield HostFinding("modules", Severity.NOTE, f"no {name}: {missed}", hint)


def _packages(facts: Mapping[str, Any], needs: HostNeeds) -> Iterator[HostFinding]:
    for name, why_unsafe in needs.unsafe.items():
        version = str(facts["packages"].get(name, ""))
        if version and (why := why_unsafe(version)):
            hint = f"{facts['executable']} -m pip install --upgrade {name}"
            yield HostFinding(name, Severity.NOTE, why, hint)


def _lacks(module: Mapping[str, Any]) -> bool:
    return "trouble" in module


def _clock(there: float, before: float, after: float) -> HostFinding:
    """Compare clocks: ours read ``before`` and ``after`` while the machine looked at its own."""
    ahead = there - (before + after) / 2
    unsure = (after - before) / 2
    if abs(ahead) <= unsure:
        return HostFinding("clock", Severity.OK, f"as ours, within {max(unsure, 0.1):.1f} s")
    way = "ahead" if ahead > 0 else "behind"
    text = f"{abs(ahead):.1f} s {way} of ours (± {unsure:.1f} s)"
    if abs(ahead) - unsure <= _CLOCK_S:
        return HostFinding("clock", Severity.OK, text)
    hint = "nothing here relies on it but times in logs; does NTP run there?"
    return HostFinding("clock", Severity.NOTE, text, hint)


def _work_folder(folder: Mapping[str, Any]) -> Iterator[HostFinding]:
    free = int(folder["free"])
    text = f"{folder['path']}, {free / 1e9:.1f} GB free"
    if folder["trouble"] or not (folder["writable"] or folder.get("makeable")):
        why = folder["trouble"] or "cannot be made"
        yield HostFinding("disk", Severity.PROBLEM, f"{folder['path']}: {why}")
    elif folder.get("unsafe"):
        hint = "name one (workFolder) that only its user can change, below that user's or root's"
        yield HostFinding(
            "disk", Severity.PROBLEM, f"no work folder for us: {folder['unsafe']}", hint
        )
    elif free < _NO_DISK:
        hint = "free some, or name a folder that has room (workFolder)"
        yield HostFinding("disk", Severity.PROBLEM, f"no room: {text}", hint)
    elif free < _LITTLE_DISK:
        yield HostFinding("disk", Severity.NOTE, f"little room: {text}")
    else:
        yield HostFinding("disk", Severity.OK, text)


def _weights(folder: Mapping[str, Any], *, wanted: bool) -> HostFinding:
    path = folder["path"]
    if not folder["there"]:
        hint = "mount the share there (bequeath nfs client), or say where it is (weightsRoot)"
        return HostFinding("weights", Severity.PROBLEM, f"{path} is not there", hint)
    if not folder["writable"]:
        text = f"{path} cannot be written: {folder['trouble']}"
        return HostFinding("weights", Severity.PROBLEM, text)
    if wanted and not folder["same"]:
        hint = "is the share mounted there? a file that we made in our weights root is not in it"
        return HostFinding("weights", Severity.PROBLEM, f"{path} is another folder", hint)
    same = ", the same folder as here" if wanted else ""
    return HostFinding("weights", Severity.OK, f"{path} can be written{same}")


def _to_read(folder: Mapping[str, Any]) -> HostFinding:
    path = folder["path"]
    if not folder["there"]:
        hint = "mount it there, or say where it is (weightsReadRoots of the machine)"
        return HostFinding("weights", Severity.PROBLEM, f"{path}, to read from, is not there", hint)
    if not folder.get("readable", True):
        return HostFinding("weights", Severity.PROBLEM, f"{path} cannot be read")
    return HostFinding("weights", Severity.OK, f"{path} can be read")


def _sftp(connection: SshConnection) -> HostFinding:
    try:
        connection.exists(".")
    except SessionRefused as error:
        return HostFinding("sftp", Severity.NOTE, error.message, error.hint)
    except BackendError as error:
        return HostFinding("sftp", Severity.NOTE, error.message)
    return HostFinding("sftp", Severity.OK, "files can be sent and fetched")
