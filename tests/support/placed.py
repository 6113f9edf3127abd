"""Promises about places: no device is given twice, none that was not offered, and no child runs
where its parent's weights cannot be read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.resources import Offer, WorkerRules
from tests.support.reading import Reading
from tests.support.witnesses import Ordered, Witnesses

_ROUNDING = 1e-6


def _first_orders(seen: Witnesses) -> dict[tuple[int, int], Ordered]:
    """What each attempt was given; orders are repeated for agents that may not have heard."""
    found: dict[tuple[int, int], Ordered] = {}
    for ordered in seen.orders:
        if isinstance(ordered.order, a.StartAttempt):
            found.setdefault((ordered.order.trial, ordered.order.attempt), ordered)
    return found


def nothing_is_given_twice(reading: Reading, seen: Witnesses, *, over: bool) -> Iterator[str]:
    """At each moment the shares of a device are one at most, and what is counted suffices."""
    moments: list[tuple[int, bool, a.StartAttempt]] = []
    for (number, attempt_number), (_, _, order) in _first_orders(seen).items():
        assert isinstance(order, a.StartAttempt)
        trial = reading.trials.get(number)
        attempt = trial.attempts.get(attempt_number) if trial is not None else None
        if trial is None or attempt is None or attempt.started is None:
            continue
        over_at = attempt.ended[0] if attempt.ended is not None else reading.last_row + 1
        if reading.maybe_lost(number, attempt, over_at):
            continue  # it may have been given up, and what it held with it
        moments.append((attempt.started, True, order))
        moments.append((over_at, False, order))
    running: dict[tuple[int, int], a.StartAttempt] = {}
    for row, begins, order in sorted(moments, key=lambda moment: moment[:2]):
        key = (order.trial, order.attempt)
        if not begins:
            running.pop(key, None)
            continue
        running[key] = order
        yield from _judge(row, order.worker, list(running.values()), reading)


def _judge(row: int, worker: str, running: list[a.StartAttempt], reading: Reading) -> Iterator[str]:
    shares: defaultdict[str, float] = defaultdict(float)
    cpus = memory = 0.0
    for order in running:
        for device in order.devices:
            shares[device] += order.device_share or 1.0
        if order.worker == worker:
            cpus += order.cpus
            memory += order.memory_bytes
    for device, share in shares.items():
        if share > 1 + _ROUNDING:
            yield f"row {row}: {device} is given {share:g} times over (promise 5)"
    offers = [offer for at, who, offer in _offers(reading) if at <= row and who == worker]
    most = max((offer.cpus or 1e9 for offer in offers), default=1e9)
    if cpus > most + _ROUNDING:
        yield f"row {row}: {cpus:g} CPUs of {most:g} are given on {worker} (promise 5)"
    most = max((offer.memory_bytes or 1 << 60 for offer in offers), default=1 << 60)
    if memory > most:
        yield f"row {row}: {memory:g} bytes of {most:g} are given on {worker} (promise 5)"


def only_what_is_offered_is_given(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """A device was there, whole and out of trouble, when it was given to a trial."""
    for _, (since, until, order) in _first_orders(seen).items():
        assert isinstance(order, a.StartAttempt)
        if not order.devices:
            continue
        offers = [(at, offer) for at, who, offer in _offers(reading) if who == order.worker]
        before = [offer for at, offer in offers if at <= since][-1:]
        known = before + [offer for at, offer in offers if since < at <= until]
        if not any(set(order.devices) <= _free_for_all(offer) for offer in known):
            name = f"{order.trial}.{order.attempt}"
            yield f"row {until}: {name} is given {order.devices} of {order.worker}, which has not"
        if len(set(order.devices)) < len(order.devices):
            yield f"row {until}: {order.devices} names a device twice"


def _free_for_all(offer: Offer) -> set[str]:
    cut = {device.parent for device in offer.devices}
    return {d.id for d in offer.devices if not d.trouble and d.id not in cut}


def _offers(reading: Reading) -> Iterator[tuple[int, str, Offer]]:
    for row, told in reading.surroundings:
        if isinstance(told, e.WorkerJoined | e.WorkerOffers) and told.offer is not None:
            yield row, told.worker, told.offer


def children_run_where_their_parents_weights_are(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """No attempt of a child in another storage domain than the attempt that left the weights."""
    given = _first_orders(seen)
    owners = {t.save: t for t in reading.started if t.save is not None}
    for (number, attempt), (_, until, order) in given.items():
        assert isinstance(order, a.StartAttempt)
        parent = owners.get(order.restore_path or "")
        if parent is None or parent.last is None:
            continue
        source = given.get((parent.number, parent.last.number))
        if source is None:
            continue
        assert isinstance(source.order, a.StartAttempt)
        one, other = (_domain(reading, each.worker) for each in (source.order, order))
        if one != other:
            yield (
                f"row {until}: {number}.{attempt} runs in the storage domain {other!r}, and the "
                f"weights of {parent.number} are in {one!r} (promise 7)"
            )


def _domain(reading: Reading, worker: str) -> str:
    _, settings = reading.settings[-1]
    return settings.worker_rules.get(worker, WorkerRules()).domain
