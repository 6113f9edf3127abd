"""The engine as other threads and signal handlers reach it, also before it is there."""

from __future__ import annotations

import queue

from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.engine import Engine


class EngineInbox:
    """Hands facts to the engine of a head. What comes before there is one waits for it.

    From any thread and from signal handlers, but :meth:`connect`.
    """

    def __init__(self) -> None:
        self._engine: Engine | None = None
        self._waiting: queue.SimpleQueue[e.Event] = queue.SimpleQueue()

    def post(self, event: e.Event) -> None:
        """Hand in a fact.

        Raises:
            PassingBackendError: more are waiting than any user could mean.
        """
        if self._engine is None:
            self._waiting.put(event)
            self._pass_on()  # the engine may have come in between
        else:
            self._engine.post(event)

    def connect(self, engine: Engine) -> None:
        """Hand in to this engine from now on, first what has waited. In the head's thread."""
        self._engine = engine
        self._pass_on()

    def abandon(self) -> None:
        """End the engine where it stands, if there is one."""
        if self._engine is not None:
            self._engine.abandon()

    @property
    def state(self) -> State | None:
        """The engine's state, to look at while it changes; None before there is an engine."""
        return None if self._engine is None else self._engine.state

    def _pass_on(self) -> None:
        while self._engine is not None:
            try:
                event = self._waiting.get_nowait()
            except queue.Empty:
                return
            self._engine.post(event)
