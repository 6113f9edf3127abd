"""How many allocations a service holds, and which: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dispatcher.platforms.allocations.allocation import Bounds


class Seat(NamedTuple):
    """A worker, as far as it matters for how many allocations there are.

    Attributes:
        worker: its name.
        slots: trials that it runs at once.
        wanted: whether its head wants an agent there.
        held: whether it has an allocation, or the last one has not ended yet.
        coming: whether that one has no agent yet.
        idle_since: since when nothing runs there and nothing is queued; None: not so.
        not_before: when the next one may be asked for.
    """

    worker: str
    slots: int
    wanted: bool
    held: bool
    coming: bool = False
    idle_since: float | None = None
    not_before: float = float("-inf")


class Adjustment(NamedTuple):
    """The workers for which an allocation is asked for, and those whose own is given back."""

    submit: tuple[str, ...] = ()
    release: tuple[str, ...] = ()


def decide(bounds: Bounds, seats: Sequence[Seat], demand: int, now: float) -> Adjustment:
    """Choose whom to submit and whom to release.

    At least ``bounds.least`` hold an allocation; more only while more trials are queued than those
    that are coming will take. One beyond the least goes when it has been idle for long enough, the
    last in the file first.

    Args:
        bounds: of the service.
        seats: of its workers, in the order of the file.
        demand: how many trials are queued.
        now: on the clock of the seats.
    """
    held = [seat for seat in seats if seat.held]
    many, open_demand = len(held), demand - sum(seat.slots for seat in held if seat.coming)
    submit: list[str] = []
    for seat in seats:
        if seat.held or not seat.wanted or now < seat.not_before:
            continue
        if many >= bounds.most or (many >= bounds.least and open_demand <= 0):
            break
        submit.append(seat.worker)
        many += 1
        open_demand -= seat.slots
    release: list[str] = []
    for seat in reversed(held):
        if demand == 0 and many > bounds.least and _idle_for(seat, now) >= bounds.idle_s:
            release.append(seat.worker)
            many -= 1
    return Adjustment(tuple(submit), tuple(release))


def _idle_for(seat: Seat, now: float) -> float:
    return float("-inf") if seat.idle_since is None else now - seat.idle_since
