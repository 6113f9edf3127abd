"""Stalls: nothing can move any more. They are recognised, named, and decided by ``onStall``.

A *deadlock* is certain (every open request waits through us, and nothing is under way) and named at
once. A *suspected stall* contains waits that are not ours, and is named after ``stallTimeout``. A
tuner that thinks (its thread uses the processor) is no stall, however long it takes; ``why`` says
so.
"""

from dispatcher.core import asking, draining
from dispatcher.core.actions import Action, AskStacks, ReportStall
from dispatcher.core.draining import stuck_delivery
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, State, Wait
from dispatcher.core.settings import LOOKAHEAD_CEILING, STALL_REPORT_S, StallPolicy

#: Where a head keeps what :class:`AskStacks` brings, in the experiment's folder.
STACKS_FILE = "reports/stall.txt"
STACKS = f"Stacks: {STACKS_FILE}"


def watch(state: State, out: list[Action]) -> bool:
    """Start, stop or act on the clock of a stall. True if more requests may be opened."""
    if draining.waits_for_tuner(state):
        draining.watch(state, out)
        return False
    if state.phase is not Phase.RUNNING or not state.host_ready or not _quiet(state):
        state.quiet_since = state.fail_at = None
        state.deadlock_named = False
        return False
    if state.fail_at is not None:
        if state.now >= state.fail_at:
            state.fail_at = None
            state.phase = Phase.STOPPING  # not draining: that would wait for the delivery
            state.over_phase = Phase.FAILED
            state.phase_reason = stalled(state, state.now)
        return False
    if state.quiet_since is None:
        state.quiet_since = state.now
    certain = not (state.delivering or foreign(state))
    more_at = asking.asks_more_at(state, certain=certain)
    if more_at is not None and state.now >= more_at:
        asking.ask_more(state, waits_text(state), out)
        return True
    due = state.now >= state.quiet_since + state.settings.stall_timeout_s
    if due or (certain and not state.deadlock_named):
        state.deadlock_named = certain
        return _name(state, certain, out)
    return False


def due(state: State) -> float | None:
    """When :func:`watch` has to look again; None while no clock runs."""
    if state.fail_at is not None or state.quiet_since is None:
        return state.fail_at
    more_at = asking.asks_more_at(state, certain=not foreign(state))
    if more_at is not None:
        return more_at
    return state.quiet_since + state.settings.stall_timeout_s


def _quiet(state: State) -> bool:
    """Only requests that stand still are left: no trial is under way, waiting for a slot or
    being delivered, and no request's thread is at work."""
    if state.running or state.queued or state.backoff or state.open:
        return False
    if state.low_disks:
        return False  # nothing is asked for meanwhile that could move them
    if state.delivering:
        return stuck_delivery(state) is not None
    return bool(state.blocked or state.held)


def foreign(state: State) -> bool:
    """Whether a request stands in a wait that is not ours."""
    return any(state.waits[t].mode == "foreign" for t in state.blocked)


def _name(state: State, certain: bool, out: list[Action]) -> bool:
    stuck = (*list(state.delivering)[:1], *state.blocked)[:64]
    text = waits_text(state)
    policy = state.settings.on_stall
    crowded = len(state.blocked) + len(state.held) >= state.lookahead
    if policy is StallPolicy.GROW and crowded and state.lookahead < LOOKAHEAD_CEILING:
        room = LOOKAHEAD_CEILING - state.settings.lookahead
        state.lookahead_extra = min(room, state.lookahead_extra + state.settings.lookahead)
        state.quiet_since = state.now
        out.append(ReportStall(certain, f"{text}; lookahead raised to {state.lookahead}", stuck))
        return True
    out.append(AskStacks(stuck))
    out.append(ReportStall(certain, f"{text}. {STACKS}", stuck))
    if policy is StallPolicy.WAIT:
        state.quiet_since = state.now  # named again after another stallTimeout
    else:
        state.fail_at = state.now + STALL_REPORT_S
    return False


def stalled(state: State, now: float) -> str:
    """Why an experiment that stands still ends. Events from before places were recorded read as
    they did then."""
    text = f"nothing can move any more: {waits_text(state, now)}"
    return f"{text}. {STACKS}" if any(wait.place for wait in state.waits.values()) else text


def waits_text(state: State, now: float | None = None, limit: int = 8) -> str:
    """The line that names which requests wait for what. Requests that wait for the same are named
    together.

    Args:
        state: as it is.
        now: in seconds since the epoch; None: the time of the last event.
        limit: how many groups are named.
    """
    now = state.now if now is None else now
    parts: list[str] = []
    taking = stuck_delivery(state)
    if taking is not None:
        parts.append(
            f"the tuner stands still {draining.standing_at(state, taking)}; "
            "it may wait for a lock that a waiting request holds"
        )
    groups: dict[tuple[str, str], list[TrialId]] = {}
    for trial_id in (*state.blocked, *state.held):
        kind, what = _what(state, trial_id)
        apart = "" if what else str(trial_id)  # they may stand in different places
        groups.setdefault((kind, what or apart), []).append(trial_id)
    # What is not ours comes first: the others wait for it in the end.
    for (kind, what), members in sorted(groups.items(), key=lambda group: group[0][0] != "foreign"):
        if len(parts) == limit:
            parts.append("…")
            break
        parts.append(_of_all(state, kind, what, members, now))
    return "; ".join(parts)


def _what(state: State, trial_id: TrialId) -> tuple[str, str]:
    """The kind of a wait, and what a request or trial waits for; the verb comes before it. Of a
    foreign wait, the place."""
    wait = state.waits.get(trial_id)
    if wait is None or wait.mode == "foreign":
        return "foreign", wait.place if wait is not None else ""
    if wait.mode == "version":
        return "request", _awaited_version(state, wait)
    kind = "trial" if wait.mode == "held" else "request"
    missing = ", ".join(f"{p} ({state.trials[p].state.value})" for p in sorted(wait.missing)[:4])
    return kind, missing


def _of_all(state: State, kind: str, what: str, members: list[TrialId], now: float) -> str:
    one = len(members) == 1
    if kind != "foreign":
        if one:
            return f"{kind} {members[0]} waits for {what}"
        return f"{len(members)} {kind}s (the first is {members[0]}) wait for {what}"
    if what == str(members[0]):
        return f"request {members[0]} stands still in a wait that is not wait_for"
    subject = f"request {members[0]} stands" if one else f"{len(members)} requests stand"
    began = min(wait.since for t in members if (wait := state.waits.get(t)) is not None)
    since = f"{'' if one else 'the first '}for {max(0.0, now - began):.0f} s"
    return f"{subject} in {what} ({since}; no wait_for)"


def _awaited_version(state: State, wait: Wait) -> str:
    newest = len(state.stores.get(wait.store, ()))
    there = f"its newest is {newest}" if newest else "it has none yet"
    if wait.version:
        return f"version {wait.version} of the shared store {wait.store!r} ({there})"
    (publisher,) = wait.parents
    status = state.trials[publisher].state.value
    return f"a version of the shared store {wait.store!r} by {publisher} ({status})"
