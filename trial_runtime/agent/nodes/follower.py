"""The program of a follower: it runs its rank of each trial by the orders of rank 0.

It has no word with the head. What a trial's process reports here is confirmed and dropped, since
rank 0 speaks for all; weights are saved by rank 0 alone.
"""

from __future__ import annotations

import logging
import secrets
import signal
import socket
import time
from collections.abc import Sequence

import zmq
from msgspec.structs import replace

from trial_runtime import facts
from trial_runtime import trial_wire as wire
from trial_runtime.agent.attempt import Attempt, CannotStart, Exit, Share
from trial_runtime.agent.attempts.leftovers import sweep_behind, sweep_strays
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.agent.events import AgentEvents, Exited
from trial_runtime.agent.nodes.meeting import Leader
from trial_runtime.agent.nodes.messages import (
    BEAT_S,
    MOST_TEXT,
    SILENT_S,
    Job,
    Report,
    Wish,
    decode,
    encode,
)
from trial_runtime.agent.processes import sweep
from trial_runtime.agent.processes.children import ChildWatch
from trial_runtime.agent.processes.guard import Guard
from trial_runtime.agent.runners.environment import base_environment, environment_now
from trial_runtime.agent.runners.fresh import FreshRunner
from trial_runtime.agent.runners.output import Outputs
from trial_runtime.agent.runners.runner import RunnerContext
from trial_runtime.agent.trials.endpoint import Closed, Connection, Heard, TrialEndpoint
from trial_runtime.endpoint import Endpoint, connect
from trial_runtime.masking import Mask, MaskFilter
from trial_runtime.session_file import AGENT_VARIABLE

_NOBLOCK = int(zmq.NOBLOCK)

_log = logging.getLogger("bequeath.agent")


class Follower:
    """A follower of one allocation. ``run`` blocks until rank 0 is gone, or sends it away.

    Args:
        config: that of the whole allocation, with a run folder of this follower's own.
        rank: of this node.
        leader: where rank 0 listens.
    """

    def __init__(self, config: AgentConfig, rank: int, leader: Leader) -> None:
        self._config = config
        self._rank = rank
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._watch = Watch()
        self._timers = Timers()
        self._events = AgentEvents()
        self._mask = Mask()
        _log.addFilter(MaskFilter(self._mask))
        self._endpoint = TrialEndpoint(config.run_folder, config.worker, config.trial, self._timers)
        children = ChildWatch(self._watch)
        self._guard = Guard(config.run_folder, children, self._timers)
        dialect = dialect_of(config, rank)
        self._base = base_environment(config, dialect)
        self._base[AGENT_VARIABLE] = self._guard.mark
        self._outputs = Outputs(config.trial, self._watch, f".rank{rank}")
        self._runner = FreshRunner(
            RunnerContext(
                config.trial,
                dialect,
                self._endpoint,
                self._outputs,
                self._watch,
                children,
                self._environment,
                self._events,
            )
        )
        self._attempt: Attempt | None = None
        self._stop = 0  # the signal that was sent to it
        self._heard_at = time.monotonic()
        self.was_heard = False  # rank 0 has answered
        self._over = ""
        self._report = Report(leader.token, rank, secrets.token_hex(8), socket.gethostname())
        public, secret = zmq.curve_keypair()
        name = f"{rank}:{self._report.start}"
        self._socket = connect(
            self._context,
            Endpoint(leader.address, name, leader.server_key, public.decode(), secret.decode()),
        )

    def run(self) -> str:
        """Serve until it is over; returns why."""
        sweep.become_subreaper()
        self._watch.on_signal(signal.SIGTERM, self._terminated)
        self._guard.start()
        poller = zmq.Poller()
        poller.register(self._socket, zmq.POLLIN)
        poller.register(self._watch.fileno(), zmq.POLLIN)
        poller.register(self._endpoint.fileno(), zmq.POLLIN)
        self._beat()
        try:
            while not self._over:
                due = self._timers.next()
                wait_s = 1.0 if due is None else max(0.0, due - time.monotonic())
                ready = dict(poller.poll(int(wait_s * 1000) + 1))
                if self._endpoint.fileno() in ready or self._endpoint.has_put_by:
                    self._hear()
                if self._watch.fileno() in ready:
                    self._watch.dispatch()
                if self._socket in ready:
                    self._obey()
                self._timers.fire(time.monotonic())
                self._settle()
        finally:
            self._close()
        return self._over

    # -- rank 0 --------------------------------------------------------------------------------

    def _beat(self) -> None:
        now = time.monotonic()
        self._timers.at(now + BEAT_S, self._beat)
        self._say()
        live = [] if self._attempt is None else [self._attempt]
        sweep_strays(self._runner, live)
        if now - self._heard_at > SILENT_S:
            self._over = "rank 0 of its allocation is silent"

    def _say(self, **changes: object) -> None:
        self._report = replace(self._report, **changes)
        try:
            self._socket.send(encode(self._report), _NOBLOCK)
        except zmq.Again:
            pass  # it is repeated

    def _obey(self) -> None:
        wish = None
        while True:
            try:
                wish = decode(self._socket.recv(_NOBLOCK), Wish) or wish
            except zmq.Again:
                break
        if wish is None:
            return
        self._heard_at, self.was_heard = time.monotonic(), True
        if wish.leave:
            self._over = wish.leave
        elif wish.job is not None and wish.key is not None and wish.key != self._report.key:
            self._begin(wish.key, wish.job, wish.stop)
        if wish.stop and wish.key == self._report.key:
            self._end(wish.stop)

    def _terminated(self) -> None:
        """Tell rank 0 that this place is taken back: it ends the trial on all nodes."""
        self._say(leaving=True)

    # -- the attempt ---------------------------------------------------------------------------

    def _begin(self, key: tuple[int, int], job: Job, stop: int) -> None:
        if self._attempt is not None:  # rank 0 has given it up
            self._runner.kill(self._attempt)
            return
        if stop:
            self._say(key=key, phase="over", code=None, signal=stop, text="")
            return
        session = replace(
            job.session,
            address=self._endpoint.address,
            routing=f"t{key[0]}.{key[1]}:{secrets.token_hex(16)}",
            save_path=None,
            work_folder=job.session.work_folder and f"{job.session.work_folder}.rank{self._rank}",
        )
        config = self._config
        worker, trial = facts.WorkerId(config.worker), facts.TrialId(key[0])
        order = facts.StartAttempt(worker, trial, key[1], session.parameters)
        path = f"{config.run_folder}/s{key[0]}.{key[1]}.json"
        attempt = Attempt(order, session, path, share=Share(job.variables), has_room=True)
        self._stop = 0
        try:
            self._runner.launch(attempt)
        except (CannotStart, LookupError, OSError) as error:
            self._outputs.finish(attempt)
            self._runner.forget(attempt)
            self._say(
                key=key, phase="over", code=1, signal=None, text=self._mask(str(error))[-MOST_TEXT:]
            )
            return
        self._attempt = attempt
        self._say(key=key, phase="running", code=None, signal=None, text="", cpu_s=0.0)

    def _end(self, number: int) -> None:
        attempt = self._attempt
        if attempt is None or self._stop in (number, signal.SIGKILL):
            return
        self._stop = number
        (self._runner.kill if number == signal.SIGKILL else self._runner.terminate)(attempt)

    def _settle(self) -> None:
        for event in self._events.take():
            if isinstance(event, Exited) and event.attempt is self._attempt:
                self._ended(event.attempt)

    def _ended(self, attempt: Attempt) -> None:
        assert attempt.exit is not None
        outcome: Exit = attempt.exit
        self._outputs.finish(attempt)
        sweep_behind(self._runner, attempt)
        text = outcome.text
        if outcome.code != 0 and attempt.stderr is not None:
            text = text or attempt.stderr.tail()
        self._runner.forget(attempt)
        self._attempt = None
        self._say(
            phase="over",
            code=1 if outcome.lost else outcome.code,
            signal=outcome.signal,
            text=self._mask(text)[-MOST_TEXT:],
            cpu_s=outcome.cpu_s,
        )

    def _hear(self) -> None:
        for connection, messages in self._endpoint.receive():
            self._drop(connection, messages)

    def _drop(self, connection: Connection, messages: Sequence[Heard]) -> None:
        """Confirm what a process has reported, and drop it."""
        if isinstance(messages[0], Closed):
            return
        for message in messages:
            if isinstance(message, wire.Offered):
                text = f"rank {self._rank} offers nothing to shared stores; rank 0 may"
                answer = wire.OfferAnswered(message.digest, False, None, text)
                self._endpoint.send(connection, [answer])
        self._endpoint.receipt(connection, now=True)

    def _environment(self) -> dict[str, str]:
        return environment_now(self._base, self._config.trial.environment, self._mask)

    def _close(self) -> None:
        if self._attempt is not None:
            self._runner.kill(self._attempt)
        self._runner.close()
        for pid in sweep.children():
            sweep.kill_group(pid)
            sweep.kill_and_reap(pid)
        self._socket.close()
        self._endpoint.close()
        self._watch.close()
        self._context.term()
        _log.info("left: %s", self._over)
