"""Named places at which tests let a process of ours die, stop, wait or fail.

A failpoint stands between two durable steps. It does nothing unless the environment names it::

    BEQUEATH_FAILPOINTS="head.journal.committed@3=kill,weights.manifest.written=raise:ENOSPC"

``@3`` means the third time this process comes by (the first, without it); each strikes once.
``@*`` means every time. Actions: ``kill`` (SIGKILL to this process), ``stop`` (SIGSTOP),
``exit:N`` (``os._exit``), ``sleep:SECONDS``, ``raise:ERRNO`` (an ``OSError``, such as ENOSPC).

The names in use are listed in :data:`NAMES`; a test walks them.
"""

from __future__ import annotations

import errno
import os
import signal
import time
from typing import Final

VARIABLE: Final = "BEQUEATH_FAILPOINTS"

#: Every failpoint of the product, with the two steps that it stands between.
NAMES: Final[dict[str, str]] = {}


class _Plan:
    """What the environment asked for, counted down."""

    def __init__(self, text: str) -> None:
        self._due: dict[str, list[tuple[int | None, str]]] = {}
        self._seen: dict[str, int] = {}
        for part in filter(None, (one.strip() for one in text.split(","))):
            place, _, action = part.partition("=")
            name, _, hit = place.partition("@")
            if not action:
                raise ValueError(f"{VARIABLE}: {part!r} names no action")
            number = None if hit == "*" else int(hit or 1)
            self._due.setdefault(name, []).append((number, action))

    def reach(self, name: str) -> None:
        """Strike, if it is the time."""
        if name not in self._due:
            return
        seen = self._seen[name] = self._seen.get(name, 0) + 1
        for number, action in self._due[name]:
            if number is None or number == seen:
                _strike(name, action)


def _strike(name: str, action: str) -> None:
    kind, _, value = action.partition(":")
    match kind:
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "stop":
            os.kill(os.getpid(), signal.SIGSTOP)
        case "exit":
            os._exit(int(value or 1))
        case "sleep":
            time.sleep(float(value))
        case "raise":
            number = getattr(errno, value)
            raise OSError(number, f"{os.strerror(number)} (failpoint {name})")
        case _:
            raise ValueError(f"{VARIABLE}: unknown action {action!r} for {name}")


_plan = _Plan(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None


def failpoint(name: str) -> None:
    """Mark a step; free of cost, and of effect, unless a test asked for it."""
    if _plan is not None:
        _plan.reach(name)
