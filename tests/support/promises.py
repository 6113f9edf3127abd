"""The promises of the design, each as a function from a journal to what contradicts it.

Promises 6 (processes) and 8 (bounds) leave no trace in a journal; 10 (why) is asked of living
states. All others are here, in words of their own.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterator

from dispatcher.core import actions as a
from dispatcher.core.model import EndReason
from tests.support.inherited import children_load_what_was_committed
from tests.support.placed import (
    children_run_where_their_parents_weights_are,
    nothing_is_given_twice,
    only_what_is_offered_is_given,
)
from tests.support.reading import Attempt, Reading, TrialStory
from tests.support.shared import (
    early_stops_keep_what_was_reported_last,
    imports_are_taken_once,
    nothing_is_heard_of_the_ended,
    versions_form_one_line,
)
from tests.support.surroundings import nothing_starts_on_a_full_disk
from tests.support.witnesses import Promise, Witnesses

#: Ends of attempts after which no trial is a success.
BAD_ENDS = frozenset(EndReason) - {EndReason.FINISHED, EndReason.STOPPED_EARLY, EndReason.SHUTDOWN}


# -- 1: a child starts after its parent ----------------------------------------------------


def children_start_after_their_parents(
    reading: Reading, _seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 1: result, end and weights of the parent come first, and it may bequeath."""
    for trial in reading.started:
        parent = _parent_of(reading, trial)
        if parent is None:
            if _names_a_parent(trial) and not reading.submitted:
                yield f"trial {trial.number} inherits from {trial.restore!r}, nobody's"
            continue
        for attempt in trial.attempts.values():
            yield from _inherits(reading, trial, attempt, parent)


def _names_a_parent(trial: TrialStory) -> bool:
    return trial.restore is not None and not trial.restore.startswith(("/", ".stores/"))


def _parent_of(reading: Reading, trial: TrialStory) -> TrialStory | None:
    if not _names_a_parent(trial):
        return None
    assert trial.restore is not None
    for other in reading.trials.values():
        if other.save is None or other is trial or not other.attempts:
            continue
        if trial.restore == other.save or trial.restore.startswith(other.save + "/"):
            return other
    return None


def _inherits(
    reading: Reading, trial: TrialStory, attempt: Attempt, parent: TrialStory
) -> Iterator[str]:
    row = attempt.first
    about = f"row {row}: {trial.number}.{attempt.number} began before its parent {parent.number}"
    if not any(end < row for end in parent.ends):
        yield f"{about} was delivered (promise 1)"
        return
    last = parent.last
    if last is None or last.weights is None:
        yield f"{about} had weights (promise 1)"
        return
    delivered = min(parent.ends)
    late = last.ended is not None and last.ended[0] > delivered
    if last.ended is None or (late and reading.maybe_lost(parent.number, last, delivered)):
        return  # lost: it bequeaths what it published itself, checked above
    reason = parent.reason_of(last) or last.ended[1]
    own = bool(last.published)
    clean = reason is EndReason.FINISHED
    early = reason is EndReason.STOPPED_EARLY
    if not (clean or (own and (early or last.final is not None))):
        yield f"{about}, which ended as {reason.value!r}, could bequeath (promise 1)"


def waits_end_after_their_parents(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 1, as the tuner sees it: ``wait_for`` returns when trial_end has."""
    ended: set[int] = set()
    for what, number, value in seen.calls or ():
        if what == "end":
            ended.add(number)
        elif what == "granted":
            mode, *parents = value
            there = [p in ended for p in parents]
            if not (any(there) if mode == "any" else all(there)):
                yield f"the wait of {number} for {parents} was over too early (promise 1)"


# -- 2: each result counts once ------------------------------------------------------------


def _lacks_a_number(reading: Reading, value: str) -> bool:
    """Whether a result is none, since the experiment asked for a number that it has not."""
    asked = {name for names in reading.any_setting("objectives") for name in names}  # type: ignore[attr-defined]
    if not asked:
        return False
    result = json.loads(value)
    held = result if isinstance(result, dict) else {"default": result}
    return any(type(held.get(name)) not in (int, float) for name in asked)


def results_are_delivered_once(reading: Reading, _seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 2, in the journal: result, then end, each once; nothing withheld."""
    invented = bool(reading.any_setting("substitute_result") - {None})
    invented = invented or True in reading.any_setting("early_stop_keeps_result")
    for trial in reading.trials.values():
        name, last = trial.number, trial.last
        for row in trial.results[1:]:
            yield f"row {row}: result of {name} delivered twice (promise 2)"
        for row in trial.ends[1:]:
            yield f"row {row}: end of {name} delivered twice (promise 2)"
        if trial.results and trial.ends and trial.results[0] > trial.ends[0]:
            yield f"row {trial.results[0]}: result of {name} delivered after its end (promise 2)"
        final = last.final if last is not None else None
        if trial.results and final is not None and _lacks_a_number(reading, final[1]):
            yield f"row {trial.results[0]}: result of {name} lacks an objective (promise 2)"
        if trial.results and not invented and (last is None or last.final is None):
            yield f"row {trial.results[0]}: {name} has no result to deliver (promise 2)"
        if trial.ends and not trial.results and last is not None and final is not None:
            lost = reading.maybe_lost(name, last, final[0])
            if not lost and not _lacks_a_number(reading, final[1]):
                yield f"row {trial.ends[0]}: end of {name} without its result (promise 2)"
        if over and trial.attempts and not trial.ends:
            yield f"trial {name} was never delivered (promise 2)"


def the_tuners_state_has_each_result_once(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 2, in the tuner's own state, restored ones included."""
    if seen.calls is None:
        return
    told: dict[tuple[str, int], int] = {}
    for place, (what, number, value) in enumerate(seen.calls):
        if what not in ("result", "end"):
            continue
        if (what, number) in told:
            yield f"the tuner was told the {what} of {number} twice (promise 2)"
        if what == "result" and ("end", number) in told:
            yield f"the tuner was told the end of {number} before its result (promise 2)"
        told[what, number] = place
        trial = reading.trials.get(number)
        last = trial.last if trial is not None else None
        if what == "result" and last is not None and last.final is not None:
            late = reading.maybe_lost(number, last, last.final[0])
            if value != last.final[1] and not late:
                yield f"the tuner was told {value!r} for {number}, not {last.final[1]!r}"
    for trial in reading.trials.values():
        if trial.results and ("result", trial.number) not in told:
            yield f"the tuner's state lacks the result of {trial.number} (promise 2)"
        if trial.ends and ("end", trial.number) not in told:
            yield f"the tuner's state lacks the end of {trial.number} (promise 2)"


def results_come_in_the_order_of_the_ends(
    reading: Reading, _seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Results are told serially, in the order in which the trials ended."""
    told = []
    for trial in reading.started:
        last = trial.last
        if last is None or last.ended is None or not trial.results:
            continue
        if reading.maybe_lost(trial.number, last, last.ended[0]):
            continue  # its end may have been the loss, not its late word
        told.append((last.ended[0], trial.results[0], trial.number))
    told.sort()
    for (_, one, first), (_, other, second) in itertools.pairwise(told):
        if one > other:
            yield f"trial {first} ended before {second}, and was delivered after it"


# -- 3: one attempt is believed ------------------------------------------------------------


def one_attempt_at_a_time(reading: Reading, _seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 3: an attempt follows one that is over, and none follows a result or an end."""
    for trial in reading.started:
        for attempt in trial.attempts.values():
            name = f"{trial.number}.{attempt.number}"
            late = trial.ends and trial.ends[0] < attempt.first and attempt is trial.last
            if late and not reading.maybe_lost(trial.number, attempt, attempt.first):
                yield f"row {attempt.first}: {name} speaks first after its trial was over"
            before = trial.attempts.get(attempt.number - 1)
            if before is None:
                continue
            lost = reading.maybe_lost(trial.number, before, attempt.first)
            if not before.ended_before(attempt.first) and not lost:
                yield f"row {attempt.first}: {name} began while the one before ran (promise 3)"
            final = before.final
            if final is None or final[0] > attempt.first:
                continue
            if not reading.maybe_lost(trial.number, before, final[0]):
                yield f"row {attempt.first}: {name} repeats one that reported its result"


def epochs_grow(reading: Reading, _seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 3, of heads: the journal follows one head at a time."""
    for (_, one), (row, other) in itertools.pairwise(reading.epochs):
        if other <= one:
            yield f"row {row}: head {other} leads after head {one} (promise 3)"


# -- 4: what was acknowledged is there -----------------------------------------------------


def acknowledged_words_are_there(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 4: what an agent may forget, the journal remembers."""
    for word in seen.words:
        kind = type(word).__name__
        trial = reading.trials.get(word.trial)
        attempt = trial.attempts.get(word.attempt) if trial is not None else None
        if kind == "MetricReported":
            there = seen.metrics is None or (word.trial, word.attempt, word.seq) in seen.metrics
        elif attempt is None:
            there = False
        elif kind == "FinalReported":
            there = any(value == word.value for _, value in attempt.finals)
        elif kind == "WeightsPublished":
            there = attempt.ended is not None or any(s == word.seq for _, s, _ in attempt.published)
        elif kind == "AttemptEnded":
            there = attempt.ended is not None
        else:
            there = True  # a start that a power cut takes is asked for again
        if not there and kind != "AttemptStarted":
            yield f"acknowledged, and not in the journal: {word} (promise 4)"


def granted_wishes_are_there(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 4: what a user was answered has happened."""
    stops = Counter(r.arguments["trial"] for r in seen.wishes if r.verb == "stop_trial")
    for number, count in stops.items():
        if len(reading.trial(number).kills) < count:
            yield f"the stop of trial {number} was acknowledged and is gone (promise 4)"
    paths = {save for _, save in reading.submitted}
    for wish in seen.wishes:
        if wish.verb == "submit" and wish.arguments["parameters"].get("as") not in paths:
            yield f"the submission {wish.arguments} was acknowledged and is gone (promise 4)"


# -- 5: slots ------------------------------------------------------------------------------


def attempts_fit_the_slots(reading: Reading, _seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 5: never more attempts than slots, and trials than the file allows."""
    slots = max((s.slots for _, s in reading.settings), default=0)
    running: dict[int, int] = {}
    moments: list[tuple[int, int, int, bool]] = []
    for trial in reading.started:
        for attempt in trial.attempts.values():
            if attempt.started is None:
                continue
            over_at = attempt.ended[0] if attempt.ended is not None else reading.last_row + 1
            if reading.maybe_lost(trial.number, attempt, over_at):
                continue  # it may have been given up, and its slot with it
            moments.append((attempt.started, trial.number, attempt.number, True))
            moments.append((over_at, trial.number, attempt.number, False))
    for row, number, attempt_number, begins in sorted(moments):
        if begins:
            running[number] = attempt_number
            if len(running) > slots:
                yield f"row {row}: {len(running)} attempts on {slots} slots (promise 5)"
        elif running.get(number) == attempt_number:
            del running[number]
    limits = reading.any_setting("max_trials")
    if limits and None not in limits:
        from_tuner = [t for t in reading.started if t.proposed is not None]
        limit = max(n for n in limits if isinstance(n, int))
        if len(from_tuner) > limit:
            yield f"{len(from_tuner)} trials of at most {limit} ran"


# -- 7: the right weights ------------------------------------------------------------------


def children_are_given_the_right_weights(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 7, as far as a journal goes: the digest that a child is told to find is that of
    its parent's believed attempt, and weights that may be deleted are given to nobody."""
    owners: dict[str, TrialStory] = {}
    for trial in reading.started:
        if trial.save is not None and trial.save in owners:
            other = owners[trial.save].number
            yield f"{trial.number} and {other} both save to {trial.save!r} (promise 7)"
        elif trial.save is not None:
            owners[trial.save] = trial
    removed: set[int] = set()
    for _, _, order in seen.orders:
        if isinstance(order, a.GrantRemoval):
            removed.update(order.trials)
        if not isinstance(order, a.StartAttempt):
            continue
        parent = owners.get(order.restore_path or "")
        if parent is None:
            continue
        name = f"{order.trial}.{order.attempt}"
        last = parent.last
        told = last.weights.digest if last is not None and last.weights is not None else None
        if last is not None and reading.maybe_lost(parent.number, last, reading.last_row + 1):
            # What it published after it was given up does not count, and came in all the same.
            published = {each.digest for _, _, each in last.published}
            told = order.restore_digest if order.restore_digest in published else told
        if order.restore_digest != told:
            yield f"{name} is told to find {order.restore_digest}, and {told} is right (promise 7)"
        if parent.number in removed:
            yield f"{name} is to start from {parent.number}, whose weights may go (promise 7)"


# -- 9: who misbehaves harms itself only ---------------------------------------------------


def good_trials_are_told_as_good(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 9: whatever else failed, a trial that finished with its result is a success, and
    one that failed is none."""
    for what, number, success in seen.calls or ():
        trial = reading.trials.get(number)
        last = trial.last if trial is not None else None
        if what != "end" or trial is None or last is None or last.ended is None:
            continue
        row, reason = last.ended[0], trial.reason_of(last) or last.ended[1]
        if reading.maybe_lost(number, last, row) or reading.silent_since(last, number):
            continue
        if reason is EndReason.FINISHED and last.final is not None and not success:
            yield f"the tuner was told that {number} failed, and it did not (promise 9)"
        if reason in BAD_ENDS and success:
            yield f"the tuner was told that {number} succeeded; it {reason.value} (promise 9)"


def nobody_is_tried_again_without_need(
    reading: Reading, _seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 9: attempts follow failures of their own trial, never those of heads or tuners."""
    for trial in reading.started:
        for number in range(1, max(trial.attempts)):
            attempt, after = trial.attempts.get(number), trial.attempts.get(number + 1)
            if attempt is None or after is None:
                continue
            row = after.first
            if attempt.ended is None or attempt.ended[0] > row:
                continue
            at, reason = attempt.ended
            needless = reason in (EndReason.FINISHED, EndReason.KILLED)
            if needless and not reading.maybe_lost(trial.number, attempt, at):
                yield f"row {row}: {trial.number} {reason.value}, tried again (promise 9)"


def the_killed_stay_dead(reading: Reading, _seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 9: no attempt is begun of a trial that a user ended."""
    for trial in reading.started:
        for number, attempt in trial.attempts.items():
            if any(row < reading.begun_after(trial, number) for row in trial.kills):
                name = f"{trial.number}.{number}"
                yield f"row {attempt.first}: {name} is a trial that was killed (promise 9)"


ALL: tuple[Promise, ...] = (
    children_start_after_their_parents,
    waits_end_after_their_parents,
    results_are_delivered_once,
    the_tuners_state_has_each_result_once,
    results_come_in_the_order_of_the_ends,
    one_attempt_at_a_time,
    epochs_grow,
    acknowledged_words_are_there,
    granted_wishes_are_there,
    attempts_fit_the_slots,
    nothing_is_given_twice,
    only_what_is_offered_is_given,
    children_run_where_their_parents_weights_are,
    children_are_given_the_right_weights,
    children_load_what_was_committed,
    nothing_starts_on_a_full_disk,
    good_trials_are_told_as_good,
    nobody_is_tried_again_without_need,
    the_killed_stay_dead,
    versions_form_one_line,
    imports_are_taken_once,
    nothing_is_heard_of_the_ended,
    early_stops_keep_what_was_reported_last,
)
