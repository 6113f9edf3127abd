"""The judgement how an attempt ended: one of the reasons of the wire."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from trial_runtime.agent.attempt import Exit
from trial_runtime.facts import EndReason

#: How the last line begins when memory has run out: Python's own error and its children, such
#: as numpy's and torch's, under whatever module; torch on the processor, which raises a plain
#: RuntimeError; C++, which says so before it aborts.
_MEMORY_ERROR = re.compile(
    r"([\w.]+\.)?\w*(MemoryError|OutOfMemoryError)(:|$)"
    r"|RuntimeError: .*(DefaultCPUAllocator: can't allocate memory|CUDA out of memory)"
    r"|\s*what\(\):\s+std::bad_alloc$"
)

#: bash: found and not executable; not found. Exit codes above this are 128 + signal.
_NOT_EXECUTABLE, _NOT_FOUND, _SIGNAL_BASE = 126, 127, 128

#: Signals from outside. A process prints something about the others, and nothing about these.
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Ending(NamedTuple):
    """A reason, with a text for the user."""

    reason: EndReason
    text: str


def ending_of(
    exit: Exit,
    *,
    stop_reason: EndReason | None,
    out_of_memory: bool,
    by_bash: bool,
    spoke: bool,
    tail: str,
    stop_text: str = "",
) -> Ending:
    """Judge an exit.

    Args:
        exit: the end of its process.
        stop_reason: why the attempt was asked to stop, if it was.
        out_of_memory: whether the kernel has killed something for memory lately.
        by_bash: the process was a bash that ran a command, with bash's exit codes.
        spoke: the trial's code ran: it sent something to the agent.
        tail: the last lines of its standard error.
        stop_text: more about why it was asked to stop.
    """
    text = exit.text or tail
    killed = exit.signal == signal.SIGKILL or (
        by_bash and exit.code == _SIGNAL_BASE + signal.SIGKILL
    )
    if exit.lost:
        return Ending(EndReason.LOST, text)
    if stop_reason is not None:
        # A trial that obeys the request and exits with 0 was stopped all the same.
        text = text if exit.code != 0 else ""
        return Ending(stop_reason, f"{stop_text}\n{text}".strip() if stop_text else text)
    if exit.out_of_memory or (killed and out_of_memory):
        return Ending(
            EndReason.OUT_OF_MEMORY,
            text or "ended by the kernel because memory ran out",
        )
    aborted = exit.signal in (None, signal.SIGABRT)  # of itself, not by others
    if exit.code != 0 and aborted and _MEMORY_ERROR.match(_last_line(text)):
        return Ending(EndReason.OUT_OF_MEMORY, text)
    if exit.signal in _FROM_OUTSIDE:  # what it had printed before is no reason for that
        return Ending(EndReason.SIGNALLED, exit.text or f"ended by {_signal_name(exit.signal)}")
    if exit.signal is not None:
        return Ending(EndReason.SIGNALLED, text or f"ended by {_signal_name(exit.signal)}")
    if exit.code == 0:
        return Ending(EndReason.FINISHED, "")
    if by_bash and not spoke and exit.code in (_NOT_FOUND, _NOT_EXECUTABLE):
        return Ending(EndReason.START_FAILED, text)
    return Ending(EndReason.FAILED, text or f"exit code {exit.code}, and nothing on standard error")


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
