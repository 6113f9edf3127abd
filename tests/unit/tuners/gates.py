"""Gates for tests: one that is always open, one that opens when told."""

from __future__ import annotations

import threading
from typing import Any

from tuners import ParentFailed


class OpenGate:
    """Every parent has ended; those in ``failed`` cannot bequeath."""

    def __init__(self, failed: set[int] | None = None) -> None:
        self.failed = failed or set()
        self.waited: list[tuple[int, ...]] = []

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        self.waited.append(parents)
        for parent in parents:
            if parent in self.failed:
                raise ParentFailed(parent, "killed")
        return list(parents)


class TicketGate(OpenGate):
    """Blocks until ``open(parent)``; ``blocked`` is set when somebody waits."""

    def __init__(self) -> None:
        super().__init__()
        self.blocked = threading.Event()
        self._tickets: dict[int, threading.Event] = {}
        self._guard = threading.Lock()

    def _ticket(self, parent: int) -> threading.Event:
        with self._guard:
            return self._tickets.setdefault(parent, threading.Event())

    def open(self, parent: int) -> None:
        self._ticket(parent).set()

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        for parent in parents:
            ticket = self._ticket(parent)
            if not ticket.is_set():
                self.blocked.set()
                assert ticket.wait(120), "the test never opened the gate"
        return super().wait(parents, mode, timeout)


def with_gate(tuner: Any, gate: OpenGate | None = None) -> Any:
    tuner._bequeath_gate = gate or OpenGate()
    return tuner
