"""Whether an experiment stands still, worked out from the world: what its tuner's threads stand
in, what runs, and who waits for what. The core has its own answer (``dispatcher.core.stalls``), of
which nothing is used here: this one judges whether each stall is named in time, with its cause, and
none where something still moves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dispatcher.core import actions as a
from dispatcher.core.model import Phase, TrialState
from dispatcher.core.settings import Settings, StallPolicy
from tests.support.tuner_model import Whereabouts

if TYPE_CHECKING:
    from tests.support.world import World

#: Seconds after which each word between head and tuner has arrived, and was acted upon.
KNOWN_S = 2.0

#: What a stall is named later than it has to be, at most: words on their way, and the pause
#: between two looks.
SLACK_S = 6.0

#: How long the head looks on, where it asks as NNI does, before it asks for one more.
ASKED_MORE_S = 10.0

#: What an attempt will begin of, or has begun, if nobody ends it.
_UNDER_WAY = (TrialState.QUEUED, TrialState.RUNNING, TrialState.BACKOFF)


class Standstill:
    """Looks at a world now and then."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._next = 0.0
        self._who: object = None  # stood still at the last look
        self._since = 0.0  # since when they do, or when it was named
        self._late = False  # what is late is a fault once
        self._under_way: tuple[set[int], set[int]] = (set(), set())  # before this batch, after it

    def moved(self) -> None:
        """Something was begun."""
        self._who = None

    def committed(self) -> None:
        """A batch is on the disk. A stall that is named with it was one before what came later in
        the same batch: what that began is no fault."""
        if self._world.engine is not None:
            state = self._world.engine.state
            self._under_way = (self._under_way[1], {*state.queued, *state.running, *state.backoff})

    # -- in time ---------------------------------------------------------------------------

    def look(self) -> None:
        """A second has passed."""
        now = self._world.now
        if now < self._next:
            return
        self._next = now + 1.0
        who = self._who_stand()
        if who is None or who != self._who:
            self._who, self._since, self._late = who, now, False
            return
        state = self._world.engine.state  # type: ignore[union-attr]
        bound = self._bound(state.settings, certain=who[3])
        if now - self._since > bound and not self._late:
            self._late = True
            self._world.faults.append(
                f"nothing moves for {now - self._since:.0f} s, and no stall is named: {who}"
            )

    def _bound(self, settings: Settings, *, certain: bool) -> float:
        first = SLACK_S if certain else settings.stall_timeout_s + SLACK_S
        return first + (ASKED_MORE_S if settings.asks_at_most else 0.0)

    def _who_stand(self) -> tuple[Phase, object, object, bool] | None:
        """Who stands still, if nothing at all can move; None if something might."""
        if any(host.agent and host.agent.processes for host in self._world.hosts.values()):
            return None
        assert self._world.engine is not None
        state = self._world.engine.state
        there = self._world.tuner.whereabouts()
        if there is None or there.ready_s < KNOWN_S or there.thinking:
            return None
        if there.goes_on:
            return None
        if there.delivers_s is not None or state.low_disks:
            return None
        if state.phase is Phase.DRAINING:
            # It waits for the tuner only, and for a bounded time.
            waits = there.stuck is not None
        else:
            waits = bool(there.waiting or there.standing or there.stuck is not None)
            waits = waits and state.phase is Phase.RUNNING
        if not waits or any(trial.state in _UNDER_WAY for trial in state.trials.values()):
            return None
        behind = {t.id for t in state.trials.values() if t.state is TrialState.DELIVERING}
        if behind - there.in_line - {there.stuck}:
            return None  # its result is on its way
        certain = not there.standing and there.stuck is None
        named = state.fail_at is None and state.settings.on_stall is StallPolicy.FAIL
        return (
            state.phase,
            (*sorted(there.waiting), "and", *sorted(there.standing)),
            there.stuck,
            certain and named,
        )

    # -- with its cause --------------------------------------------------------------------

    def named(self, stall: a.ReportStall) -> None:
        """A stall was named: is it one, and is it this one?"""
        self._since = self._world.now
        assert self._world.engine is not None
        state = self._world.engine.state
        there = self._world.tuner.whereabouts()
        if there is None or there.ready_s < KNOWN_S:
            return  # the head may not know yet
        if state.phase is Phase.RUNNING:
            self._moves(there, stall)
            self._is_of_that_kind(there, stall)
            self._has_all(there, stall)
        elif there.stuck_s > KNOWN_S and "it stands still" not in stall.text:
            self._wrong("without the delivery that stands still", stall)

    def _moves(self, there: Whereabouts, stall: a.ReportStall) -> None:
        assert self._world.engine is not None
        trials = self._world.engine.state.trials.values()
        for trial in _long(there.thinking):
            self._wrong(f"while request {trial} computes", stall)
        if there.delivers_s is not None and there.delivers_s > KNOWN_S:
            self._wrong("while a result is being taken", stall)
        for each in trials:
            if each.state in _UNDER_WAY and each.id in self._under_way[0]:
                self._wrong(f"while {each.id} is {each.state.value}", stall)

    def _is_of_that_kind(self, there: Whereabouts, stall: a.ReportStall) -> None:
        foreign = _long(there.standing)
        still = there.stuck is not None and there.stuck_s > KNOWN_S
        if stall.certain and (foreign or still):
            self._wrong(f"as certain, and {foreign or there.stuck} may go on by itself", stall)
        newest = min(there.newest_s.values(), default=0.0)
        ours = not there.standing and there.stuck is None and newest > KNOWN_S
        if ours and not stall.certain:
            self._wrong("as suspected, and each wait is ours", stall)
        if foreign and "no wait_for" not in stall.text and "not wait_for" not in stall.text:
            self._wrong(f"without what {foreign} stand in", stall)
        if still and "the tuner stands still" not in stall.text:
            self._wrong("without the delivery that stands still", stall)
        waits = _long(there.waiting) if "…" not in stall.text else []  # eight are named at most
        if waits and "waits for" not in stall.text and "wait for" not in stall.text:
            self._wrong(f"without what {waits} wait for", stall)

    def _has_all(self, there: Whereabouts, stall: a.ReportStall) -> None:
        waits = {*_long(there.waiting), *_long(there.standing)}
        if there.stuck is not None and there.stuck_s > KNOWN_S:
            waits.add(there.stuck)
        missing = waits - set(stall.trials)
        if missing and len(stall.trials) < len(waits):
            # One that is being cancelled in this very turn is not there any more.
            self._world.later(0.0, lambda: self._still_missing(missing, stall))
        known = {*there.waiting, *there.standing, *there.in_line, there.stuck}
        known.update(trial for trial, seconds in there.newest_s.items() if seconds < KNOWN_S)
        strangers = [trial for trial in stall.trials if trial not in known]
        if strangers:
            self._wrong(f"with {strangers}, which do not wait", stall)

    def _still_missing(self, missing: set[int], stall: a.ReportStall) -> None:
        there = self._world.tuner.whereabouts()
        if there is None:
            return
        left = missing & {*there.waiting, *there.standing, there.stuck}
        if left:
            self._wrong(f"without {sorted(left)}", stall)

    def _wrong(self, what: str, stall: a.ReportStall) -> None:
        self._world.faults.append(f"a stall is named {what}: {stall.text}")


def _long(since: dict[int, float]) -> list[int]:
    """Those of whom the head knows."""
    return sorted(trial for trial, seconds in since.items() if seconds > KNOWN_S)
