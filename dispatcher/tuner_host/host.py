"""Joins the parts of the tuner host's process, and says which thread does what.

- The main thread builds the tuner, restores it, then delivers results for ever.
- ``tuner-io`` talks to the head, and looks after the run token, foreign waits and the deadline.
- ``tuner-req-<id>`` runs the request of that number.
- ``tuner-assessor`` looks at intermediate results, if there is an assessor.
- ``tuner-exit`` calls ``_on_exit`` when the head ends the experiment.
"""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import zmq

from dispatcher.core.events import TrialStopRequested, TunerHostReady
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import DispatcherError
from dispatcher.tuner_host import load, parent_pipe, restore
from dispatcher.tuner_host.adapter import HostServices
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.foreign_waits import (
    ThreadOfOurs,
    ran_ns,
)
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.io_loop import GATHER_S, IoLoop
from dispatcher.tuner_host.messages import Hello, Note, Shutdown, TunerBroken
from dispatcher.tuner_host.outbox import Outbox
from dispatcher.tuner_host.own_threads import note_own_threads
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.serving import Serving
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.wind_down import EXIT_BROKEN, EXIT_INTERNAL, WindDown, log
from trial_runtime.endpoint import connect

SERIAL = "multiThread is false: all tuner calls run one after another in one thread"


class Host:
    """Joins the parts of the process: those that are there before the tuner, and
    :class:`~dispatcher.tuner_host.serving.Serving` once there is one.

    Args:
        config: what the head wrote for this process.
        clock: monotonic seconds.
        ran: processor time of a thread (ns).

    Attributes:
        outbox: what is said to the head.
        run_token: who runs in the author's code.
        gate: who waits.
    """

    def __init__(
        self,
        config: TunerHostConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        ran: Callable[[ThreadOfOurs], int | None] = ran_ns,
    ) -> None:
        self._config = config
        self._clock, self._processor_ns = clock, ran
        self.outbox = Outbox()
        self.run_token = RunToken(clock)
        self._serving: Serving | None = None  # once the tuner is where it was
        self._early: deque[Any] = deque()  # the head's messages of before
        self._look_at = 0.0
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._io = IoLoop(
            connect(self._context, config.endpoint),
            self.outbox,
            take=self.take,
            due=self._due,
            head_pipe=config.head_pipe,
            orphaned=lambda: os._exit(0),
        )
        self.gate = Gate(
            self.run_token,
            refusal="" if config.multi_thread else SERIAL,
            make_way=self._io.make_way,
        )
        self._ending = WindDown(self.gate)

    # ---- the main thread -----------------------------------------------------------------

    def run(self) -> None:
        """Build the tuner and serve the head; never returns."""
        note_own_threads(self._note)
        self.outbox.say(Hello(os.getpid()))
        io_thread = threading.Thread(target=self._talk, name="tuner-io", daemon=True)
        io_thread.start()
        try:
            serving = self._set_up()
        except DispatcherError as error:
            self._broken(str(error), io_thread)
        self.serve(serving)

    def _set_up(self) -> Serving:
        """Build the tuner, and bring it to where it was."""
        config = self._config
        calls = load.build(config, HostServices(self._note, self._stop_early))
        load.install_gate(calls.tuner, self.gate, config.seed, self.gate.newest)
        serving = self.serving_of(calls)
        load.check_search_space(calls.tuner, json.loads(config.search_space))
        load.give_search_space(calls, json.loads(config.search_space))
        if config.restore and Path(config.restore).exists():
            serving.repeat_past(restore.read(Path(config.restore)))
        return serving

    def serving_of(self, calls: TunerCalls) -> Serving:
        """Make what needs the tuner, with the parts that are here without it."""
        return Serving(
            self._config,
            calls,
            outbox=self.outbox,
            say_in_crowd=self._io.say_in_crowd,
            note=self._note,
            run_token=self.run_token,
            gate=self.gate,
            ending=self._ending,
            clock=self._clock,
            ran=self._processor_ns,
        )

    def serve(self, serving: Serving) -> None:
        """Let the head know that the tuner is there, where it was, and deliver; never returns."""
        self._serving = serving
        self.outbox.say(TunerHostReady())
        serving.serve()

    def _broken(self, reason: str, io_thread: threading.Thread) -> NoReturn:
        if self._config.failure_file:
            Path(self._config.failure_file).write_text(reason, "utf-8", "backslashreplace")
        log(reason)
        self.outbox.say(TunerBroken(reason))
        self._io.stop()
        io_thread.join(2.0)
        os._exit(EXIT_BROKEN)

    # ---- any thread ----------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether the tuner is built, and is where it was."""
        return self._serving is not None

    def _note(self, text: str) -> None:
        log(f"bequeath: {text}")
        self.outbox.say(Note(text))

    def _stop_early(self, trial: int) -> None:
        """End a trial for an advisor; while its past is repeated ``end_again`` does it later."""
        if self.ready:
            self.outbox.say(TrialStopRequested(TrialId(trial), EndReason.STOPPED_EARLY))

    # ---- the I/O thread ------------------------------------------------------------------

    def _talk(self) -> None:
        try:
            self._io.run()
            self._io.close()
            self._context.term()
        except BaseException:  # noqa: BLE001 - top of the thread: without it nothing goes on
            traceback.print_exc()
            os._exit(EXIT_INTERNAL)

    def _due(self) -> float | None:
        if parent_pipe.is_orphan():
            os._exit(0)
        if self._is_superseded():
            parent_pipe.end_group()
        due = (parent_pipe.LOOK_S, self._ending.due(), self.look())
        return min((one for one in due if one is not None), default=None)

    def look(self) -> float | None:
        """Look after requests, waits and deliveries; seconds until the next look, None: none."""
        due: list[float | None] = []
        if self._serving is not None:
            while self._early:
                self._serving.obey(self._early.popleft())
            due.append(self._serving.look())
        due.append(self.run_token.overdue())
        due.append(GATHER_S if self.run_token.crowded() else None)
        return min((one for one in due if one is not None), default=None)

    def _is_superseded(self) -> bool:
        """Whether another head has taken over from ours, looked up every few seconds.

        That head has a tuner host of its own, and two of them would do the author's work twice.
        """
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + parent_pipe.LOOK_S
        return parent_pipe.is_superseded(self._config.leader_file, self._config.epoch)

    def take(self, message: Any) -> None:
        """Carry out a message of the head, or keep it until the tuner is there."""
        serving = self._serving
        if isinstance(message, Shutdown):
            self._ending.begin(message.deadline_s, serving.on_exit if serving else _nothing)
        elif serving is not None and not self._early:
            serving.obey(message)
        else:
            self._early.append(message)


def _nothing() -> None:
    """Stands for the ``_on_exit`` of a tuner that is not built yet."""
