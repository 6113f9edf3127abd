"""Promises about what is shared: versions of stores, imports, and what judges of trials hear."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.core import actions as a
from tests.support.reading import Reading
from tests.support.witnesses import Witnesses


def versions_form_one_line(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Of a store each number is one offer's for ever, made from the version before it; who reads
    a version is given that one, and one that may go is given to nobody."""
    made_from = {offer.digest: offer.base for _, offer in reading.offers}
    versions: dict[tuple[str, int], str] = {}
    gone: set[tuple[str, int]] = set()
    for _, until, order in seen.orders:
        match order:
            case a.AnswerOffer(accepted=True, newest=newest, digest=digest):
                assert newest is not None
                key = (newest.store, newest.number)
                known = versions.setdefault(key, digest)
                if known != digest or newest.digest != digest:
                    yield f"row {until}: version {key} is {digest} and {known} (promise 7)"
                if made_from.get(digest) != newest.number - 1:
                    yield f"row {until}: version {key} was made from another than the one before"
            case a.GrantVersions(removed=removed):
                gone.update((store, number) for store, number, _ in removed)
            case a.StartAttempt(versions=pins):
                name = f"{order.trial}.{order.attempt}"
                for pin in pins:
                    key = (pin.store, pin.number)
                    if key in gone:
                        yield f"row {until}: {name} is to read {key}, which may go (promise 7)"
                    if versions.get(key, pin.digest) != pin.digest:
                        yield f"row {until}: {name} is told that {key} is {pin.digest} (promise 7)"
            case _:
                pass


def imports_are_taken_once(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """Promise 2, of results of other experiments: in the order in which they came, each once."""
    taken = [number for what, number, _ in seen.calls or () if what == "import"]
    if len(taken) != len(set(taken)):
        yield f"the tuner's state has imports twice: {taken} (promise 2)"
    if taken != sorted(taken):
        yield f"the tuner was given imports in the order {taken}"
    if seen.calls is not None:
        for number in sorted(reading.imports_delivered - set(taken)):
            yield f"the tuner's state lacks import {number} (promise 2)"


def nothing_is_heard_of_the_ended(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """An advisor that was told of a trial's end is shown nothing of it any more."""
    ended: set[int] = set()
    for what, number, _ in seen.calls or ():
        if what == "end":
            ended.add(number)
        elif what == "intermediate" and number in ended:
            yield f"the tuner was shown a metric of {number} after its end"


def early_stops_keep_what_was_reported_last(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 2: with ``early_stop_keeps_result`` a trial that was stopped early, and reported no
    final result, is told with its last intermediate one, however its process came to its end."""
    keeps = reading.any_setting("early_stop_keeps_result")
    if seen.counted is None or keeps != {True}:
        return
    told = {number: value for what, number, value in seen.calls or () if what == "result"}
    for trial in reading.started:
        last = trial.last
        assert last is not None
        early = bool(trial.stops) and trial.stops[0][1].value == "stopped early"
        if reading.silent_since(last, trial.number):
            continue
        if not early or last.final is not None or not trial.ends or last.ended is None:
            continue
        if last.ended[1].value not in ("stopped early", "lost", "stopped with the experiment"):
            continue  # it ended by itself first
        if trial.stops[0][0] > last.ended[0] or reading.maybe_lost(
            trial.number, last, last.ended[0]
        ):
            continue
        value = seen.counted.get((trial.number, last.number))
        if bool(trial.results) != (value is not None):
            yield f"{trial.number} was stopped early at {value}; result told: {trial.results}"
        if seen.calls is not None and told.get(trial.number) != value:
            yield f"the tuner was told {told.get(trial.number)!r} for {trial.number}, not {value!r}"
