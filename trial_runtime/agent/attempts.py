"""The attempts on this host, from the head's order to the word that they ended.

Of each attempt: room is made at its save path, its parent's plain files are verified, its
process starts; words are numbered and handed to the outbox; when the process is gone its
last words are awaited, what it left behind is killed, plain weights are digested, and only
then the end is told. The order is what makes the end the last word.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from trial_runtime import wire
from trial_runtime.agent import sweep
from trial_runtime.agent.attempt import Attempt, Exit, Phase
from trial_runtime.agent.config import AgentConfig
from trial_runtime.agent.door import Door
from trial_runtime.agent.ending import Ending, ending_of
from trial_runtime.agent.helper import Helper
from trial_runtime.agent.left_weights import weights_left_by
from trial_runtime.agent.oom import OutOfMemoryWatch
from trial_runtime.agent.outbox import Outbox
from trial_runtime.agent.output import Outputs
from trial_runtime.agent.preparing import (
    Unpreparable,
    located,
    make_room,
    session_for,
    session_path,
)
from trial_runtime.agent.readying import Readying
from trial_runtime.agent.remote_weights import RemoteWeights
from trial_runtime.agent.runners import CannotStart, Runner
from trial_runtime.agent.timers import Timers
from trial_runtime.agent.trial_words import TrialWords
from trial_runtime.failpoints import failpoint

if TYPE_CHECKING:
    from trial_runtime.agent.lending import Lending
    from trial_runtime.agent.nni_words import NniWords
    from trial_runtime.weights.plain import PublishedDigest

#: A trial that asks ``should_stop`` has this part of its grace before the signal comes.
HEEDING_PART = 0.5

#: Ended attempts remembered, so that an order that is repeated starts nothing twice.
_REMEMBERED = 4096

_log = logging.getLogger("bequeath.agent")


class Attempts:
    """All attempts of this agent. Owned by its loop."""

    def __init__(
        self,
        config: AgentConfig,
        *,
        door: Door,
        outbox: Outbox,
        outputs: Outputs,
        helper: Helper,
        timers: Timers,
        memory: OutOfMemoryWatch,
        remote: RemoteWeights | None = None,
    ) -> None:
        self._config = config
        self._door = door
        self._outbox = outbox
        self._outputs = outputs
        self._helper = helper
        self._timers = timers
        self._memory = memory
        self._remote = remote
        self._readying = Readying(config, helper, remote)
        self.words = TrialWords(config.trial, door, outbox, holds_weights=remote is not None)
        if remote is not None:
            from trial_runtime.agent.remote_offers import RemoteOffers

            words = self.words
            words.offers = RemoteOffers(remote, helper, words.reports.offered, words.tell)
        self._nni_words: NniWords | None = None
        if config.trial.nni:
            from trial_runtime.agent.nni_words import NniWords

            self._nni_words = NniWords(config.trial, self.words.reports, timers)
        self._live: dict[tuple[int, int], Attempt] = {}
        self._ended: OrderedDict[tuple[int, int], None] = OrderedDict()
        self.runner: Runner  # set by the agent: runners call back into this
        self.lending: Lending  # as well
        self.mask: Callable[[str], str] = str  # takes secrets out of what is kept for good

    # -- orders ----------------------------------------------------------------------------

    def start(self, order: wire.Start) -> None:
        """Run an attempt. Repeating an order changes nothing."""
        key = (order.trial, order.attempt)
        if key in self._live or key in self._ended:
            return
        failpoint("agent.order.taken")
        try:
            session = session_for(self._config, order, self._door.address)
            if not self._readying.beside:
                session = located(self._config, order, session)
        except Unpreparable as error:
            self._refuse(order, str(error))
            return
        attempt = Attempt(order, session, session_path(self._config, order))
        self._live[key] = attempt
        before = [a for a in self._live.values() if a.trial == order.trial and a is not attempt]
        for each in before:
            # Superseded: whatever it still does may not touch what this one will write.
            _log.warning("ending %r, which a later attempt supersedes", each)
            self._stop(each, wire.LOST, 0.0)
        if not before:
            self._prepare(attempt)

    def stop(self, order: wire.Stop) -> None:
        """End an attempt: told, then SIGTERM, then SIGKILL after its grace. Repeating an order
        changes nothing, one with a shorter grace goes further."""
        attempt = self._live.get((order.trial, order.attempt))
        if attempt is not None:
            self._stop(attempt, order.reason, order.grace_s)

    def answer(self, order: wire.VersionAnswered) -> None:
        """Tell an attempt what became of what it offered to a shared store."""
        attempt = self._live.get((order.trial, order.attempt))
        if attempt is not None:
            self.words.answer(attempt, order.answer)

    def stop_all(self, reason: str, grace_s: float) -> None:
        """End all attempts."""
        for attempt in list(self._live.values()):
            self._stop(attempt, reason, grace_s)

    @property
    def running(self) -> int:
        """How many attempts have not ended."""
        return len(self._live)

    def live(self) -> list[Attempt]:
        """Those that have not ended."""
        return list(self._live.values())

    def end(self, attempt: Attempt, reason: str, text: str, grace_s: float) -> None:
        """End one for a reason of this host's, which ``text`` tells. Where that leaves it no time,
        it has none either if it is about to end for another reason."""
        if attempt.stop_reason is None or grace_s <= 0:
            attempt.stop_text = attempt.stop_text or text
            self._stop(attempt, reason, grace_s)

    def holds(self) -> list[tuple[int, int]]:
        """The attempts that have not ended."""
        return list(self._live)

    # -- what runners tell ---------------------------------------------------------------------

    def started(self, attempt: Attempt) -> None:
        """The attempt's process is there."""
        failpoint("agent.process.started")
        attempt.phase = Phase.RUNNING
        attempt.started_at = time.monotonic()
        # Not urgent: for a short trial it leaves with its result.
        self._outbox.add(wire.Started(attempt.trial, attempt.number, attempt.pid), urgent=False)
        if self._nni_words is not None:
            self._nni_words.follow(attempt)
        timeout_s = self._config.trial.timeout_s
        if timeout_s is not None:
            grace_s = self._config.trial.stop_grace_s
            limit = f"ran longer than its maxTrialDuration of {timeout_s:g} s"
            attempt.timers.append(
                self._timers.at(
                    attempt.started_at + timeout_s,
                    lambda: self.end(attempt, wire.TIMED_OUT, limit, grace_s),
                )
            )

    def exited(self, attempt: Attempt, outcome: Exit) -> None:
        """The attempt's process is gone, or its function is over."""
        if attempt.exit is not None:
            return
        failpoint("agent.exit.seen")
        attempt.exit = outcome
        attempt.phase = Phase.LEAVING
        attempt.cancel_timers()
        if not outcome.returned:
            # What it had sent is with the kernel, however it died.
            for connection, messages in self._door.last_words(attempt):
                self.words.hear(connection, messages)
        if self._nni_words is not None:
            self._nni_words.last(attempt)
        self._finish(attempt)

    # -- inside --------------------------------------------------------------------------------

    def _prepare(self, attempt: Attempt) -> None:
        self._readying.begin(attempt, self._ready)

    def _ready(self, attempt: Attempt, error: Exception | None) -> None:
        if attempt.phase is not Phase.WAITING:
            return
        if error is not None and attempt.stop_reason is None:
            told = isinstance(error, Unpreparable)
            text = str(error) if told else f"the parent's weights: {error}"
            self._end(attempt, Ending(wire.START_FAILED, text))
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
            self.lending.lend(attempt)
            self.runner.launch(attempt)
        except (Unpreparable, CannotStart, LookupError, OSError) as error:
            self._end(attempt, Ending(wire.START_FAILED, str(error)))

    def _stop(self, attempt: Attempt, reason: str, grace_s: float) -> None:
        if attempt.phase in (Phase.LEAVING, Phase.OVER):
            return
        again = attempt.stop_reason is not None
        if not again:
            attempt.stop_reason = reason
        if attempt.busy:
            return  # room is made for it, and nobody else may have that place before it is done
        if attempt.phase is Phase.WAITING and attempt.pid == 0 and not self._launched(attempt):
            self._end(attempt, Ending(attempt.stop_reason or reason, ""))
            return
        now = time.monotonic()
        if grace_s > 0 and attempt.killed_at <= now + grace_s:
            return  # a head repeats its orders after each hello: only a shorter grace says more
        attempt.killed_at = now + grace_s
        heard = not again and self.runner.tell_to_stop(attempt, reason)
        if heard and attempt.heeding and grace_s > 0:
            when = now + grace_s * HEEDING_PART
            attempt.timers.append(self._timers.at(when, lambda: self.runner.terminate(attempt)))
        else:
            self.runner.terminate(attempt)
        if grace_s > 0:
            attempt.timers.append(self._timers.at(now + grace_s, lambda: self.runner.kill(attempt)))
        else:
            self.runner.kill(attempt)

    def _launched(self, attempt: Attempt) -> bool:
        """Whether a runner holds it already (a fork that was asked for has no pid yet)."""
        return bool(attempt.outputs)

    def _finish(self, attempt: Attempt) -> None:
        """All that the attempt said has been heard."""
        assert attempt.exit is not None
        attempt.cancel_timers()
        self._outputs.finish(attempt)
        if self.runner.sweeps_at_once:
            self._sweep(attempt)
        if attempt.exit.code != 0 and attempt.stop_reason is None:
            # If a device of its is lost, it failed for that, and it is no fault of the trial.
            self.lending.when_judged(attempt, lambda: self._conclude(attempt))
        else:
            self._conclude(attempt)

    def _conclude(self, attempt: Attempt) -> None:
        """How it ended, and the weights it has left, if any."""
        assert attempt.exit is not None
        failed = attempt.exit.code != 0
        if failed and attempt.stop_reason is None and self.lending.lost_device(attempt):
            attempt.stop_reason = wire.LOST
            attempt.stop_text = self.lending.lost_device(attempt)
        killed = attempt.exit.signal == 9 or attempt.exit.code == 137
        if killed and attempt.stop_reason is None and self.lending.killed_for_memory(attempt):
            attempt.stop_reason = wire.OUT_OF_MEMORY
            attempt.stop_text = self.lending.killed_for_memory(attempt)
        ending = ending_of(
            attempt.exit,
            stop_reason=attempt.stop_reason,
            out_of_memory=killed and self._memory.struck(),
            by_bash=self._config.trial.command is not None,
            spoke=attempt.attached,
            tail=attempt.stderr.tail() if failed and attempt.stderr is not None else "",
            stop_text=attempt.stop_text,
        )
        # Complete weights count, however their trial ended; but what one wrote that was
        # superseded is nobody's.
        announced = attempt.published is not None and attempt.stop_reason != wire.LOST
        left = ending.reason == wire.FINISHED or announced
        if not left or attempt.session.save_path is None:
            attempt.unsaid = None
            self._end(attempt, ending)
            return
        self._helper.submit(
            lambda: weights_left_by(attempt, self._remote),
            lambda found, error: self._digested(attempt, ending, found, error),
        )

    def _digested(
        self,
        attempt: Attempt,
        ending: Ending,
        found: PublishedDigest | None,
        error: Exception | None,
    ) -> None:
        failpoint("agent.files.digested")
        if error is not None:
            # Nothing there is no error of this attempt: the table of endings knows the case.
            attempt.unsaid = None
            _log.info("no weights of %r: %s", attempt, error)
            ending = Ending(ending.reason, f"{ending.text}\nno weights to commit: {error}".lstrip())
        elif attempt.published is not None and found is not None:
            attempt.unsaid = wire.Published(found.digest, found.kind, found.nbytes)
            found = None  # told before the end
        self._end(attempt, ending, found)

    def _end(
        self, attempt: Attempt, ending: Ending, weights: PublishedDigest | None = None
    ) -> None:
        """The attempt's last word."""
        outcome = attempt.exit or Exit()
        wall_s = time.monotonic() - attempt.started_at if attempt.started_at else 0.0
        attempt.phase = Phase.OVER
        attempt.cancel_timers()
        self._outputs.finish(attempt)
        self.runner.forget(attempt)
        self.lending.take_back(attempt)
        self._live.pop(attempt.key, None)
        if self.words.offers is not None:
            self.words.offers.forget(attempt)
        if (remote := self._remote) is not None:
            self._helper.submit(lambda: remote.discard(attempt.key), lambda _gone, _error: None)
        self.words.reports.last(attempt)
        self._ended[attempt.key] = None
        if len(self._ended) > _REMEMBERED:
            self._ended.popitem(last=False)
        self._outbox.add(
            wire.Ended(
                attempt.trial,
                attempt.number,
                ending.reason,
                outcome.code,
                outcome.signal,
                self.mask("\n".join(filter(None, (ending.text, attempt.remark))))[-8192:],
                round(outcome.cpu_s, 6),
                round(wall_s, 6),
                weights.digest if weights is not None else "",
                weights.kind if weights is not None else "",
                weights.nbytes if weights is not None else 0,
            ),
            urgent=True,
        )
        failpoint("agent.end.noted")
        if attempt.number > 1 or len(self._live) > 0:
            self._release_successor(attempt.trial)

    def _release_successor(self, trial: int) -> None:
        """Let a later attempt of the same trial start, now that nothing is in its way."""
        left = [a for a in self._live.values() if a.trial == trial]
        if len(left) == 1 and left[0].phase is Phase.WAITING and not left[0].outputs:
            self._prepare(left[0])

    def _refuse(self, order: wire.Start, text: str) -> None:
        self._ended[(order.trial, order.attempt)] = None
        self._outbox.add(
            wire.Ended(order.trial, order.attempt, wire.START_FAILED, text=self.mask(text)[-8192:]),
            urgent=True,
        )

    def _sweep(self, attempt: Attempt) -> None:
        """Kill what the attempt left behind, until nothing new turns up."""
        path = attempt.session_path
        own = self.runner.own_pids()
        sweep.sweep_where(own, lambda pid: sweep.belongs(pid, path, attempt.pid))

    def sweep_strays(self) -> None:
        """Kill the leftovers of attempts that are over; also those that nobody claims, when
        no attempt runs that they could belong to."""
        live = {each.session_path for each in self._live.values()}

        def stray(pid: int) -> bool:
            return not live or sweep.session_of(pid) not in live | {None, ""}

        sweep.sweep_where(self.runner.own_pids(), stray)
