"""The probe of a service: one allocation in which a program looks for what agents will need there,
before any trial is placed. What it says is judged as the answer of a machine over SSH is."""

from __future__ import annotations

import contextlib
import os
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
from msgspec.structs import replace as changed

from dispatcher.codec import UNREADABLE
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.allocations.allocation import (
    TAKEN_BACK,
    Allocation,
    AllocationOrder,
    AllocationState,
    Gone,
)
from dispatcher.platforms.allocations.order import order_of
from dispatcher.remote_python.bundle import our_programs
from dispatcher.remote_python.findings import HostNeeds, clock_finding, findings_of
from dispatcher.remote_python.gpu_findings import AllGpus, judge_gpus
from dispatcher.remote_python.probed import Probed
from dispatcher.remote_python.runner import too_old
from trial_runtime.agent.config import AgentConfig, ProbeQuestions
from trial_runtime.agent.processes.record import write_private

#: Bytes of an answer that are read.
MOST_BYTES = 64 << 10

#: An answer may be seen late, and so may an allocation in its scheduler's list (seconds); that of
#: one that has failed was hardly ever given.
LATE_S, SOON_S = 60.0, 1.0

#: So many probes are asked for whose places were taken back.
MOST_TRIES = 3

#: The keys of the file that say what a finding is about, by its topic.
KEYS = {
    "head": "headAddress, channel",
    "weights": "weightsRoot",
    "code": "bringCode, trialCodeDirectory",
    "disk": "workFolder, sharedFolder",
    "python": "python",
    "modules": "python, image, bringCode",
}


@dataclass(frozen=True, slots=True)
class ProbeNeeds:
    """The needs for which places of a service are looked over.

    Attributes:
        host: the needs of trials, as of a machine.
        python: how its Python is called.
        brings_code: whether our runtime and the trials' code are brought.
        brings_modules: whether modules that it lacks are.
        too_large: those that are not, all the same.
        gpus_asked: how many GPUs a place is asked for with.
        record: a file for the answer of a place that will do; None: nobody wants it.
    """

    host: HostNeeds = field(default_factory=HostNeeds)
    python: str = "python3"
    brings_code: bool = False
    brings_modules: bool = False
    too_large: tuple[str, ...] = ()
    gpus_asked: float = 0.0
    record: Path | None = None


class PlaceProbe:
    """One probe under way.

    Args:
        label: the beginning of the names of all allocations of the service.
        config: of an agent of the service, as on this machine.
        home: the folder that this agent would keep to.
        needs: those of trials there.
    """

    def __init__(self, label: str, config: AgentConfig, home: Path, needs: ProbeNeeds) -> None:
        self.name = f"{label}-probe-{secrets.token_hex(2)}"
        self.waits = ""  # why there is no answer yet
        self._needs = needs
        self._nodes = config.nodes
        self._marker = self._lay_marker(config)
        self._answer = home / f"{self.name}.answer"
        host = needs.host
        questions = ProbeQuestions(
            answer=self._answer.name,
            modules=tuple(dict.fromkeys((*host.probe.modules, *_more(config, needs)))),
            packages=tuple(host.probe.packages),
            marker="" if self._marker is None else self._marker.name,
            code=not needs.brings_code,
        )
        ticket = secrets.token_hex(16)
        order = order_of(self.name, changed(config, probe=questions, ticket=ticket), home)
        program = our_programs().arguments_with_code("allocation", alone=False)
        self.order = replace(order, arguments=tuple(program))
        self._not_before = self._looked_at = time.time()  # that it can have looked at its clock
        self._ended_at: float | None = None
        self._head = config.head.address
        self._no_weights = config.no_weights

    def lay(self) -> None:
        """Make what it needs before it is ordered. Raises ``OSError``."""
        self._answer.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in answer_files(self._answer, self._nodes):
            write_private(path, b"")

    def _lay_marker(self, config: AgentConfig) -> Path | None:
        """A file in the weights root by which it is known there; None where none can be made."""
        root = Path(config.weights_root)
        if config.remote is not None or config.no_weights or not root.is_dir():
            return None
        marker = root / f".bequeath-seen-{secrets.token_hex(8)}"
        try:
            marker.touch()
        except OSError:
            return None
        return marker

    def close(self) -> None:
        """Remove what it has needed here."""
        for path in (self._marker, *answer_files(self._answer, self._nodes)):
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()

    def look(
        self, allocation: Allocation | None, answer: str, now: float
    ) -> tuple[Finding, ...] | None:
        """Take in what is seen of it; returns what was found, once it is over. Empty: its place
        was taken back before it could answer.

        Args:
            allocation: as its scheduler lists it; None: it does not.
            answer: what it has said so far.
            now: monotonic seconds.
        """
        state = AllocationState.UNKNOWN if allocation is None else allocation.state
        answers = _decoded(answer, self._nodes)
        if len(answers) == self._nodes:
            return tuple(self._judged(answers))
        if allocation is not None and state is not AllocationState.ENDED:
            self.waits, self._ended_at = allocation.reason or str(state), None
            if state in (AllocationState.WAITING, AllocationState.STARTING):
                self._not_before = self._looked_at  # it may have begun since it was listed
            self._looked_at = time.time()
            return None
        if allocation is not None and allocation.gone in TAKEN_BACK:
            return ()
        self._ended_at = now if self._ended_at is None else self._ended_at
        fails = allocation is not None and allocation.gone not in (None, Gone.FINISHED)
        if now - self._ended_at < (SOON_S if fails else LATE_S):
            return None
        return (
            *self._judged(answers),
            self._silent(allocation, "" if answers else answer, answers),
        )

    def _judged(self, answers: Sequence[Probed]) -> Iterator[Finding]:
        """The findings of all nodes: of those that are well, what the first has said."""
        if self._no_weights:
            text = "trials that save weights, or restore them, cannot run there"
            yield Finding("weights", Severity.NOTE, text, self._no_weights)
        marked = self._marker is not None
        found: dict[Finding, list[str]] = {}  # with the nodes that each is about
        for number, probed in enumerate(answers):
            own = list(findings_of_place(probed, self._needs, self._head, marked=marked))
            own.append(clock_finding(probed.time, self._not_before, time.time()))
            for each in map(_with_keys, own):
                if number == 0 or each.severity is not Severity.OK:
                    found.setdefault(each, []).append(probed.node)
        for each, nodes in found.items():
            everywhere = each.severity is Severity.OK or len(nodes) == self._nodes
            where = "" if everywhere else f"on {', '.join(dict.fromkeys(nodes))}: "
            yield replace(each, text=f"{where}{each.text}")

    def _silent(
        self, allocation: Allocation | None, printed: str, answers: Sequence[Probed]
    ) -> Finding:
        """The finding of one that has ended without an answer, or without that of each node."""
        last = next((x.strip() for x in reversed(printed.splitlines()) if x.strip()), "")
        if old := too_old(last.encode(), self._needs.python, ""):
            return _with_keys(Finding("python", Severity.PROBLEM, old.message))
        how = "it is not listed any more" if allocation is None else allocation.reason
        why = ": ".join(dict.fromkeys(text for text in (how, last[:300]) if text))
        text = "its probe job has ended without an answer" + (f": {why}" if why else "")
        if answers:
            text = f"of its probe job {len(answers)} of {self._nodes} nodes have answered: {why}"
        hint = "do its nodes see the folder of the experiment (sharedFolder), and is 'python' there"
        names_python = self._needs.python in text  # a shell that has not found it
        keys = (("python",), ("trialPython",)) if names_python else ()
        return Finding("probe", Severity.PROBLEM, text, f"{hint}?", keys)


def findings_of_place(
    probed: Probed, needs: ProbeNeeds, head: str, *, marked: bool
) -> Iterator[Finding]:
    """Judge the answer of a probe.

    Args:
        probed: the answer.
        needs: those of trials there.
        head: the address that agents on this machine would use.
        marked: whether a file of ours is in the weights root.
    """
    if probed.head:
        text = f"an agent there does not reach the head: {probed.head}"
        yield Finding("head", Severity.PROBLEM, text, "is it the address that nodes see?")
    elif head:
        yield Finding("head", Severity.OK, f"an agent there reaches the head: {probed.way}")
    if probed.lacks_code:
        text = f"the trials' code is not there: {probed.lacks_code}"
        yield Finding("code", Severity.PROBLEM, text, "'bringCode: true' has it sent")
    if probed.store:
        yield _store(probed)
    folders = probed.folders
    host = replace(
        needs.host,
        folders={"weights": "marked" * marked} if "weights" in folders else {},
        read_folders=[name for name in folders if name.startswith("read ")],
    )
    if probed.gpus is not None:
        yield _gpus(probed.gpus, needs)
    own = _lacking(probed, needs)
    for finding in findings_of(probed, needs.python, host):
        if own is None or finding.topic != "modules":
            yield finding
    if own is not None:
        yield own


def _store(probed: Probed) -> Finding:
    """The finding about the store of weights: whether somebody answers there."""
    if not probed.store_trouble:
        return Finding("weights", Severity.OK, f"the store at {probed.store} is reached")
    text = f"the store of weights at {probed.store} is not reached: {probed.store_trouble}"
    hint = "is that its address there? a proxy that its library knows is not tried here"
    return Finding("weights", Severity.NOTE, text, hint)


def _gpus(facts: AllGpus, needs: ProbeNeeds) -> Finding:
    """The finding about its GPUs: whether they do for trials, and are those that were asked for."""
    host = needs.host
    found = judge_gpus(facts, wanted=host.gpus, indices=host.gpu_indices, memory=host.gpu_memory)
    if found.severity is Severity.PROBLEM or len(facts.gpus) >= needs.gpus_asked:
        return found
    text = f"{found.text}, and the file asks for {needs.gpus_asked:g} in a place"
    hint = "those of another make than NVIDIA's are not counted"
    return replace(found, severity=Severity.NOTE, text=text, hint=hint)


def answer_files(first: Path, nodes: int) -> list[Path]:
    """The files for the answers of all nodes of an allocation.

    Args:
        first: that of the first node.
        nodes: how many there are.
    """
    return [first, *(first.with_name(f"{first.name}.{rank}") for rank in range(1, nodes))]


def _lacking(probed: Probed, needs: ProbeNeeds) -> Finding | None:
    """The finding about its modules, where none are brought; None where they are."""
    if needs.brings_modules:
        large = [name for name in needs.too_large if probed.missing.get(name)]
        if not large:
            return None
        text = f"{probed.executable} has no {', '.join(large)}, too large to be brought"
        return Finding("modules", Severity.PROBLEM, text, "install it there")
    useful = needs.host.useful
    lacking = [name for name, why in probed.missing.items() if why and name not in useful]
    if not lacking:
        there = [f"{name} {version}".strip() for name, version in probed.versions.items()]
        return Finding("modules", Severity.OK, ", ".join(there) or "all that are needed")
    why = f"{probed.executable} has no {', '.join(lacking)} ({probed.missing[lacking[0]]})"
    return Finding("modules", Severity.PROBLEM, why, "install them there, or have them brought")


def _more(config: AgentConfig, needs: ProbeNeeds) -> Iterator[str]:
    """Modules that are asked for beside those of all agents."""
    if not needs.brings_code:
        yield "trial_runtime"
    if config.trial.reuse != "none":
        yield from config.trial.preload


def _with_keys(finding: Finding) -> Finding:
    keys = KEYS.get(finding.topic)
    if finding.severity is not Severity.PROBLEM or keys is None:
        return finding
    hint = f"{finding.hint}; " if finding.hint else ""
    return replace(finding, hint=f"{hint}see {keys}")


def _decoded(answer: str, most: int) -> list[Probed]:
    """The last answers in a text, in its order."""
    found: list[Probed] = []
    for line in reversed(answer.splitlines()):
        if len(found) < most:
            with contextlib.suppress(*UNREADABLE):
                found.insert(0, msgspec.json.decode(line, type=Probed))
    return found


def sentence(findings: Sequence[Finding]) -> str:
    """The problems among findings, as one text for people; empty if there is none."""
    problems = [each for each in findings if each.severity is Severity.PROBLEM]
    texts = [f"{x.text} ({x.hint})" if x.hint else x.text for x in problems]
    return "; ".join(texts)


def recorded(record: Path | None) -> Probed | None:
    """The answer that is in a record; None if there is none."""
    found = [] if record is None else _decoded(_tail(record), 1)
    return found[0] if found else None


def text_of(order: AllocationOrder) -> str:
    """The text of a probe in the folder that it shares with this machine: its answer, or the end of
    its log."""
    home = Path(order.config.experiment_folder)
    answer = ""
    if order.config.probe is not None:
        files = answer_files(home / order.config.probe.answer, order.nodes)
        answer = "\n".join(filter(None, map(_tail, files)))
    return answer or (_tail(Path(order.log)) if order.log else "")


def _tail(path: Path) -> str:
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            end = file.seek(0, os.SEEK_END)
            file.seek(max(0, end - MOST_BYTES))
            return file.read(MOST_BYTES).decode(errors="replace")
    except OSError:
        return ""
