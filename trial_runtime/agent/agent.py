"""The agent's loop: one thread that listens to the head, the trials and their processes.

Each turn takes everything that can be read, and the messages that result leave as one frame.
Messages that can wait (metrics, starts) wait a few milliseconds for others.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
import zmq

from trial_runtime import facts, wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.attempts.attempts import Attempts
from trial_runtime.agent.attempts.leftovers import sweep_strays
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.base.loop import Timers, Watch
from trial_runtime.agent.config import AgentConfig, read_config
from trial_runtime.agent.dialects import dialect_of
from trial_runtime.agent.events import AgentEvents
from trial_runtime.agent.link.answered_files import AnsweredFiles
from trial_runtime.agent.link.head_link import NODES, HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.link.path_mapping import PathMapping
from trial_runtime.agent.link.probing import RootProbe, looks_at_root
from trial_runtime.agent.nodes.messages import BEAT_S
from trial_runtime.agent.processes import sweep
from trial_runtime.agent.processes.children import ChildWatch
from trial_runtime.agent.processes.guard import Guard
from trial_runtime.agent.remote_weights import remote_weights, secrets_of
from trial_runtime.agent.resources.allocation import Allocation
from trial_runtime.agent.resources.oom import OutOfMemoryWatch
from trial_runtime.agent.runners.choice import runner_of
from trial_runtime.agent.runners.environment import base_environment, environment_now
from trial_runtime.agent.runners.output import Outputs
from trial_runtime.agent.runners.runner import Runner, RunnerContext
from trial_runtime.agent.trials.endpoint import TrialEndpoint
from trial_runtime.endpoint import Endpoint
from trial_runtime.facts import EndReason
from trial_runtime.masking import Mask, MaskFilter
from trial_runtime.session_file import AGENT_VARIABLE

if TYPE_CHECKING:
    from trial_runtime.agent.nodes.meeting import Meeting
    from trial_runtime.agent.nodes.nodes import Nodes

#: For how long messages that are not urgent wait for others; metrics are looked at by people.
LINGER_S = 0.01
ENOUGH_MESSAGES = 512

#: After a shutdown the head may take this long to acknowledge the last messages.
FAREWELL_S = 2.0

#: A head that is silent for fewer heartbeats than this is not gone, whatever the file says:
#: with ``headGrace: 0`` an agent would leave before its head has sent a first message.
LEAST_GRACE_BEATS = 3

#: As plain numbers: arithmetic with pyzmq's enumerations shows in a turn of the loop.
_IN, _OUT = int(zmq.POLLIN), int(zmq.POLLOUT)

_log = logging.getLogger("bequeath.agent")


class Agent:
    """An agent of one experiment on one host. ``run`` blocks until it is over.

    Args:
        config: as it was at the agent's start.
        config_path: the file in which later heads write what has changed: their address.
        meeting: where the other nodes of its allocation look for this one, if there are others.
    """

    def __init__(
        self, config: AgentConfig, config_path: str | None = None, meeting: Meeting | None = None
    ) -> None:
        self._config = config
        self._config_path = config_path
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._watch = Watch()
        self._timers = Timers()
        self._helper = Helper()
        self._memory = OutOfMemoryWatch()
        self._mask = Mask()
        self._mask.learn(secrets_of(config))
        for log in (_log, logging.getLogger("bequeath.weights")):
            log.addFilter(MaskFilter(self._mask))
        self._paths = PathMapping(config)
        self._outbox = Outbox(config.spool_path)
        self._outbox.end_orphans()
        self._endpoint = TrialEndpoint(config.run_folder, config.worker, config.trial, self._timers)
        self._children = ChildWatch(self._watch)
        self._outputs = Outputs(config.trial, self._watch)
        self._guard = Guard(config.run_folder, self._children, self._timers)
        self._dialect = dialect_of(config)
        self._base_environment = base_environment(config, self._dialect)
        self._base_environment[AGENT_VARIABLE] = self._guard.mark
        self._remote = remote_weights(config)
        self._events = AgentEvents()
        self._live: dict[tuple[int, int], Attempt] = {}
        self._allocation = Allocation(
            config, self._watch, self._timers, live=self._live, events=self._events
        )
        self._nodes = self._nodes_at(meeting)
        self._runner = self._make_runner()
        self._attempts = Attempts(
            config,
            live=self._live,
            events=self._events,
            runner=self._runner,
            allocation=self._allocation,
            endpoint=self._endpoint,
            outbox=self._outbox,
            outputs=self._outputs,
            helper=self._helper,
            timers=self._timers,
            memory=self._memory,
            dialect=self._dialect,
            clean=lambda text: self._paths.for_head(self._mask(text)),
            remote=self._remote,
        )
        self._head = HeadLink(
            self._context,
            config,
            self._outbox,
            self._attempts.holds,
            self._ways_to_the_head,
            self._allocation.offer,
        )
        self._files = AnsweredFiles(config, self._helper, self._timers, self._head, self._live)
        self._poller = zmq.Poller()
        self._listening = False
        self._linger_until: float | None = None
        self._leave_at: float | None = None
        self._leaving = False  # since its place is taken back, which each heartbeat says

    def run(self) -> None:
        """Serve until a head shuts us down, or has been silent for ``headGrace``."""
        sweep.become_subreaper()
        self._watch.on_signal(signal.SIGTERM, self._terminated)
        self._watch.add(self._helper.descriptor, self._helper.deliver)
        self._poller.register(self._head.socket, zmq.POLLIN | zmq.POLLOUT)
        self._poller.register(self._watch.fileno(), zmq.POLLIN)
        if self._nodes is not None:
            self._poller.register(self._nodes.socket, zmq.POLLIN)
        self._guard.start()
        self._listen(True)
        self._allocation.start()
        self._settle()
        self._tick()
        if looks_at_root(self._config):
            head = self._head
            RootProbe(
                self._config, self._helper, self._timers, head.tell_trouble, head.found_share
            ).look()
        if self._nodes is not None:
            self._nodes.open()
            self._look_at_nodes(self._nodes)
        try:
            while not self._over():
                self._turn()
        finally:
            self._close()

    @property
    def taken_back(self) -> bool:
        """Whether it has left since its scheduler has asked it to."""
        return self._leaving

    # -- one turn ------------------------------------------------------------------------------

    def _turn(self) -> None:
        ready = dict(self._poller.poll(self._timeout_ms()))
        head = ready.get(self._head.socket, 0)
        if head & _OUT:
            if not self._head.greeted:
                self._head.greet()
            elif self._head.takes_nothing:  # until now: most likely the next head is there
                self._beat()
            self._poller.modify(self._head.socket, zmq.POLLIN)
        if head & _IN:
            self._obey(self._head.receive())
            self._files.take(self._head.take_questions())
        # Trials before exits: the messages of a process come before its end.
        if self._endpoint.fileno() in ready or (self._listening and self._endpoint.has_put_by):
            self._hear()
        if self._watch.fileno() in ready:
            self._watch.dispatch()
            self._attempts.settle()
        if self._nodes is not None and self._nodes.socket in ready:
            self._nodes.receive()
            self._follow(self._nodes)
        self._timers.fire(time.monotonic())
        self._settle()
        self._send_messages()
        if not self._outbox.unsent:  # what is reported goes first
            self._files.send()
        self._listen(not self._outbox.full)

    def _obey(self, orders: list[wire.FromHead]) -> None:
        for order in orders:
            if isinstance(order, facts.StartAttempt):
                if self._leave_at is None:
                    self._attempts.start(self._paths.order(order))
            elif isinstance(order, facts.StopAttempt):
                self._attempts.stop(order)
            elif isinstance(order, wire.VersionAnswered):
                self._attempts.answer(order)
            elif isinstance(order, wire.Shutdown):
                self._shut_down("the head", order.grace_s)

    def _settle(self) -> None:
        self._attempts.settle()
        if self._events.take_offer_changed():
            self._tell_offer()

    def _tell_offer(self) -> None:
        devices = self._allocation.devices
        if devices.trouble is not None:
            self._head.tell_trouble(devices.trouble, "devices", hopeless=devices.hopeless)
        self._head.tell_offer()

    def _hear(self) -> None:
        hear, runner = self._attempts.messages.hear, self._runner
        for connection, messages in self._endpoint.receive():
            hear(connection, messages)
            runner.hear(connection, messages)
            self._attempts.settle()

    def _send_messages(self) -> None:
        outbox = self._outbox
        waiting = outbox.unsent
        if not waiting:
            self._linger_until = None
            return
        now = time.monotonic()
        if self._linger_until is None:
            self._linger_until = now + LINGER_S
        if outbox.urgent or waiting >= ENOUGH_MESSAGES or now >= self._linger_until:
            # When the head does not take them, look again soon rather than at once.
            self._linger_until = None if self._head.flush() else now + 5 * LINGER_S
            outbox.urgent = False

    def _timeout_ms(self) -> int:
        if self._listening and self._endpoint.has_put_by:
            return 0
        due = self._timers.next()
        if self._linger_until is not None and (due is None or self._linger_until < due):
            due = self._linger_until
        if due is None:
            return 1000
        return max(0, int((due - time.monotonic()) * 1000) + 1)

    def _listen(self, wanted: bool) -> None:
        """While the outbox is full trials are not listened to, so that their reports wait."""
        if wanted and not self._listening:
            self._poller.register(self._endpoint.fileno(), zmq.POLLIN)
        elif self._listening and not wanted:
            _log.warning("the outbox is full: trials wait until the head acknowledges")
            self._poller.unregister(self._endpoint.fileno())
        self._listening = wanted

    # -- time ------------------------------------------------------------------------------------

    def _tick(self) -> None:
        now = time.monotonic()
        self._timers.at(now + self._config.heartbeat_s, self._tick)
        self._memory.sample(now)
        self._beat()
        if self._head.takes_nothing:  # here only: an event that is in vain must not spin the loop
            self._poller.modify(self._head.socket, _IN | _OUT)
        sweep_strays(self._runner, self._live.values())
        self._head.look()
        if self._head.quiet:
            self._spool()
            self._go_over(self._head.reconnect)
        elif self._leave_at is None:
            self._go_over(self._head.go_back)
        grace_s = max(self._config.head_grace_s, LEAST_GRACE_BEATS * self._config.heartbeat_s)
        if self._head.silence_s > grace_s and self._leave_at is None:
            self._shut_down("the grace time without a head", self._config.trial.stop_grace_s)

    def _beat(self) -> None:
        self._head.heartbeat(
            self._attempts.running,
            self._endpoint.refusals.counts,
            self._allocation.samples(),
            leaving=self._leaving,
        )

    def _go_over(self, go: Callable[[], bool]) -> None:
        before = self._head.socket
        if go():
            self._poller.unregister(before)
            self._poller.register(self._head.socket, zmq.POLLIN | zmq.POLLOUT)

    def _ways_to_the_head(self) -> tuple[Endpoint, ...]:
        config = self._config
        if self._config_path is not None:
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                config = read_config(self._config_path)
        return (config.head, *config.ways)

    def _spool(self) -> None:
        try:
            self._outbox.spool()
        except OSError as error:  # a full disk: messages stay in memory, and bounded there
            _log.error("cannot spool messages for the next head: %s", error)

    def _terminated(self) -> None:
        """Obey SIGTERM. Where a scheduler has lent the place it means that the place is taken back:
        the head is told before any end of an attempt, so that nothing new comes here."""
        grace_s = self._config.trial.stop_grace_s
        if not self._config.ticket or self._leave_at is not None:
            self._shut_down("a signal", grace_s)
            return
        self._leaving = True
        self._beat()
        self._shut_down("its place is taken back", grace_s, EndReason.PREEMPTED)

    def _shut_down(self, why: str, grace_s: float, reason: EndReason = EndReason.SHUTDOWN) -> None:
        if self._leave_at is None:
            _log.info("leaving: %s", why)
            self._leave_at = time.monotonic() + grace_s + FAREWELL_S
        self._attempts.stop_all(reason, grace_s)

    def _over(self) -> bool:
        if self._leave_at is None:
            return False
        if time.monotonic() >= self._leave_at:
            return True
        if self._attempts.running:
            return False
        handed_in = self._outbox.first > self._outbox.newest
        return handed_in or self._head.silence_s > FAREWELL_S

    # -- the other nodes of this allocation ------------------------------------------------------

    def _nodes_at(self, meeting: Meeting | None) -> Nodes | None:
        if meeting is None:
            return None
        from trial_runtime.agent.nodes.nodes import Nodes

        return Nodes(self._context, self._config, meeting)

    def _look_at_nodes(self, nodes: Nodes) -> None:
        self._timers.at(time.monotonic() + BEAT_S, lambda: self._look_at_nodes(nodes))
        nodes.tick()
        self._follow(nodes)

    def _follow(self, nodes: Nodes) -> None:
        """Join once all have come; leave with the first that leaves, or is lost."""
        trouble = nodes.take_trouble()
        if trouble is not None:
            self._head.tell_trouble(trouble, NODES)
        if self._leave_at is not None:
            return
        if nodes.lost:
            self._shut_down(nodes.lost, self._config.trial.stop_grace_s, EndReason.LOST)
        elif nodes.leaving:
            self._terminated()

    # -- parts -------------------------------------------------------------------------------------

    def _environment(self) -> dict[str, str]:
        wanted = self._config.trial.environment
        return environment_now(self._base_environment, wanted, self._mask)

    def _make_runner(self) -> Runner:
        spec = self._config.trial
        context = RunnerContext(
            spec,
            self._dialect,
            self._endpoint,
            self._outputs,
            self._watch,
            self._children,
            self._environment,
            self._events,
        )
        if self._nodes is not None:
            from trial_runtime.agent.nodes.runner import NodesRunner

            launched = self._config.launched
            return NodesRunner(context, self._nodes.followers, self._timers, launched=launched)
        return runner_of(context, self._config)

    def _close(self) -> None:
        self._runner.close()
        if self._nodes is not None:
            self._nodes.close()
        for pid in sweep.children():
            sweep.kill_group(pid)
        for _round in range(64):
            left = sweep.children()
            if not left:
                break
            for pid in left:
                sweep.kill_and_reap(pid)
        if self._remote is not None:
            self._remote.close()
        if self._outbox.first <= self._outbox.newest:
            self._spool()
        self._head.close()
        self._endpoint.close()
        self._watch.close()
        self._context.term()
        _log.info("left (pid %d)", os.getpid())
