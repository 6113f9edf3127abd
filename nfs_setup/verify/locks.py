"""Whether a lock that one machine holds keeps another one out.

The others leave a mark once they were refused, so that nobody holds it for longer than that
takes, and nobody has to begin at the same moment.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from nfs_setup.verify.facts import Failure, Held, Locked, Probes
from nfs_setup.verify.files import code_of, put
from nfs_setup.verify.findings import Finding, Level, meaning_of
from nfs_setup.verify.peers import Asked

_POLL_S = 0.02
_TAKEN = ("EAGAIN", "EACCES")


def hold(path: str, marks: list[str], seconds: float) -> Held:
    """Take a lock, and keep it until all marks are there or the time is over.

    Args:
        path: the file that is locked.
        marks: the files that the others make once they were refused.
        seconds: how long at most.
    """
    last = time.monotonic() + seconds
    with _Lock(path) as lock:
        lock.take()
        while not lock.taken and not lock.error and time.monotonic() < last:
            time.sleep(_POLL_S)  # somebody tries it for a moment
            lock.take()
        while lock.taken and not _all_there(marks) and time.monotonic() < last:
            time.sleep(_POLL_S)
        return Held(lock.taken, lock.refused, lock.error)


def attempt(path: str, mark: str, seconds: float) -> Held:
    """Take a lock and release it at once, again and again, until it is refused or the time is over.

    Args:
        path: the file that is locked.
        mark: the file to make at the end.
        seconds: how long at most.
    """
    last = time.monotonic() + seconds
    had = False
    with _Lock(path) as lock:
        lock.take()
        while not lock.refused and not lock.error and time.monotonic() < last:
            had = had or lock.taken
            lock.let_go()
            time.sleep(_POLL_S)
            lock.take()
        had = had or lock.taken
        lock.let_go()
        put(mark, b"")
        return Held(had, lock.refused, lock.error)


class _Lock:
    """A lock on a file that is made where it is missing."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor = -1
        self.taken = self.refused = False
        self.error = ""

    def __enter__(self) -> _Lock:
        self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o660)
        return self

    def __exit__(self, *raised: object) -> None:
        os.close(self._descriptor)

    def take(self) -> None:
        """Try to take it, once."""
        try:
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if code_of(error) in _TAKEN:
                self.refused = True
            else:
                self.error = code_of(error)
        else:
            self.taken = True

    def let_go(self) -> None:
        """Release it, if it is held."""
        if self.taken:
            fcntl.lockf(self._descriptor, fcntl.LOCK_UN)
            self.taken = False


def _all_there(marks: list[str]) -> bool:
    """Whether all marks are there: listed, since a client of NFS asks its server for that."""
    folders = {os.path.dirname(mark) for mark in marks}
    there = {os.path.join(folder, name) for folder in folders for name in os.listdir(folder)}
    return there.issuperset(marks)


PROBES: Probes = {"hold": hold, "attempt": attempt}


def ask_locks(
    holder: Asked, others: Sequence[Asked], hold_s: float, pool: ThreadPoolExecutor
) -> list[Locked]:
    """Have one machine hold a lock while the others try, until each was refused.

    Args:
        holder: the machine that holds it; nobody has to begin first.
        others: those that try.
        hold_s: how long at most.
        pool: threads for all machines at once.
    """
    seconds = hold_s + max(map(_trip_s, (holder, *others)))

    def mark(machine: Asked, other: Asked) -> str:
        return machine.inside(holder.own, f"refused.{other.own}")

    def ask(machine: Asked) -> Held | Failure:
        path = machine.inside(holder.own, "lock")
        if machine is holder:
            marks = [mark(holder, other) for other in others]
            return machine.ask(Held, "hold", seconds, path=path, marks=marks, seconds=seconds)
        mine = mark(machine, machine)
        return machine.ask(Held, "attempt", seconds, path=path, mark=mine, seconds=seconds)

    held, *tried = pool.map(ask, (holder, *others))
    return [Locked(holder.name, o.name, held, t) for o, t in zip(others, tried)]


def _trip_s(machine: Asked) -> float:
    """Return the seconds that a question and its answer take at least."""
    clock = machine.facts.clock
    return clock.ahead_most_s - clock.ahead_least_s if clock is not None else 0.0


def judge_locks(locks: Sequence[Locked]) -> list[Finding]:
    """Judge locks between machines. Nothing of bequeath on a share depends on them."""
    lines = []
    for one in locks:
        where = f"{one.other} ← {one.holder}"
        bad = next((h for h in (one.held, one.tried) if isinstance(h, Failure)), None)
        error = next(
            (h.error for h in (one.held, one.tried) if isinstance(h, Held) and h.error), ""
        )
        if isinstance(one.tried, Held) and one.tried.refused:
            lines.append(Finding("locks", where, Level.PASSES, "one keeps the other out"))
            continue
        text = meaning_of(bad)[0] if bad else f"they do not work ({error})" if error else ""
        text = text or "a lock of one does not keep the other out"
        change = "nothing for bequeath, whose weights need none; other programs may"
        lines.append(Finding("locks", where, Level.NOTE, text, change))
    return lines
