"""The attempts on this host, from the head's order to the report of their end.

For each attempt: room is made at its save path, its parent's plain files are verified, its
process starts; its messages are numbered and put into the outbox. When the process is gone its
last messages are awaited, the processes it left behind are killed, plain weights are digested, and
only then the end is reported. This sequence makes the end the last message.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from trial_runtime import facts, wire
from trial_runtime.agent.attempt import Attempt, CannotStart, Exit, Phase, Unpreparable
from trial_runtime.agent.attempts.ending import Ending, ending_of
from trial_runtime.agent.attempts.leftovers import sweep_behind, weights_left_by
from trial_runtime.agent.attempts.log_ends import log_ends
from trial_runtime.agent.attempts.preparing import (
    Readying,
    located,
    make_room,
    session_for,
    session_path,
)
from trial_runtime.agent.attempts.trial_messages import DirectOffers, OfferRelay, TrialMessages
from trial_runtime.agent.base.helper import Helper
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.events import AgentEvents, Exited, Started
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.agent.link.reports import Reports
from trial_runtime.agent.remote_weights import RemoteWeights
from trial_runtime.agent.resources.oom import OutOfMemoryWatch
from trial_runtime.agent.runners.output import Outputs
from trial_runtime.agent.runners.runner import Runner
from trial_runtime.agent.runners.trial_dialect import TrialDialect
from trial_runtime.agent.trials.endpoint import TrialEndpoint
from trial_runtime.facts import EndReason
from trial_runtime.failpoints import failpoint

if TYPE_CHECKING:
    from trial_runtime.agent.resources.allocation import Allocation
    from trial_runtime.weights.read.plain import PublishedDigest

#: A trial that calls ``should_stop`` has this part of its grace before the signal comes.
PART_BEFORE_SIGNAL = 0.5

#: Ended attempts remembered, so that an order that is repeated starts nothing twice.
_REMEMBERED = 4096

_log = logging.getLogger("bequeath.agent")


class Attempts:
    """All attempts of this agent. Owned by its loop.

    Args:
        config: of the agent.
        live: the attempts that have not ended; kept here, and read by others.
        events: what runners and resources have noted.
        runner: starts and ends processes.
        allocation: the resources of this host.
        endpoint: the socket of the trials.
        outbox: takes the messages for the head.
        outputs: the pipes and logs of attempts.
        helper: does work that may block.
        timers: of the agent's loop.
        memory: sees whether the kernel killed a process for lack of memory.
        dialect: what trials expect, and how they may report beside their connection.
        clean: takes secrets, and paths of this host, out of what is kept for good.
        remote: the weights root, if that is no folder.
    """

    def __init__(
        self,
        config: AgentConfig,
        *,
        live: dict[tuple[int, int], Attempt],
        events: AgentEvents,
        runner: Runner,
        allocation: Allocation,
        endpoint: TrialEndpoint,
        outbox: Outbox,
        outputs: Outputs,
        helper: Helper,
        timers: Timers,
        memory: OutOfMemoryWatch,
        dialect: TrialDialect,
        clean: Callable[[str], str],
        remote: RemoteWeights | None = None,
    ) -> None:
        self._config = config
        self._live = live
        self._events = events
        self._runner = runner
        self._allocation = allocation
        self._endpoint = endpoint
        self._outbox = outbox
        self._outputs = outputs
        self._helper = helper
        self._timers = timers
        self._memory = memory
        self._remote = remote
        self._readying = Readying(config, helper, remote)
        self._reports = Reports(config.trial, outbox)
        self._offers: OfferRelay = DirectOffers(self._reports, endpoint)
        if remote is not None:
            from trial_runtime.agent.attempts.remote_offers import RemoteOffers

            self._offers = RemoteOffers(remote, helper, self._reports, endpoint)
        self.messages = TrialMessages(
            config.trial,
            endpoint,
            self._reports,
            self._offers,
            holds_weights=remote is not None,
        )
        self._overheard = dialect.overheard(self._reports, timers)
        self._ended: OrderedDict[tuple[int, int], None] = OrderedDict()
        self._clean = clean

    # -- orders ----------------------------------------------------------------------------

    def start(self, order: facts.StartAttempt) -> None:
        """Run an attempt. An order that is repeated changes nothing."""
        key = (order.trial, order.attempt)
        if key in self._live or key in self._ended:
            return
        failpoint("agent.order.taken")
        self.settle()
        try:
            session = session_for(self._config, order, self._endpoint.address)
            if not self._readying.beside:
                session = located(self._config, order, session)
        except Unpreparable as error:
            self._refuse(order, str(error))
            return
        attempt = Attempt(order, session, session_path(self._config, order))
        self._live[key] = attempt
        before = [a for a in self._live.values() if a.trial == order.trial and a is not attempt]
        for each in before:
            # Superseded: it must not touch the files that this attempt will write.
            _log.warning("ending %r, which a later attempt supersedes", each)
            self._stop(each, EndReason.LOST, 0.0)
        if not before:
            self._prepare(attempt)

    def stop(self, order: facts.StopAttempt) -> None:
        """End an attempt: by a message, then SIGTERM, then SIGKILL after its grace. Repeating an
        order changes nothing, one with a shorter grace goes further."""
        self.settle()  # an exit that was seen before the order comes before it
        attempt = self._live.get((order.trial, order.attempt))
        if attempt is not None:
            self._stop(attempt, order.reason, order.grace_s)

    def answer(self, order: wire.VersionAnswered) -> None:
        """Pass on to an attempt the head's answer to its offer to a shared store."""
        attempt = self._live.get((order.trial, order.attempt))
        if attempt is not None:
            self._offers.answer(attempt, order.answer)

    def stop_all(self, reason: EndReason, grace_s: float) -> None:
        """End all attempts."""
        self.settle()
        for attempt in list(self._live.values()):
            self._stop(attempt, reason, grace_s)

    @property
    def running(self) -> int:
        """The number of attempts that have not ended."""
        return len(self._live)

    def settle(self) -> None:
        """Take the events that runners and resources have noted, in their order."""
        for event in self._events.take():
            if event.attempt.phase is Phase.OVER:
                continue
            if isinstance(event, Started):
                self._started(event.attempt)
            elif isinstance(event, Exited):
                self._exited(event.attempt)
            else:
                self._end_for(event.attempt, event.reason, event.text, event.grace_s)

    def _end_for(self, attempt: Attempt, reason: EndReason, text: str, grace_s: float) -> None:
        """End an attempt for a cause on this host; the first such cause counts. A cause that leaves
        no time takes it also from an attempt that is ending for another one.
        """
        if attempt.stop_reason is None or grace_s <= 0:
            attempt.stop_text = attempt.stop_text or text
            self._stop(attempt, reason, grace_s)

    def holds(self) -> list[tuple[int, int]]:
        """The numbers (trial, attempt) of the attempts that have not ended."""
        return list(self._live)

    # -- events --------------------------------------------------------------------------------

    def _started(self, attempt: Attempt) -> None:
        failpoint("agent.process.started")
        attempt.phase = Phase.RUNNING
        attempt.started_at = time.monotonic()
        # Not urgent: for a short trial it leaves with its result.
        self._outbox.add(
            facts.AttemptStarted(attempt.trial, attempt.number, attempt.pid), urgent=False
        )
        self._overheard.follow(attempt)
        timeout_s = self._config.trial.timeout_s
        if timeout_s is not None:
            grace_s = self._config.trial.stop_grace_s
            limit = f"ran longer than its maxTrialDuration of {timeout_s:g} s"
            attempt.timers.append(
                self._timers.at(
                    attempt.started_at + timeout_s,
                    lambda: self._end_for(attempt, EndReason.TIMED_OUT, limit, grace_s),
                )
            )

    def _exited(self, attempt: Attempt) -> None:
        assert attempt.exit is not None
        failpoint("agent.exit.seen")
        attempt.phase = Phase.LEAVING
        attempt.cancel_timers()
        if not attempt.exit.returned:
            # The messages it had sent are with the kernel, however it died.
            for connection, messages in self._endpoint.last_messages(attempt):
                self.messages.hear(connection, messages)
        if attempt.taps:
            self._outputs.finish(attempt)  # the rest of what it printed is read, too
        self._overheard.last(attempt)
        self._finish(attempt)

    # -- inside --------------------------------------------------------------------------------

    def _prepare(self, attempt: Attempt) -> None:
        self._readying.begin(attempt, self._ready)

    def _ready(self, attempt: Attempt, error: Exception | None) -> None:
        if attempt.phase is not Phase.WAITING:
            return
        if error is not None and attempt.stop_reason is None:
            plain = isinstance(error, Unpreparable)
            text = str(error) if plain else f"the parent's weights: {error}"
            self._end(attempt, Ending(EndReason.START_FAILED, text))
            return
        if self._remote is not None or attempt.session.restore_kind == "files":
            failpoint("agent.parent.verified")
        self._launch(attempt)

    def _launch(self, attempt: Attempt) -> None:
        if attempt.stop_reason is not None:
            self._end(attempt, Ending(attempt.stop_reason, ""))
            return
        try:
            if attempt.session.save_path is not None and not attempt.has_room:
                make_room(attempt.session.save_path, attempt.number)
            if attempt.session.save_path is not None:
                failpoint("agent.room.made")
            self._allocation.allocate(attempt)
            attempt.taps = self._overheard.taps(attempt)
            self._runner.launch(attempt)
        except (Unpreparable, CannotStart, LookupError, OSError) as error:
            self._end(attempt, Ending(EndReason.START_FAILED, str(error)))
        self.settle()

    def _stop(self, attempt: Attempt, reason: EndReason, grace_s: float) -> None:
        if attempt.phase in (Phase.LEAVING, Phase.OVER):
            return
        again = attempt.stop_reason is not None
        if not again:
            attempt.stop_reason = reason
        if attempt.busy:
            return  # room is made at its save path, which no other may use before that is done
        if attempt.phase is Phase.WAITING and attempt.pid == 0 and not self._launched(attempt):
            self._end(attempt, Ending(attempt.stop_reason or reason, ""))
            return
        now = time.monotonic()
        if grace_s > 0 and attempt.killed_at <= now + grace_s:
            return  # a head repeats its orders after each hello: only a shorter grace says more
        attempt.killed_at = now + grace_s
        heard = not again and self._endpoint.tell(attempt, [wire.StopAsked(reason)])
        if heard and attempt.accepts_stop and grace_s > 0:
            when = now + grace_s * PART_BEFORE_SIGNAL
            attempt.timers.append(self._timers.at(when, lambda: self._runner.terminate(attempt)))
        else:
            self._runner.terminate(attempt)
        if grace_s > 0:
            attempt.timers.append(
                self._timers.at(now + grace_s, lambda: self._runner.kill(attempt))
            )
        else:
            self._runner.kill(attempt)

    def _launched(self, attempt: Attempt) -> bool:
        """Whether a runner holds it already (a fork that was asked for has no pid yet)."""
        return bool(attempt.outputs)

    def _finish(self, attempt: Attempt) -> None:
        """Go on once all messages of the attempt have been read."""
        assert attempt.exit is not None
        attempt.cancel_timers()
        self._outputs.finish(attempt)
        if self._runner.sweeps_at_once:
            sweep_behind(self._runner, attempt)
        if attempt.exit.code != 0 and attempt.stop_reason is None:
            # If one of its devices is lost, it failed for that, and not by a fault of its own.
            self._allocation.when_judged(attempt, lambda: self._conclude(attempt))
        else:
            self._conclude(attempt)

    def _conclude(self, attempt: Attempt) -> None:
        """Judge how it ended, and look for the weights it has left."""
        assert attempt.exit is not None
        failed = attempt.exit.code != 0
        if failed and attempt.stop_reason is None and self._allocation.lost_device(attempt):
            attempt.stop_reason = EndReason.LOST
            attempt.stop_text = self._allocation.lost_device(attempt)
        killed = attempt.exit.signal == 9 or attempt.exit.code == 137
        if killed and attempt.stop_reason is None and self._allocation.killed_for_memory(attempt):
            attempt.stop_reason = EndReason.OUT_OF_MEMORY
            attempt.stop_text = self._allocation.killed_for_memory(attempt)
        ending = ending_of(
            attempt.exit,
            stop_reason=attempt.stop_reason,
            out_of_memory=killed and self._memory.struck(),
            by_bash=self._config.trial.command is not None,
            spoke=attempt.attached,
            tail=attempt.stderr.tail() if failed and attempt.stderr is not None else "",
            stop_text=attempt.stop_text,
        )
        # Complete weights count, however their trial ended, unless the attempt was superseded.
        announced = attempt.published is not None and attempt.stop_reason != EndReason.LOST
        left = ending.reason == EndReason.FINISHED or announced
        if not left or attempt.session.save_path is None:
            attempt.unreported = None
            self._end(attempt, ending)
            return
        self._helper.submit(
            lambda: weights_left_by(attempt, self._remote),
            lambda left, error: self._digested(attempt, ending, left, error),
        )

    def _digested(
        self,
        attempt: Attempt,
        ending: Ending,
        weights: PublishedDigest | None,
        error: Exception | None,
    ) -> None:
        failpoint("agent.files.digested")
        if error is not None:
            # No weights are no error of this attempt: the table of endings has the case.
            attempt.unreported = None
            _log.info("no weights of %r: %s", attempt, error)
            ending = Ending(ending.reason, f"{ending.text}\nno weights to commit: {error}".lstrip())
        elif attempt.published is not None and weights is not None:
            attempt.unreported = wire.PublishedMessage(weights.digest, weights.kind, weights.nbytes)
            weights = None  # reported before the end
        self._end(attempt, ending, weights)

    def _end(
        self, attempt: Attempt, ending: Ending, weights: PublishedDigest | None = None
    ) -> None:
        """Forget the attempt, and report its end as its last message."""
        outcome = attempt.exit or Exit()
        wall_s = time.monotonic() - attempt.started_at if attempt.started_at else 0.0
        attempt.phase = Phase.OVER
        attempt.cancel_timers()
        self._outputs.finish(attempt)
        self._runner.forget(attempt)
        self._overheard.forget(attempt)
        self._allocation.release(attempt)
        self._live.pop(attempt.key, None)
        self._offers.forget(attempt)
        if (remote := self._remote) is not None:
            self._helper.submit(lambda: remote.discard(attempt.key), lambda _gone, _error: None)
        self._reports.last(attempt)
        self._ended[attempt.key] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self._outbox.add(
            facts.AttemptEnded(
                attempt.trial,
                attempt.number,
                ending.reason,
                outcome.code,
                outcome.signal,
                self._clean("\n".join(filter(None, (ending.text, attempt.remark))))[-8192:],
                None
                if weights is None
                else facts.Weights(weights.digest, weights.kind, weights.nbytes),
                round(outcome.cpu_s, 6),
                round(wall_s, 6),
            ),
            urgent=True,
            logs=log_ends(attempt.session, self._config.log_end_bytes),
        )
        failpoint("agent.end.noted")
        if attempt.number > 1 or len(self._live) > 0:
            self._release_successor(attempt.trial)

    def _release_successor(self, trial: int) -> None:
        """Let a later attempt of the same trial start, now that nothing is in its way."""
        left = [a for a in self._live.values() if a.trial == trial]
        if len(left) == 1 and left[0].phase is Phase.WAITING and not left[0].outputs:
            self._prepare(left[0])

    def _refuse(self, order: facts.StartAttempt, text: str) -> None:
        self._ended[(order.trial, order.attempt)] = None
        self._outbox.add(
            facts.AttemptEnded(
                order.trial, order.attempt, EndReason.START_FAILED, text=self._clean(text)[-8192:]
            ),
            urgent=True,
        )
