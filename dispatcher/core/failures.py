"""Trials that fail one after another: counted, their common cause named, the experiment ended.

An experiment in which everything fails (a missing package, a wrong path) would otherwise
use up ``maxTrialNumber`` and be called completed.
"""

from dispatcher.core.endings import Ending
from dispatcher.core.events import AttemptEnded
from dispatcher.core.model import EndReason, FailureCause, Outcome, Phase, State, Trial
from dispatcher.core.settings import CAUSE_CHARS, CAUSES_KEPT

#: Under which causes beyond ``CAUSES_KEPT`` are counted.
_OTHER = "other causes"

#: How Python begins a traceback.
_TRACEBACK = "Traceback (most recent call last)"


def take_note(
    state: State, trial: Trial, ending: Ending, reason: EndReason, event: AttemptEnded | None
) -> None:
    """Count the end of a trial that will not be tried again, as a failure or as one that went well.

    A trial that brought a result went well, whatever became of its process. A trial that a user
    killed or an assessor stopped says nothing about the next one, either way.

    Args:
        state: changed in place; too many failures in a row begin a drain.
        trial: the one that is over.
        ending: how it ended.
        reason: how its last attempt ended.
        event: the attempt's end as its agent reported it; None if no agent did.
    """
    failures = state.failures
    if ending.success or ending.value is not None:
        failures.went_well += 1
        failures.in_a_row = 0
        failures.causes.clear()
    elif ending.outcome is Outcome.STOPPED_EARLY:
        failures.went_well += 1  # it was at work
    elif ending.outcome is not Outcome.KILLED and trial.kill_reason is None:
        if not failures.in_a_row:
            failures.causes.clear()
        failures.in_all += 1
        failures.in_a_row += 1
        known = (ending.refusal, ending.refusal) if ending.refusal else cause_of(reason, event)
        _count(failures.causes, trial, *known)
        _trip(state)


def _trip(state: State) -> None:
    limit = state.settings.max_failed_in_a_row
    if not limit or state.failures.in_a_row < limit or state.phase is not Phase.RUNNING:
        return
    state.failures.tripped = True
    state.phase = Phase.DRAINING  # what runs may finish: it may tell more
    state.over_phase = Phase.FAILED
    state.phase_reason = f"{state.failures.in_a_row} trials failed in a row{common_cause(state)}"


def all_failed(state: State) -> str:
    """The sentence for an experiment that is over and has nothing to show; else empty."""
    failures = state.failures
    if failures.went_well or not failures.in_all:
        return ""
    which = "the only trial" if failures.in_all == 1 else f"all {failures.in_all} trials"
    return f"{which} failed{common_cause(state)}"


def common_cause(state: State) -> str:
    """The most frequent cause of failure in the row, to be put behind a count; empty for no row."""
    causes = state.failures.causes
    if not causes:
        return ""
    most = max(causes.values(), key=lambda cause: cause.count)  # of equals the first
    total = sum(cause.count for cause in causes.values())
    share = f", {most.count} of {total}" if most.count < total else ""
    return f"{share} with: {most.text} (trial {most.trial})"


def cause_of(reason: EndReason, event: AttemptEnded | None) -> tuple[str, str]:
    """The kind of an attempt's end, and the end in one line: the reason, the code, and the line of
    its errors that tells most. In the kind, words with digits are masked: numbers, addresses and
    paths differ among ends of one kind."""
    end = "ended without a result" if reason is EndReason.FINISHED else reason.value
    if event is None:
        return end, end
    if reason is EndReason.SIGNALLED:
        end += f" (signal {event.signal})"
    elif reason is EndReason.FAILED and event.exit_code:
        end += f" (exit code {event.exit_code})"
    line = telling_line(event.text)
    if not line or reason is EndReason.TIMED_OUT:  # what it printed last is no reason for that
        return end, end
    bare = ["#" if any(map(str.isdigit, word)) else word for word in line.split()]
    return f"{end}: {' '.join(bare)}", f"{end}: {line}"


def telling_line(text: str) -> str:
    """The exception of the last traceback, or else the last line that is not indented; bounded, and
    without control characters."""
    lines = text.splitlines()
    at = max((n for n, line in enumerate(lines) if line.startswith(_TRACEBACK)), default=None)
    if at is not None:
        # Frames are indented; a message of several lines, hints and notes come after the first.
        below = [line for line in lines[at + 1 :] if line[:1].strip()]
        lines = below[:1] or lines
    else:
        # What is indented belongs to what stands above it: hints, lines of code below a warning.
        lines = [line for line in lines if line[:1].strip()] or lines
    for line in reversed(lines):
        plain = "".join(c if c.isprintable() else " " for c in line).strip()
        if plain:
            cut = len(plain) > CAUSE_CHARS
            return plain[: CAUSE_CHARS - 1] + "…" if cut else plain
    return ""


def _count(causes: dict[str, FailureCause], trial: Trial, kind: str, text: str) -> None:
    if kind not in causes and len(causes) >= CAUSES_KEPT:
        kind = text = _OTHER
    before = causes.get(kind)
    causes[kind] = FailureCause(before.count + 1 if before else 1, text, trial.id)
