"""The bound on a drain: how long it waits for the tuner, whatever the tuner does.

A drain lets trials that run finish, then waits until their results were delivered. A delivery that
stands still (at a lock that nobody gives back) ends the drain after ``stallTimeout``; one that
computes, or is silent, after :data:`~dispatcher.core.settings.DRAIN_PATIENCE` times that. Both are
counted from the newest delivery, so that a long line of results that the tuner does take is taken
to its end. Results that were not delivered are delivered after a resume.

The clock of a stall goes on in a drain that begins after it: a tuner that had stood still for
``stallTimeout`` by then has had the time that a drain gives it.
"""

from dispatcher.core.actions import Action, AskStacks, ReportStall
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, State
from dispatcher.core.settings import DRAIN_PATIENCE, HOST_RESTARTS_IN_A_ROW, STALL_REPORT_S


def waits_for_tuner(state: State) -> bool:
    """Whether all that a drain still waits for is the tuner's taking of results and ends."""
    if state.phase is not Phase.DRAINING or state.running or not state.delivering:
        return False
    if state.host_ready:
        return True
    # A host that starts again is waited for; one that was given up is not.
    return state.settings.bounded_drain and state.host_restarts <= HOST_RESTARTS_IN_A_ROW


def stuck_delivery(state: State) -> TrialId | None:
    """The trial whose result or end the tuner stands still in taking."""
    first = next(iter(state.delivering), None)
    return first if first is not None and state.trials[first].delivery_still else None


def due(state: State) -> float | None:
    """When the drain ends without the tuner; None while no clock runs."""
    if state.quiet_since is None or not state.settings.bounded_drain:
        return None
    bound = state.settings.stall_timeout_s
    end = state.quiet_since + DRAIN_PATIENCE * bound
    if stuck_delivery(state) is not None:
        end = min(end, max(state.quiet_since, state.still_since) + bound)
    return end


def watch(state: State, out: list[Action]) -> None:
    """Start or act on the clock of a drain that waits for the tuner."""
    if state.quiet_since is None:
        state.quiet_since = state.now
    if state.fail_at is not None:
        if state.now >= state.fail_at:
            _end(state)
        return
    end = due(state)
    if end is None or state.now < end:
        return
    stuck = (*list(state.delivering)[:1], *state.blocked)[:64]
    out.append(AskStacks(stuck))
    out.append(
        ReportStall(False, f"the drain ends without the tuner: {standstill_text(state)}", stuck)
    )
    state.fail_at = state.now + STALL_REPORT_S


def _end(state: State) -> None:
    state.fail_at = None
    undelivered = len(state.delivering)
    state.phase = Phase.STOPPING
    if state.over_phase is Phase.COMPLETED:
        state.over_phase = Phase.FAILED  # it is not complete, and can be resumed
    text = (
        f"the drain ended without the tuner: {standstill_text(state)}; results that are delivered "
        f"after a resume: {undelivered}"
    )
    state.phase_reason = f"{state.phase_reason}; {text}" if state.phase_reason else text


def standstill_text(state: State) -> str:
    """The state of a tuner that does not take the first result that waits for it, as text."""
    first = next(iter(state.delivering))
    if not state.host_ready:
        return "its process has not started again"
    if stuck_delivery(state) is not None:
        return f"it stands still {standing_at(state, first)}"
    return f"it computes, or is silent, instead of taking that of trial {first}"


def standing_at(state: State, trial: TrialId) -> str:
    """The place at which a delivery stands still, as the tuner's process has reported it."""
    return state.still_at or f"in receive_trial_result or trial_end of trial {trial}"


def sentence(state: State, now: float) -> str:
    """The sentence for ``why``: where the tuner is, since when, and when the drain ends. Empty if
    the drain waits for something else."""
    end = due(state)
    if end is None or not waits_for_tuner(state):
        return ""
    assert state.quiet_since is not None
    still = stuck_delivery(state) is not None
    since = max(state.quiet_since, state.still_since) if still else state.quiet_since
    bound = "stallTimeout" if end == since + state.settings.stall_timeout_s else _LONG
    return (
        f"{len(state.delivering)} results wait for the tuner: {standstill_text(state)}, for "
        f"{max(0.0, now - since):.0f} s so far; the drain ends in {max(0.0, end - now):.0f} s "
        f"({bound}) at the latest, and what is not delivered by then is delivered after a resume"
    )


_LONG = f"{DRAIN_PATIENCE} times stallTimeout"
