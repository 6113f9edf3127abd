"""Runs each attempt on all nodes of the allocation: a process here, and one on each other node.

The attempt is over when all of them are. The first that ends badly, or is lost, is how the attempt
ended; the others are stopped then.
"""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass, field

import msgspec

from trial_runtime.agent.attempt import Attempt, CannotStart, Exit, Share
from trial_runtime.agent.base.loop import Timers
from trial_runtime.agent.nodes.followers import Followers
from trial_runtime.agent.nodes.messages import Job, Report
from trial_runtime.agent.nodes.variables import free_port, rank_variables
from trial_runtime.agent.runners.fresh import FreshRunner
from trial_runtime.agent.runners.runner import RunnerContext

#: What a follower may take beyond the grace to report the end of a process that it has killed.
_LATE_S = 5.0


@dataclass
class _Spread:
    """The attempt that runs on all nodes, and what is known of its ends."""

    attempt: Attempt
    outcome: Exit | None = None  # of the process here
    bad: Exit | None = None  # the first that was bad, as that of the whole attempt
    stopping: bool = False
    reports: dict[int, Report] = field(default_factory=dict)


class NodesRunner(FreshRunner):
    """See :class:`trial_runtime.agent.runners.runner.Runner`. One attempt at a time.

    Args:
        context: parts of the agent.
        followers: the other nodes.
        timers: of the agent's loop.
        launched: whether variables of this agent's own environment count, as a launcher has set
            them on each node.
    """

    def __init__(
        self,
        context: RunnerContext,
        followers: Followers,
        timers: Timers,
        *,
        launched: bool = False,
    ) -> None:
        super().__init__(context)
        self._given = {*context.spec.environment, *(os.environ if launched else ())}
        self._followers = followers
        self._timers = timers
        self._spread: _Spread | None = None
        followers.on_change = self._judge

    def launch(self, attempt: Attempt) -> None:
        followers = self._followers
        if followers.missing:
            raise CannotStart(f"node {followers.missing[0]} of its allocation has not come")
        if followers.lost:
            raise CannotStart(followers.lost)
        if self._spread is not None:
            raise CannotStart("a trial runs on the nodes of this allocation already")
        try:
            port = free_port(followers.host)
        except OSError as error:
            text = f"no port of {followers.host} for the ranks: {error.strerror}"
            raise CannotStart(text) from error

        def variables(rank: int) -> dict[str, str]:
            return rank_variables(
                rank,
                nodes=followers.nodes,
                host=followers.host,
                port=port,
                given=self._given,
            )

        share = attempt.share
        attempt.share = Share({**share.variables, **variables(0)}, share.cores, share.cgroup)
        super().launch(attempt)
        self._spread = _Spread(attempt)
        session = msgspec.structs.replace(attempt.session, address="", routing="")
        followers.begin(
            attempt.key,
            {rank: Job(session, variables(rank)) for rank in range(1, followers.nodes)},
        )

    def terminate(self, attempt: Attempt) -> None:
        self._signal(attempt, signal.SIGTERM)

    def kill(self, attempt: Attempt) -> None:
        self._signal(attempt, signal.SIGKILL)

    def forget(self, attempt: Attempt) -> None:
        if self._spread is not None and self._spread.attempt is attempt:
            self._spread = None
        super().forget(attempt)

    def _signal(self, attempt: Attempt, number: int) -> None:
        spread = self._spread
        if spread is None or spread.attempt is not attempt:
            return
        spread.stopping = True
        self._followers.signal(attempt.key, number)
        if spread.outcome is None:  # else its number may be another's by now
            (super().kill if number == signal.SIGKILL else super().terminate)(attempt)
        if number == signal.SIGKILL:
            self._timers.at(time.monotonic() + _LATE_S, lambda: self._give_up(spread))

    def _ended(self, attempt: Attempt, outcome: Exit) -> None:
        spread = self._spread
        if spread is None or spread.attempt is not attempt:
            super()._ended(attempt, outcome)
            return
        spread.outcome = outcome
        if spread.bad is None and outcome.code != 0:
            spread.bad = outcome
        self._judge()

    def _judge(self) -> None:
        """Look how far all processes are, and what follows."""
        spread = self._spread
        if spread is None or spread.attempt.exit is not None:
            return
        running = spread.outcome is None
        for rank, node in self._followers:
            report = node.report
            if node.lost:
                spread.bad = spread.bad or Exit(lost=True, text=self._followers.lost)
            elif report.key != spread.attempt.key or report.phase != "over":
                running = True
            else:
                spread.reports[rank] = report
                if spread.bad is None and report.code != 0:
                    spread.bad = _exit_of(report)
        if not running:
            self._finish(spread)
        elif not spread.stopping and spread.bad is not None:
            self._stop(spread)
        elif not spread.stopping and spread.outcome is not None:
            # Rank 0 is through: the others have their grace, and are no reason to fail afterwards.
            spread.stopping = True
            self._timers.at(time.monotonic() + self._grace_s, lambda: self._outlived(spread))

    @property
    def _grace_s(self) -> float:
        return self._context.spec.stop_grace_s

    def _outlived(self, spread: _Spread) -> None:
        """Stop the ranks that go on though rank 0 has ended well."""
        if self._spread is spread and spread.attempt.exit is None:
            spread.bad = spread.bad or spread.outcome  # what they make of the signal is no failure
            self._stop(spread)

    def _stop(self, spread: _Spread) -> None:
        self.terminate(spread.attempt)
        when = time.monotonic() + self._grace_s

        def force() -> None:
            if self._spread is spread and spread.attempt.exit is None:
                self.kill(spread.attempt)

        self._timers.at(when, force)

    def _give_up(self, spread: _Spread) -> None:
        """End the attempt though a node does not say that its process is gone."""
        if self._spread is not spread or spread.attempt.exit is not None:
            return
        silent = [
            (rank, node.report.host)
            for rank, node in self._followers
            if rank not in spread.reports and not node.lost
        ]
        if spread.outcome is None or not silent:
            return
        rank, host = silent[0]
        text = f"node {host} (rank {rank}) of its allocation does not say that its process is gone"
        spread.bad = spread.bad or Exit(lost=True, text=text)
        self._finish(spread)

    def _finish(self, spread: _Spread) -> None:
        outcome = spread.bad or spread.outcome
        assert outcome is not None
        cpu_s = sum(report.cpu_s for report in spread.reports.values())
        cpu_s += 0.0 if spread.outcome is None else spread.outcome.cpu_s
        whole = Exit(
            outcome.code, outcome.signal, outcome.text, cpu_s, outcome.out_of_memory, outcome.lost
        )
        self._context.events.exited(spread.attempt, whole)


def _exit_of(report: Report) -> Exit:
    """How a whole attempt ended by the bad end of one rank."""
    if report.signal is not None:
        how = f"ended by signal {report.signal}"
    else:
        how = f"ended with exit code {report.code}"
    text = f"rank {report.rank} on {report.host} {how}"
    return Exit(report.code, report.signal, f"{text}\n{report.text}".rstrip())
