"""When what one machine makes shows on another: made, looked for, replaced and listed.

Each case has a folder of its own, since a change in one would refresh a client's view of all
names in it. :func:`lay` is before, :func:`prime` fills the readers' caches, :func:`publish`
changes what they have cached, :func:`watch` looks until they see it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from nfs_setup.mounts import READER_PATIENCE_S, Mount, reader_patience_s
from nfs_setup.verify.churn import seed
from nfs_setup.verify.facts import (
    Failure,
    Laid,
    MachineFacts,
    Probes,
    Published,
    Seen,
    Surroundings,
    Survey,
)
from nfs_setup.verify.files import code_of, digest, get, put, replace
from nfs_setup.verify.findings import ORDER, Finding, Level, failed, pairs_text
from nfs_setup.verify.peers import Asked


class Case(NamedTuple):
    """One way to look for a file. ``matters``: readers of weights look in this way; else only
    other programs do. ``meaning``: what it means to see it late."""

    name: str
    matters: bool
    meaning: str


#: ``new``: a name nobody asked for. ``sought``: one that was looked for before it was there,
#: which clients remember. ``announced``: the same for a reader that opens the folder before it
#: looks again, as readers of weights do. ``replaced``: another file under an old name.
#: ``listed``: a new name in a folder that was listed.
CASES: dict[str, Case] = {
    "new": Case("new file", True, "a child starts so much later than its parent ends"),
    "announced": Case("announced file", True, "a child starts so much later than its parent ends"),
    "sought": Case(
        "looked for too early",
        False,
        "a program that looks before a file is there believes for so long that it is not",
    ),
    "replaced": Case("replaced file", True, "readers wait that out"),
    "listed": Case("listed folder", False, "'ls' is behind"),
}

_BYTES = 192 << 10
_SOON_S, _LATER_S = 0.01, 0.2


def lay(folder: str) -> Laid:
    """Make one machine's cases as they are before anything changes, and what it will churn."""
    began = time.monotonic()
    os.mkdir(os.path.join(folder, "views"))
    for case in CASES:
        os.mkdir(os.path.join(folder, "views", case))
    put(_file(folder, "replaced"), os.urandom(_BYTES))
    put(os.path.join(folder, "views", "listed", "before"), b"")
    seed(folder)
    return Laid(time.monotonic() - began)


def prime(folders: list[str], limit_s: float) -> Laid:
    """Look at all machines' cases, as a reader does who comes too early."""
    began = time.monotonic()
    for folder in folders:
        while not os.path.exists(_file(folder, "replaced")):
            if time.monotonic() - began > limit_s:
                raise FileNotFoundError(2, "does not show here", _file(folder, "replaced"))
            time.sleep(_SOON_S)
        get(_file(folder, "replaced"))
        for case in ("announced", "sought"):
            os.path.exists(_file(folder, case))
        os.listdir(os.path.join(folder, "views", "listed"))
    return Laid(time.monotonic() - began)


def publish(folder: str) -> Published:
    """Change one machine's cases, each the way weights are published."""
    digests = {}
    for case in CASES:
        content = os.urandom(_BYTES)
        replace(_file(folder, case), content)
        digests[case] = digest(content)
    found = os.stat(_file(folder, "new"))
    return Published(digests, found.st_uid, found.st_gid)


def watch(folders: dict[str, str], wanted: dict[str, str], limit_s: float) -> Seen:
    """Open all files again and again until they are as they were published.

    A file that is there and is neither what was there before nor what was published is torn;
    the old one is only told from that where a reader saw it, so for ``replaced`` anything but
    a file of the full size counts.

    Args:
        folders: the folder of each writer, by its name.
        wanted: the digest of what was published, by ``writer/case``.
        limit_s: seconds after which what was not seen counts as never seen.
    """
    began = time.monotonic()
    waiting = dict(wanted)
    delays: dict[str, float] = dict.fromkeys(wanted, -1.0)
    torn: dict[str, int] = {}
    errors: dict[str, str] = {}
    while waiting:
        for key, expected in list(waiting.items()):
            writer, _, case = key.partition("/")
            state = _view(folders[writer], case, expected)
            if state == "fresh":
                delays[key] = round(time.monotonic() - began, 3)
                del waiting[key]
            elif state == "torn":
                torn[key] = torn.get(key, 0) + 1
            elif state not in ("old", "ENOENT"):
                errors[key] = state
        spent = time.monotonic() - began
        if spent > limit_s:
            break
        time.sleep(_SOON_S if spent < 1 else _LATER_S)
    owners = {writer: _owner(_file(folder, "new")) for writer, folder in folders.items()}
    return Seen(delays, torn, errors, owners)


def _file(folder: str, case: str) -> str:
    return os.path.join(folder, "views", case, "file")


def _view(folder: str, case: str, expected: str) -> str:
    """Return ``fresh``, ``old``, ``torn``, or the name of an error."""
    try:
        if case == "listed":
            there = os.listdir(os.path.join(folder, "views", "listed"))
            return "fresh" if "file" in there else "old"
        if case == "announced":  # which has a client of NFS ask its server (close-to-open)
            os.close(os.open(os.path.dirname(_file(folder, case)), os.O_RDONLY | os.O_DIRECTORY))
        content = get(_file(folder, case))
    except OSError as error:
        return code_of(error)
    if digest(content) == expected:
        return "fresh"
    return "old" if case == "replaced" and len(content) == _BYTES else "torn"


def _owner(path: str) -> str:
    try:
        found = os.stat(path)
    except OSError as error:
        return code_of(error)
    return f"{found.st_uid}:{found.st_gid}"


PROBES: Probes = {"lay": lay, "prime": prime, "publish": publish, "watch": watch}


def ask_views(machines: Sequence[Asked], watch_s: float, pool: ThreadPoolExecutor) -> list[Asked]:
    """Have all machines lay their cases, look at one another's, publish, and look again.

    Args:
        machines: those that can write to the share.
        watch_s: how long a machine looks at most.
        pool: threads for all machines at once.

    Returns:
        The machines that laid their cases.
    """

    def laying(machine: Asked) -> bool:
        done = machine.ask(Laid, "lay", folder=machine.inside(machine.own))
        machine.facts.published = done if isinstance(done, Failure) else None
        return isinstance(done, Laid)

    def priming(machine: Asked) -> None:
        folders = [machine.inside(w.own) for w in laid if w is not machine]
        done = machine.ask(Laid, "prime", watch_s, folders=folders, limit_s=watch_s)
        if isinstance(done, Failure):
            machine.facts.seen = done

    def publishing(machine: Asked) -> None:
        mine = machine.inside(machine.own)
        machine.facts.published = machine.ask(Published, "publish", folder=mine)

    def watching(machine: Asked) -> None:
        if machine.facts.seen is not None:
            return
        folders, wanted = {}, {}
        for writer in laid:
            published = writer.facts.published
            if writer is machine or not isinstance(published, Published):
                continue
            folders[writer.name] = machine.inside(writer.own)
            for case, wanted_digest in published.digests.items():
                wanted[f"{writer.name}/{case}"] = wanted_digest
        machine.facts.seen = machine.ask(
            Seen, "watch", watch_s, folders=folders, wanted=wanted, limit_s=watch_s
        )

    well = list(pool.map(laying, machines))
    laid = [machine for machine, good in zip(machines, well) if good]
    for step in (priming, publishing, watching):
        for _ in pool.map(step, laid):
            pass
    return laid


#: Later than this, a reader has noticeably waited.
_UNNOTICED_S = 1.0


_SHORTER = "see the load of the server and the network; on NFS, mount without nocto"
_TOO_LATE = (
    "readers of weights give up after {:.0f} s: see whether both have the same folder of the "
    "same server, and its load; on NFS, mount without nocto and with acdirmax=60 or less"
)

_OTHERS = "nothing for bequeath, which asks the server; for other programs: lookupcache=pos"


def judge_views(survey: Survey) -> list[Finding]:
    """Judge when readers saw what writers had published, each case over all pairs."""
    seen: dict[str, list[_Delay]] = {}
    lines = []
    for reader in survey.machines:
        if isinstance(reader.published, Failure):
            lines.append(failed("publishing", reader.name, reader.published))
        if isinstance(reader.seen, Failure):
            lines.append(failed("seen by others", reader.name, reader.seen))
        elif reader.seen is not None:
            for key, delay in reader.seen.delays_s.items():
                writer, _, case = key.rpartition("/")
                late = delay < 0 or delay > _patience_s(reader)
                one = _Delay(f"{reader.name} ← {writer}", delay, late, _patience_s(reader))
                seen.setdefault(case, []).append(one)
            lines += _torn(reader.name, reader.seen)
    for case, delays in seen.items():
        lines += _delays(case, delays, survey.watched_s)
    return lines


class _Delay(NamedTuple):
    where: str
    seconds: float  # negative: never
    too_late: bool
    patience_s: float


def _patience_s(reader: MachineFacts) -> float:
    around = reader.surroundings
    if not isinstance(around, Surroundings):
        return float(READER_PATIENCE_S)
    return reader_patience_s(Mount(around.device, around.point, around.kind, around.options))


def _level(case: Case, delay: _Delay) -> Level:
    if not delay.too_late and delay.seconds <= _UNNOTICED_S:
        return Level.PASSES
    if not case.matters:
        return Level.NOTE
    return Level.WRONG if delay.too_late else Level.SLOW


def _delays(name: str, delays: list[_Delay], watched_s: float) -> list[Finding]:
    case = CASES[name]
    lines = []
    for level in reversed(ORDER):
        these = [delay for delay in delays if _level(case, delay) is level]
        if not these:
            continue
        where = pairs_text([delay.where for delay in these], len(delays))
        worst = max(delay.seconds for delay in these)
        never = min(delay.seconds for delay in these) < 0
        text = f"not seen in {watched_s:.0f} s" if never else f"seen after up to {worst:.2f} s"
        text += "" if level is Level.PASSES else f": {case.meaning}"
        change = {
            Level.PASSES: "",
            Level.NOTE: _OTHERS,
            Level.SLOW: _SHORTER,
            Level.WRONG: _TOO_LATE.format(these[0].patience_s),
        }[level]
        lines.append(Finding(case.name, where, level, text, change))
    return lines


def _torn(reader: str, seen: Seen) -> list[Finding]:
    lines = []
    for key, count in seen.torn.items():
        writer, _, case = key.rpartition("/")
        text = f"{CASES[case].name}: {count} times neither the old nor the new content"
        change = "do not use it: half a file shows under its final name"
        lines.append(Finding("whole files", f"{reader} ← {writer}", Level.WRONG, text, change))
    refused = {key: code for key, code in seen.errors.items() if code in ("EACCES", "EPERM")}
    for key, code in refused.items():
        where = f"{reader} ← {key.rpartition('/')[0]}"
        refusal = Failure("reading what another made", code, "")
        lines.append(failed("seen by others", where, refusal))
    return lines
