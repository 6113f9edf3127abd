"""One plot, computed by a process of its own: the question on stdin, the answer on stdout.

It begins as ``python -m dispatcher.web.plot_process``, at low priority and with bounds on processor
time and memory, and ends with its answer.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import Any, Final

import msgspec

from dispatcher.errors import DispatcherError
from dispatcher.operations.faults import problem_of
from dispatcher.operations.operation import Context, arguments_of, perform
from dispatcher.operations.table import operation

#: The first byte of an answer: a plot, or an error.
DONE: Final = b"+"
FAILED: Final = b"-"

_CPU_S: Final = 120
_MEMORY_BYTES: Final = 8 << 30


class WantedPlot(msgspec.Struct, frozen=True):
    """An operation on the experiment in a folder."""

    folder: str
    name: str
    arguments: dict[str, Any]


def main() -> None:
    """Answer one question."""
    os.nice(5)
    for kind, most in ((resource.RLIMIT_CPU, _CPU_S), (resource.RLIMIT_AS, _MEMORY_BYTES)):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))
    wanted = msgspec.json.decode(sys.stdin.buffer.read(), type=WantedPlot)
    sys.stdout.buffer.write(answer_to(wanted))


def answer_to(wanted: WantedPlot) -> bytes:
    """Return :data:`DONE` and the plot, or :data:`FAILED` and what is wrong, as JSON.

    Args:
        wanted: the question.
    """
    row = operation(wanted.name)
    try:
        given = arguments_of(row, wanted.arguments)
        found = perform(row, Context(who="the web page"), given, experiment=wanted.folder)
    except DispatcherError as error:
        return FAILED + msgspec.json.encode(problem_of(error))
    return DONE + (found if isinstance(found, bytes) else msgspec.json.encode(found))


if __name__ == "__main__":
    main()
