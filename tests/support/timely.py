"""Does what time alone brings about come when it is due, whatever else happens meanwhile?

The core says when it has to be woken (``next_deadline``). Whatever a later moment would change by
itself has to be due by then: else it comes as late as the next event, which may be hours. So no
tick before the deadline may change anything, and without a deadline none ever.
"""

from __future__ import annotations

import pickle

from dispatcher.core import State, apply, next_deadline
from dispatcher.core import events as e
from dispatcher.core.model import OVER
from tests.support.replaying import differences

#: Seconds: what is due a moment later is due.
_A_MOMENT = 1e-3

#: Longer than anything that anybody would wait for.
_A_YEAR = 366 * 86_400.0


#: What a tick brings up to date and nobody sees: the clock, whether to look for a place, or judge.
_NOTES = ("now", "last_event_at", "all_wait", "unjudged")


def overslept(state: State) -> list[str]:
    """What would have happened before the core is woken the next time, one sentence each; empty
    if nothing. The state is left as it is."""
    if state.phase in OVER:
        return []
    due = next_deadline(state)
    moment = state.now + _A_YEAR if due is None else due - _A_MOMENT
    if moment <= state.now:
        return []  # it is being woken
    after = _copy(state)
    actions = apply(after, e.Tick(), moment).actions
    for name in _NOTES:
        setattr(after, name, getattr(state, name))
    if after.quiet_since is None:
        # No stall any more (more may be asked for since): as good as the next event.
        after.quiet_since, after.deadlock_named = state.quiet_since, state.deadlock_named
    when = "nothing is due" if due is None else f"due in {due - state.now:.0f} s"
    found = [f"{when}, and by then: {change}" for change in differences(state, after)]
    return [*found, *(f"{when}, and by then: {action}" for action in actions)]


def _copy(state: State) -> State:
    """A state of its own, without the trace, which grows with each move. With a hundred trials it
    is most of what an event costs a scene: ``copy.deepcopy`` takes four times as long."""
    trace, state.trace = state.trace, None
    try:
        after = pickle.loads(pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
    finally:
        state.trace = trace
    assert isinstance(after, State)
    return after
