"""Checks by rehearsals whether a tuner keeps the threading contract, and reports in sentences.

The tuner runs in its usual process, under conditions that are rare otherwise: threads that lose
the interpreter every few bytecodes, many requests at once, a tenth of the trials failing, results
that come late and out of order, and its process killed in the middle.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.errors import UserError
from dispatcher.tuner_host import TunerHostConfig
from dispatcher.tuner_host.stacks import together
from dispatcher.tuner_tools.rehearsal import RehearsalPlan, Rehearsed, rehearse

#: Faults of one kind that are shown; further ones are counted.
SHOWN = 3

#: Trials after which the tuner's process is killed, as a share.
KILLED_AT = 0.45


#: Trials of the runs in which one comes after the other.
SERIAL_TRIALS = 24

#: Deliveries between two looks at its state(): one is there when it is killed.
SNAPSHOT_EVERY = 4


@dataclass(frozen=True, slots=True)
class Fault:
    """A breach of the contract: its kind, a sentence, and details such as a traceback."""

    kind: str
    text: str
    details: str = ""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The faults, other remarks, and the events of the rehearsal that it shows.

    ``waits`` are those in ``wait_for``; ``other_waits`` those in the author's code: a lock, an
    Event, an import, or a processor that other processes used.
    """

    faults: tuple[Fault, ...]
    remarks: tuple[Fault, ...]
    trials: int
    failed: int
    waits: int
    abandoned: int
    comes_back_by: str
    log: str
    other_waits: int = 0


def check_tuner(tuner: TunerHostConfig, plan: RehearsalPlan) -> CheckReport:
    """Rehearse a tuner once without and once with a death of its process. Blocks.

    Args:
        tuner: its class, arguments and search space.
        plan: how many trials, and for how long at most.

    Raises:
        UserError: there is no such class, or it does not take these arguments.
        DispatcherError: the rehearsal itself failed.
    """
    tuner = msgspec.structs.replace(tuner, snapshot_every=SNAPSHOT_EVERY)
    calm = rehearse(tuner, plan)
    _must_have_begun(calm)
    faults = list(faults_of(calm))
    shown = calm
    if not faults:
        kill_at = max(1, int(plan.trials * KILLED_AT))
        killed = replace(plan, kill_tuner_at=kill_at, after_state=calm.keeps_state)
        shown = rehearse(tuner, killed)
        faults = [replace(one, text=f"after a restart, {one.text}") for one in faults_of(shown, 1)]
    remarks = list(_remarks(shown))
    waits = any(isinstance(row.event, e.WaitStarted) for row in (*calm.rows, *shown.rows))
    if not faults and shown.keeps_state and not waits:
        remarks += _goes_on_otherwise(tuner, plan)
    counts = Counter(type(row.event) for row in shown.rows)
    ends = [row.event for row in shown.rows if isinstance(row.event, e.AttemptEnded)]
    gone = [row.event for row in shown.rows if isinstance(row.event, e.RequestFailed)]
    return CheckReport(
        faults=tuple(_grouped(faults)),
        remarks=tuple(remarks),
        trials=counts[e.EndDelivered],
        failed=sum(one.exit_code != 0 for one in ends),
        waits=counts[e.WaitStarted],
        abandoned=sum(one.kind is e.RequestEnd.ABANDONED for one in gone),
        comes_back_by=_way_back(shown),
        log=shown.log,
        other_waits=counts[e.ForeignWaitSeen],
    )


def _must_have_begun(seen: Rehearsed) -> None:
    """Raise ``UserError`` for a tuner that cannot be built, unless its own code has raised."""
    events = [row.event for row in seen.rows]
    lost = [one.reason for one in events if isinstance(one, e.TunerHostLost)]
    begun = any(isinstance(one, e.TunerHostReady) for one in events)
    if lost and not begun and "Traceback" not in lost[0]:
        message, _, hint = lost[0].strip().partition("\n")
        raise UserError(message.rstrip("."), hint=" ".join(hint.split()))


def faults_of(seen: Rehearsed, deaths: int = 0) -> Iterator[Fault]:
    """Everything in a rehearsal that a tuner should not have done.

    Args:
        seen: the rehearsal.
        deaths: how often its process was killed on purpose.
    """
    results: set[int] = set()
    for row in seen.rows:
        match row.event:
            case e.TunerHostLost(reason=reason):
                deaths -= 1
                if deaths < 0:
                    yield Fault("died", f"the tuner's process ended: {_first(reason)}", reason)
            case e.RequestFailed(trial=trial, kind=e.RequestEnd.ERROR, text=text):
                call = f"generate_parameters({trial})"
                yield Fault("raised", f"{call} raised {_last(text)}", text)
            case e.RequestFailed(kind=e.RequestEnd.NONSENSE, text=text):
                yield Fault("nonsense", _first(text), text)
            case e.ResultDelivered(trial=trial, error=error):
                results.add(trial)
                if error:
                    call = f"receive_trial_result({trial})"
                    yield Fault("raised", f"{call} raised {_last(error)}", error)
            case e.EndDelivered(trial=trial, error=error) if error:
                yield Fault("raised", f"trial_end({trial}) raised {_last(error)}", error)
    for text in seen.notes:
        if not _is_of_a_repetition(text):
            yield Fault("noted", _first(text), text)
    yield from _standing_still(seen)


def _is_of_a_repetition(note: str) -> bool:
    return " before the restart" in note


def _remarks(seen: Rehearsed) -> Iterator[Fault]:
    """Remark on answers that a repetition of the calls does not give again.

    That is no fault: answers may depend on the moment, and the earlier one stands.
    """
    differing = [note for note in seen.notes if _is_of_a_repetition(note)]
    if differing and not seen.keeps_state:
        yield Fault(
            "comes back",
            f"it does not come back as it was: {len(differing)} answers or more were others when "
            "its calls were repeated after the death of its process. Draw random numbers from "
            "self.rng(parameter_id), or write state() and restore().",
            differing[0],
        )


def _goes_on_otherwise(tuner: TunerHostConfig, plan: RehearsalPlan) -> Iterator[Fault]:
    """Remark on a tuner that goes on from its own state otherwise than one that never stopped.

    One trial and one call at a time, so that both get the same calls in one order; a tuner that
    waits cannot be compared so. That is no fault: its proposals stand.
    """
    tuner = msgspec.structs.replace(tuner, multi_thread=False)
    alone = replace(plan, trials=SERIAL_TRIALS, slots=1, lookahead=1, late=0.0, provoke=False)
    killed = replace(alone, kill_tuner_at=SERIAL_TRIALS // 2, after_state=True)
    whole, stopped = _proposals(rehearse(tuner, alone)), _proposals(rehearse(tuner, killed))
    others = [trial for trial in whole if trial in stopped and stopped[trial] != whole[trial]]
    if others and _proposals(rehearse(tuner, alone)) == whole:
        yield Fault(
            "comes back",
            f"what it takes back by restore() is not all that it was: from trial {others[0]} on it "
            "proposes what it does not propose without a restart. Let state() return whatever "
            "generate_parameters looks at, count proposals since then in restore_proposal(), and "
            "draw from self.rng(parameter_id).",
            f"trial {others[0]} without a restart: {whole[others[0]]}\n"
            f"trial {others[0]} after one: {stopped[others[0]]}",
        )


def _proposals(seen: Rehearsed) -> dict[int, str]:
    events = [row.event for row in seen.rows]
    return {one.trial: one.parameters for one in events if isinstance(one, e.Proposed)}


def _standing_still(seen: Rehearsed) -> Iterator[Fault]:
    details = together(seen.stacks)
    if seen.stuck:
        yield Fault("never returns", f"it did not come to an end in time: {seen.stuck}", details)
    elif seen.stalls:
        yield Fault("stands still", f"nothing could move any more: {seen.stalls[-1]}", details)
    elif seen.state.phase is Phase.FAILED:
        yield Fault("failed", f"the experiment failed: {_first(seen.state.phase_reason)}")


def _grouped(faults: list[Fault]) -> Iterator[Fault]:
    """The first few of each kind, with the number of further ones."""
    kinds = Counter(one.kind for one in faults)
    seen: Counter[str] = Counter()
    causes = [one for one in faults if one.kind != "failed"]
    for one in causes or faults:
        seen[one.kind] += 1
        if seen[one.kind] < SHOWN or kinds[one.kind] <= SHOWN:
            yield one
        elif seen[one.kind] == SHOWN:
            more = kinds[one.kind] - SHOWN
            yield replace(one, text=f"{one.text} (and {more} more of this kind)")


def _way_back(seen: Rehearsed) -> str:
    launched = sum(isinstance(row.event, e.TunerHostReady) for row in seen.rows)
    if launched < 2:
        return ""
    return "its own state()" if seen.keeps_state else "a repetition of its calls"


def _first(text: str) -> str:
    return text.strip().partition("\n")[0]


def _last(text: str) -> str:
    return text.strip().rpartition("\n")[2]
