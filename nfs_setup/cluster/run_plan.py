"""Orders carried out on all machines: looked at first, then wave after wave."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from nfs_setup.cluster.asking import Access, ask, look
from nfs_setup.cluster.members import SERVER, Connect, Program
from nfs_setup.cluster.plan import (
    DONE,
    FAILED,
    LEFT_OUT,
    LOOKING,
    UNKNOWN,
    WAITING,
    WORKING,
    Outcome,
    Wave,
)
from nfs_setup.cluster.thread_pool import ThreadPool
from nfs_setup.errors import MachineRefuses, RequestRefused, SetupError

#: Called at each change of a machine's state, in the caller's thread.
Watcher = Callable[[Outcome], None]


class RunPlan:
    """Carries waves out, once.

    Args:
        connect: how to log in.
        program: this package, packed.
        needs_root: whether a machine without root is refused (a dry run needs none).
        at_once: how many machines may be worked on at the same time.
        patience_s: how long machines under way are awaited after :meth:`interrupt`.
        watch: see :data:`Watcher`.
        on_waiting: called, in the caller's thread, when machines under way are awaited.
    """

    def __init__(
        self,
        connect: Connect,
        program: Program,
        *,
        needs_root: bool,
        at_once: int = 10,
        patience_s: float = 120.0,
        watch: Watcher = lambda outcome: None,
        on_waiting: Callable[[], None] = lambda: None,
    ) -> None:
        self._connect = connect
        self._program = program
        self._needs_root = needs_root
        self._watch = watch
        self._pool: ThreadPool[Outcome] = ThreadPool(at_once, patience_s, on_waiting)

    @property
    def interrupted(self) -> bool:
        """Whether :meth:`interrupt` was called."""
        return self._pool.interrupted

    def interrupt(self) -> None:
        """Begin with no further machine, and await those under way; the second time, do not
        await them either. What is under way there is finished there. Safe in signal handlers."""
        self._pool.interrupt()

    def carry_out(self, waves: Sequence[Wave]) -> list[Outcome]:
        """Look at all machines, then carry out wave after wave; a wave waits for the one before
        and is left out unless that went well everywhere. One machine's failure does not stop
        others of its wave. Blocks until done.

        Returns:
            How it ended, machine by machine, in the order of the waves. Never raises for what
            happens to a machine.
        """
        staged = [(wave, [Outcome(order) for order in wave.orders]) for wave in waves]
        outcomes = [outcome for _, stage in staged for outcome in stage]
        accesses = self._look(outcomes)
        well = True
        for wave, stage in staged:
            going = [outcome for outcome in stage if not outcome.over]
            if well and not self.interrupted:
                self._ask(going, accesses)
                well = all(outcome.state == DONE for outcome in stage)
            elif not self.interrupted:
                for outcome in going:
                    self._end(outcome, LEFT_OUT, MachineRefuses(wave.otherwise))
        for outcome in outcomes:
            if not outcome.over:
                begun = outcome.state == WORKING
                self._end(outcome, UNKNOWN if begun else LEFT_OUT, _interrupted(begun))
        return outcomes

    def _look(self, outcomes: list[Outcome]) -> dict[str, Access]:
        accesses: dict[str, Access] = {}

        def looked(outcome: Outcome) -> Access:
            member = outcome.order.member
            with self._connect(member) as remote:
                return look(remote, member, needs_root=self._needs_root)

        def keep(outcome: Outcome, access: Access) -> None:
            accesses[outcome.name] = access
            outcome.state = WAITING
            self._watch(outcome)

        self._work_off(outcomes, looked, LOOKING, keep)
        self._refuse_same(outcomes, accesses)
        return accesses

    def _refuse_same(self, outcomes: list[Outcome], accesses: dict[str, Access]) -> None:
        """Refuse two names of one machine; only a login at both shows that."""
        first: dict[str, Outcome] = {}
        # The server first, whichever wave it is in.
        for outcome in sorted(outcomes, key=lambda one: one.order.member.role != SERVER):
            if outcome.name not in accesses:
                continue
            other = first.setdefault(accesses[outcome.name].identity, outcome)
            if other is outcome:
                continue
            server = other.order.member.role == SERVER
            error = RequestRefused(
                f"is the {'server itself' if server else f'same machine as {other.name}'}",
                hint="what runs on the server uses the folder; it needs no mount"
                if server
                else "remove one of the two from the inventory",
            )
            self._end(outcome, FAILED, error)

    def _ask(self, outcomes: list[Outcome], accesses: dict[str, Access]) -> None:
        def asked(outcome: Outcome) -> Any:
            order = outcome.order
            with self._connect(order.member) as remote:
                return ask(
                    remote, self._program, accesses[outcome.name], order.member, order.request
                )

        def keep(outcome: Outcome, report: Any) -> None:
            outcome.report = report
            self._end(outcome, DONE)

        self._work_off(outcomes, asked, WORKING, keep)

    def _work_off(
        self,
        outcomes: list[Outcome],
        work: Callable[[Outcome], Any],
        state: str,
        keep: Callable[[Outcome, Any], None],
    ) -> None:
        begun_at: dict[str, float] = {}

        def begun(outcome: Outcome) -> None:
            begun_at[outcome.name] = time.monotonic()
            outcome.state = state
            self._watch(outcome)

        def ended(outcome: Outcome, value: Any) -> None:
            outcome.seconds += time.monotonic() - begun_at[outcome.name]
            if isinstance(value, SetupError):
                self._end(outcome, FAILED, value)
            elif isinstance(value, BaseException):
                raise value
            else:
                keep(outcome, value)

        self._pool.work_off(outcomes, work, begun=begun, ended=ended)

    def _end(self, outcome: Outcome, state: str, error: SetupError | None = None) -> None:
        outcome.state, outcome.error = state, error
        self._watch(outcome)


def _interrupted(begun: bool) -> MachineRefuses:
    if begun:
        return MachineRefuses(
            "was still under way when this command ended",
            hint="it goes on there, all or nothing; see how it ended with --status",
        )
    return MachineRefuses("nothing was begun there: this command was interrupted")
