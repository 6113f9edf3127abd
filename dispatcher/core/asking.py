"""The number of requests under way: when another one is opened, and when it has to wait.

Our own rule: as many as a slot would idle without, up to ``lookahead`` that wait for something. As
NNI did (``Settings.asks_at_most``): a request when a trial is over, so that never more than so many
lie between being asked for and having been delivered. Where all of those wait, NNI would stand
still for ever; here the bound is raised by one, and the user gets a report.
"""

from dispatcher.core.actions import Action, ReportAsking
from dispatcher.core.model import State
from dispatcher.core.settings import ABANDONED_IN_A_ROW, ASK_MORE_S


def may_open_another(state: State) -> bool:
    """Whether a request under a new id may be opened."""
    return _is_wanted(state) and not at_nnis_bound(state)


def _is_wanted(state: State) -> bool:
    if state.abandoned_in_a_row >= ABANDONED_IN_A_ROW:
        return False  # the next result may change the tuner's mind
    if len(state.blocked) + len(state.held) >= state.lookahead:
        return False
    limit = state.settings.max_trials
    if limit is None:
        return True
    return state.submitted + len(state.open) + len(state.blocked) < limit


def at_nnis_bound(state: State) -> bool:
    """Whether as many requests are under way as NNI would have asked for. A delivery that stands
    still is not counted: it may wait for what the next request brings."""
    bound = state.asks_at_most
    if not bound:
        return False
    first = next(iter(state.delivering), None)
    still = first is not None and state.trials[first].delivery_still
    under_way = (
        len(state.open)
        + len(state.blocked)
        + len(state.held)
        + len(state.queued)
        + len(state.running)
        + len(state.backoff)
        + (0 if still else len(state.delivering))
    )
    return under_way >= bound


def asks_more_at(state: State, *, certain: bool) -> float | None:
    """When the bound is raised, in an experiment in which nothing but waits is under way since
    ``quiet_since``: at once if all of them are ours to see through. None if it is not."""
    if state.quiet_since is None or state.tuner_done or state.parked or state.delivering:
        return None
    if not (at_nnis_bound(state) and _is_wanted(state)):
        return None
    return state.quiet_since if certain else state.quiet_since + ASK_MORE_S


def ask_more(state: State, waits: str, out: list[Action]) -> None:
    """Raise the bound by one, and report it.

    Args:
        state: changed in place.
        waits: which requests wait for what, in one line.
        out: gets the report.
    """
    state.asked_more += 1
    state.quiet_since = None  # from now on somebody thinks
    out.append(
        ReportAsking(
            f"all {state.asks_at_most - 1} requests that NNI would ask for wait, and nothing else "
            f"is under way ({waits}): one more is asked for, up to lookahead ({state.lookahead}) "
            "that wait. NNI would stand still here. A 'lookahead' in the file asks ahead from "
            "the beginning"
        )
    )
