"""What the threads of requests are doing, for ``why`` and for reports of stalls."""

from __future__ import annotations

import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.tracebacks import shorten, stack_of

_OWNER = re.compile(r"<locked .*RLock object owner=(\d+)")

#: Files of the standard library in which authors' threads usually stand.
_WAITING_FILES = ("threading.py", "queue.py", "selectors.py", "subprocess.py", "socket.py")


def stacks(threads: Mapping[int, int], gate: Gate, calls: TunerCalls) -> dict[int, str]:
    """One text per request: what it stands in, which lock of the tuner is held by whom, and
    its Python stack without our frames. If a lock is held that knows no owner, the last
    exceptions as well: one that left the locked lines is what usually keeps it so.

    Args:
        threads: request → ident of its thread.
    """
    frames = sys._current_frames()
    names = {ident: f"request {trial}" for trial, ident in threads.items()}
    locks = held_locks(calls.tuner, names)
    if any(line.endswith(_OWNERLESS) for line in locks):
        locks.extend(f"before that, {line}" for line in calls.raised)
    return {trial: _one(trial, frames.get(ident), gate, locks) for trial, ident in threads.items()}


def held_locks(tuner: Any, names: Mapping[int, str]) -> list[str]:
    """Sentences about the tuner's held locks. Only an RLock knows who holds it."""
    found = []
    for attribute, value in list(getattr(tuner, "__dict__", {}).items()):
        owner = _OWNER.match(repr(value)) if isinstance(value, _RLOCK) else None
        if owner is not None:
            holder = _name_of(int(owner.group(1)), names)
            found.append(f"self.{attribute} is held by {holder}")
        elif isinstance(value, _LOCK) and value.locked():
            found.append(f"self.{attribute} is held{_OWNERLESS}")
    return found


_OWNERLESS = " (a plain Lock does not know by whom)"
_RLOCK: Any = type(threading.RLock())
_LOCK: Any = type(threading.Lock())


def _name_of(ident: int, names: Mapping[int, str]) -> str:
    if ident in names:
        return names[ident]
    for thread in threading.enumerate():
        if thread.ident == ident:
            return "the delivery of results" if thread is threading.main_thread() else thread.name
    return "a thread that has ended"


def _one(trial: int, frame: FrameType | None, gate: Gate, locks: Iterable[str]) -> str:
    if frame is None:
        return f"request {trial} has no thread yet"
    lines = stack_of(frame)
    awaited = gate.waiting(trial)
    if awaited:
        head = f"request {trial} waits for {awaited} in wait_for"
    else:
        head = f"request {trial} is at {_place(lines)}"
    text = "".join(traceback.StackSummary.from_list(lines).format())
    return shorten("\n".join([head, *locks, text.rstrip()]))


def place_of(ident: int) -> str:
    """The line of the author's at which a thread is; empty if it is in none."""
    frame = sys._current_frames().get(ident)
    lines = stack_of(frame) if frame is not None else []
    return _place(lines) if lines else ""


def _place(lines: list[traceback.FrameSummary]) -> str:
    """The innermost line of the author's own."""
    for line in reversed(lines):
        if not line.filename.endswith(_WAITING_FILES):
            return f"{line.filename}:{line.lineno} ({line.line})"
    return "an unknown place"
