"""Requests of the weight keeper."""

from typing import Final

from dispatcher.core import events as e
from dispatcher.core.actions import Action, GrantRemoval
from dispatcher.core.model import State, TrialState
from dispatcher.core.transitions import Effects


def removal_announced(state: State, event: e.RemovalAnnounced, out: list[Action]) -> None:
    """Grant the removal of weights that no child on its way needs. From here on a proposal that
    names one of these fails before it takes a slot.

    Args:
        state: changed in place.
        event: the trials whose weights are to go.
        out: gets the grant.
    """
    on_the_way = (*state.held, *state.queued, *state.running, *state.backoff)
    needed = {state.trials[child].parent for child in on_the_way}
    granted = tuple(
        trial
        for trial in event.trials
        if trial in state.trials
        and state.trials[trial].state is TrialState.ENDED
        and trial not in needed
    )
    state.removed_weights.update(granted)
    out.append(GrantRemoval(granted))


EFFECTS: Final[Effects] = {e.RemovalAnnounced: removal_announced}
