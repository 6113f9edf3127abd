"""Inspects a machine for what trials need; the results are findings that people can act on.

What would keep an agent from being started there is found by the same rules as at its start.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.remote_python.bundle import OLDEST
from dispatcher.remote_python.errors import HostUnfit
from dispatcher.remote_python.gpu_findings import AllGpus, judge_gpus
from dispatcher.remote_python.probed import FolderFacts, Probe, Probed, probe, problem_with
from dispatcher.remote_python.runner import RemotePython
from dispatcher.remote_python.supply import supply
from dispatcher.wheelhouse import MODULES, WheelCache

#: A machine may be this far from our clock (seconds) before times in logs confuse people.
_CLOCK_S = 5.0
_LITTLE_DISK = 1 << 30
#: With less not even our own code has room (bytes). An agent's start waits for room, and is no
#: lost cause.
_NO_DISK = 4 << 20
_GPUS_S = 60.0


@dataclass(frozen=True)
class HostNeeds:
    """The needs that a machine is checked for.

    Attributes:
        oldest: major and minor of the oldest Python.
        modules: those that these trials need beside what all do.
        useful: modules that trials can do without, and what they miss then.
        unsafe: for a version of a package, why it is not to be used, or nothing.
        work_folder: for code, logs and working directories; ``~`` stands for the home folder.
        folders: folders there, each with a file that must be in it already (it shows that both of
            us mean the same folder); an empty name asks for nothing.
        read_folders: those that trials only read from.
        cpus: cores that each trial needs.
        gpus: how many each trial needs.
        gpu_memory: of each of them (bytes).
        gpu_indices: those that the file names.
        wheels: the modules on this machine that can be brought.
    """

    oldest: tuple[int, int] = OLDEST
    modules: Sequence[str] = ()
    useful: Mapping[str, str] = field(default_factory=dict)
    unsafe: Mapping[str, Callable[[str], str]] = field(default_factory=dict)
    work_folder: str = "~/.bequeath"
    folders: Mapping[str, str] = field(default_factory=dict)
    read_folders: Sequence[str] = ()
    cpus: float = 0.0
    gpus: float = 0.0
    gpu_memory: int = 0
    gpu_indices: tuple[int, ...] = ()
    wheels: WheelCache = field(default_factory=WheelCache)

    @property
    def probe(self) -> Probe:
        """The questions to a machine. Nothing is made there, but a file without a name in each
        folder that must be written."""
        return Probe(
            self.work_folder,
            make=False,
            modules=(*MODULES, *(x for x in self.modules if x not in MODULES)),
            packages=tuple(self.unsafe),
            folders={**dict.fromkeys(self.read_folders), **self.folders},
        )


def inspect(python: RemotePython, needs: HostNeeds) -> list[Finding]:
    """Look. Blocks for minutes at most; a check that cannot be made is a finding, too.

    Args:
        python: runs there.
        needs: those of trials.
    """
    before = time.time()
    try:
        probed = probe(python, needs.probe)
    except HostUnfit as error:
        return [Finding("python", Severity.PROBLEM, error.message, error.hint)]
    except BackendError as error:
        return [Finding("commands", Severity.PROBLEM, error.message, error.hint)]
    after = time.time()
    found = list(findings_of(probed, python.python, needs))
    return [*found, clock_finding(probed.time, before, after), _gpus(python, needs)]


def findings_of(probed: Probed, python: str, needs: HostNeeds) -> Iterator[Finding]:
    """Judge a machine's answer. Blocks while wheels that it lacks are fetched to this machine.

    Args:
        probed: the answer.
        python: how its Python is called.
        needs: those of trials.
    """
    if ended := probed.python.prolog:
        text = f"its last command ended with exit code {ended}; trials begin all the same"
        hint = "run it there by hand; where that is meant, end it with '; :'"
        yield Finding("prolog", Severity.NOTE, text, hint)
    problem = problem_with(probed, python, needs.oldest)
    refused = "" if problem is None else problem.topic
    if problem is not None:
        yield problem
    if refused != "python":
        yield from _python(probed, needs)
        yield from _modules(probed, needs)
    yield from _packages(probed, needs)
    if refused != "disk":
        yield _room(probed)
    for path, token in needs.folders.items():
        yield _weights(_facts(probed, path), wanted=bool(token))
    for path in needs.read_folders:
        yield _to_read(_facts(probed, path))


def _facts(probed: Probed, path: str) -> FolderFacts:
    return probed.folders.get(path) or FolderFacts(path, there=False)


def _python(probed: Probed, needs: HostNeeds) -> Iterator[Finding]:
    version = ".".join(map(str, probed.version))
    text = f"{version} at {probed.executable}, {probed.cores} cores"
    yield Finding("python", Severity.OK, text)
    if needs.cpus > (probed.cores or needs.cpus):
        text = f"{probed.cores} cores, and each trial needs {needs.cpus:g} (trialCpuNumber)"
        yield Finding("cores", Severity.PROBLEM, text)


def _modules(probed: Probed, needs: HostNeeds) -> Iterator[Finding]:
    try:
        brought = supply(probed, "", needs.wheels).brought
    except HostUnfit as error:
        yield Finding("modules", Severity.PROBLEM, error.message, error.hint)
        return
    lacking = {x: why for x, why in probed.missing.items() if why and x not in brought}
    needed = [name for name in needs.modules if name in lacking]
    if needed:
        why = "; ".join(lacking[name] for name in needed)
        packages = " ".join(_package(name) for name in needed)
        hint = f"{probed.executable} -m pip install {packages}"
        yield Finding("modules", Severity.PROBLEM, f"missing: {why}", hint)
    else:
        there = [
            f"{name} {probed.versions.get(name, '')}".strip()
            for name in probed.missing
            if name not in lacking and name not in brought
        ]
        texts = [", ".join(there)] if there else []
        if brought:
            along = ", ".join(f"{name} {wheel.version}" for name, wheel in brought.items())
            texts.append(f"brought there: {along}")
        yield Finding("modules", Severity.OK, "; ".join(texts))
    for name, missed in needs.useful.items():
        if name in lacking:
            hint = f"{probed.executable} -m pip install {_package(name)}"
            yield Finding("modules", Severity.NOTE, f"no {name}: {missed}", hint)


def _package(module: str) -> str:
    return MODULES[module].replace("_", "-") if module in MODULES else module


def _packages(probed: Probed, needs: HostNeeds) -> Iterator[Finding]:
    for name, why_unsafe in needs.unsafe.items():
        version = probed.packages.get(name, "")
        if version and (why := why_unsafe(version)):
            hint = f"{probed.executable} -m pip install --upgrade {name}"
            yield Finding(name, Severity.NOTE, why, hint)


def clock_finding(there: float, before: float, after: float) -> Finding:
    """Compare clocks.

    Args:
        there: the machine's.
        before: ours, before the machine looked at its own.
        after: ours, after that.
    """
    ahead = there - (before + after) / 2
    unsure = (after - before) / 2
    if abs(ahead) <= unsure:
        return Finding("clock", Severity.OK, f"as ours, within {max(unsure, 0.1):.1f} s")
    way = "ahead" if ahead > 0 else "behind"
    text = f"{abs(ahead):.1f} s {way} of ours (± {unsure:.1f} s)"
    if abs(ahead) - unsure <= _CLOCK_S:
        return Finding("clock", Severity.OK, text)
    hint = "nothing here relies on it but times in logs; does NTP run there?"
    return Finding("clock", Severity.NOTE, text, hint)


def _room(probed: Probed) -> Finding:
    text = f"{probed.folder}, {probed.free / 1e9:.1f} GB free"
    if probed.free < _NO_DISK:
        hint = "free some, or name a folder that has room (workFolder)"
        return Finding("disk", Severity.PROBLEM, f"no room: {text}", hint)
    if probed.free < _LITTLE_DISK:
        return Finding("disk", Severity.NOTE, f"little room: {text}")
    return Finding("disk", Severity.OK, text)


def _weights(folder: FolderFacts, *, wanted: bool) -> Finding:
    path = folder.path
    if not folder.there:
        hint = "mount the share there (bequeath nfs client), or write where it is (weightsRoot)"
        return Finding("weights", Severity.PROBLEM, f"{path} is not there", hint)
    if not folder.writable:
        text = f"{path} cannot be written: {folder.trouble}"
        return Finding("weights", Severity.PROBLEM, text)
    if wanted and not folder.same:
        hint = "is the share mounted there? a file that we made in our weights root is not in it"
        return Finding("weights", Severity.PROBLEM, f"{path} is another folder", hint)
    if folder.renames:
        text = f"{path} {folder.renames}: a child could see half of its parent's weights"
        hint = "name the store itself, such as 'weightsRoot: s3://BUCKET/FOLDER'"
        return Finding("weights", Severity.PROBLEM, text, hint)
    same = ", the same folder as here" if wanted else ""
    return Finding("weights", Severity.OK, f"{path} can be written{same}")


def _to_read(folder: FolderFacts) -> Finding:
    path = folder.path
    if not folder.there:
        hint = "mount it there, or write where it is (weightsReadRoots of the machine)"
        return Finding("weights", Severity.PROBLEM, f"{path}, to read from, is not there", hint)
    if not folder.readable:
        return Finding("weights", Severity.PROBLEM, f"{path} cannot be read")
    return Finding("weights", Severity.OK, f"{path} can be read")


def _gpus(python: RemotePython, needs: HostNeeds) -> Finding:
    try:
        facts = python.ask("gpus", {}, AllGpus, limit_s=_GPUS_S)
    except BackendError as error:
        return Finding("gpus", Severity.NOTE, f"cannot be looked at: {error.message}")
    return judge_gpus(facts, wanted=needs.gpus, indices=needs.gpu_indices, memory=needs.gpu_memory)
