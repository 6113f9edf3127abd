"""Describes what the threads of requests are doing, for ``why`` and for reports of stalls."""

from __future__ import annotations

import os
import re
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from types import FrameType
from typing import Any

from dispatcher.text_width import some_of
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.tracebacks import shorten, stack_of

_OWNER = re.compile(r"<locked .*RLock object owner=(\d+)")

#: Files of the standard library in which authors' threads usually stand.
_WAITING_FILES = ("threading.py", "queue.py", "selectors.py", "subprocess.py", "socket.py")

#: Requests that a report names before it counts the rest; longest line of code in a sentence.
_NAMED = 8
_MOST_OF_A_LINE = 60


def stacks(
    threads: Mapping[int, int], gate: Gate, calls: TunerCalls, delivering: int | None = None
) -> dict[int, str]:
    """Describe each request: its wait, the tuner's held locks with their owners, and its Python
    stack without our frames.

    If a lock is held that knows no owner, the last exceptions follow: one that left the locked
    lines is the usual cause.

    Args:
        threads: request → ident of its thread.
        gate: knows the waits.
        calls: the tuner.
        delivering: the trial among them whose result or end is being delivered; None: none.
    """
    frames = sys._current_frames()
    names = {
        trial: f"the delivery of trial {trial}" if trial == delivering else f"request {trial}"
        for trial in threads
    }
    locks = held_locks(calls.tuner, {ident: names[trial] for trial, ident in threads.items()})
    if any(line.endswith(_OWNERLESS) for line in locks):
        locks.extend(f"before that, {line}" for line in calls.raised)
    return {
        trial: _one(names[trial], frames.get(ident), gate.waiting(trial), locks)
        for trial, ident in threads.items()
    }


def together(stacks: Mapping[int, str]) -> str:
    """Join stacks to a report in which requests at the same place share one text."""
    groups: dict[str, list[int]] = {}
    for trial, text in sorted(stacks.items()):
        groups.setdefault(text.removeprefix(f"request {trial} "), []).append(trial)
    parts = []
    for text, trials in groups.items():
        if len(trials) == 1:
            parts.append(stacks[trials[0]])
            continue
        parts.append(f"requests {some_of(trials, _NAMED)}: each {text}")
    return "\n\n".join(parts)


def where(frame: FrameType | None) -> str:
    """The author's line at which a thread stands, for a sentence; empty if there is none."""
    line = _authors_line(stack_of(frame)) if frame is not None else None
    if line is None:
        return ""
    code = shorten_line(line.line or "")
    place = f"{os.path.basename(line.filename)}:{line.lineno}"
    return f"`{code}` at {place}" if code else f"a wait of its own at {place}"


def shorten_line(code: str) -> str:
    """Cut a line of code for a sentence."""
    code = " ".join(code.split())
    return code if len(code) <= _MOST_OF_A_LINE else f"{code[:_MOST_OF_A_LINE]}…"


def held_locks(tuner: Any, names: Mapping[int, str]) -> list[str]:
    """Sentences about the tuner's held locks. Only an RLock knows its owner."""
    sentences = []
    for attribute, value in list(getattr(tuner, "__dict__", {}).items()):
        owner = _OWNER.match(repr(value)) if isinstance(value, _RLOCK) else None
        if owner is not None:
            holder = _name_of(int(owner.group(1)), names)
            sentences.append(f"self.{attribute} is held by {holder}")
        elif isinstance(value, _LOCK) and value.locked():
            sentences.append(f"self.{attribute} is held{_OWNERLESS}")
    return sentences


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


def _one(name: str, frame: FrameType | None, awaited: str, locks: Iterable[str]) -> str:
    if frame is None:
        return f"{name} has no thread yet"
    lines = stack_of(frame)
    head = f"{name} waits for {awaited} in wait_for" if awaited else f"{name} is at {_place(lines)}"
    text = "".join(traceback.StackSummary.from_list(lines).format())
    return shorten("\n".join([head, *locks, text.rstrip()]))


def place_of(ident: int) -> str:
    """The author's line at which a thread is; empty if it is in none."""
    frame = sys._current_frames().get(ident)
    lines = stack_of(frame) if frame is not None else []
    return _place(lines) if lines else ""


def _place(lines: list[traceback.FrameSummary]) -> str:
    line = _authors_line(lines)
    return "an unknown place" if line is None else f"{line.filename}:{line.lineno} ({line.line})"


def _authors_line(lines: list[traceback.FrameSummary]) -> traceback.FrameSummary | None:
    """The innermost line of the author's own."""
    own = (line for line in reversed(lines) if not line.filename.endswith(_WAITING_FILES))
    return next(own, None)
