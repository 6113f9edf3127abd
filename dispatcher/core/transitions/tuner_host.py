"""The tuner's process: it is ready, or gone."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core import waits
from dispatcher.core.actions import (
    Action,
    LaunchTuner,
    OpenRequest,
    TellImport,
    TellSearchSpace,
    TellVersion,
)
from dispatcher.core.gates import delivery_of
from dispatcher.core.model import OVER, Phase, Rule, State, TrialState
from dispatcher.core.moves import asks, move
from dispatcher.core.settings import HOST_RESTARTS_IN_A_ROW
from dispatcher.core.transitions import Effects


def tuner_host_ready(state: State, _event: e.TunerHostReady, out: list[Action]) -> bool:
    """Open all requests and repeat all deliveries in the new process. A second report of the same
    process changes nothing: it would deliver twice.

    Args:
        state: changed in place.
        _event: has no fields.
        out: gets all that the process has to do.
    """
    if state.host_ready:
        return False
    state.host_ready = True
    for action in outstanding_calls(state):
        if isinstance(action, OpenRequest):
            asks(state, state.trials[action.trial])
        out.append(action)
    return True


def outstanding_calls(state: State) -> list[Action]:
    """All that the tuner's process has to do in this state, as it is asked of a new one."""
    out: list[Action] = []
    if state.search_space is not None:
        out.append(TellSearchSpace(state.search_space))
    out.extend(TellVersion(name, len(versions)) for name, versions in state.stores.items())
    out.extend(TellImport(number, data) for number, data in state.imports.items())
    out.extend(delivery_of(state.trials[t]) for t in state.delivering)
    if state.phase is Phase.RUNNING:
        out.extend(OpenRequest(trial_id) for trial_id in state.open)
    return out


def tuner_host_lost(state: State, event: e.TunerHostLost, out: list[Action]) -> None:
    """Have another process started, unless that would change nothing: the experiment ends then.

    Args:
        state: changed in place.
        event: why, and whether the tuner cannot be built at all.
        out: gets the launch.
    """
    host_gone(state)
    state.host_restarts += 1
    if state.phase in OVER:
        return
    if event.fatal or state.host_restarts > HOST_RESTARTS_IN_A_ROW:
        state.host_restarts = max(state.host_restarts, HOST_RESTARTS_IN_A_ROW + 1)  # no more
        if state.phase is Phase.RUNNING:
            state.phase = Phase.DRAINING
            state.phase_reason = event.reason
        state.over_phase = Phase.FAILED
    else:
        out.append(LaunchTuner())


def host_gone(state: State) -> None:
    """Open all blocked requests again: their threads are gone with their process, and the next one
    is asked for them."""
    state.host_ready = False
    for trial_id in state.delivering:
        state.trials[trial_id].delivery_still = False
    if state.phase is Phase.DRAINING:
        state.quiet_since = state.fail_at = None  # its successor has as long as it had
    trigger, state.trigger = state.trigger, Rule.HOST_GONE
    for trial_id in list(state.blocked):
        waits.erase(state, trial_id)
        move(state, state.trials[trial_id], TrialState.OPEN)
    state.trigger = trigger
    state.open = dict.fromkeys(sorted(state.open))


EFFECTS: Final[Effects] = {
    e.TunerHostReady: tuner_host_ready,
    e.TunerHostLost: tuner_host_lost,
}
