"""The shortage that keeps trials with needs from the workers that are there: for ``why``."""

from enum import Enum, auto
from typing import NamedTuple

from dispatcher.core.model import State, Trial, Worker
from dispatcher.core.needs_text import joined, needs_text
from dispatcher.core.place_ends import lasts
from dispatcher.core.placement import avoids, may_go
from dispatcher.core.queue_classes import heads, home_of, needs_of
from dispatcher.core.reservations import Reservations
from dispatcher.core.resource_match import Kept, domain_of, fit, has_room, rules_of, suited
from dispatcher.core.resources import Needs, Offer

#: Workers that a sentence names.
_NAMED = 4


class Short(Enum):
    """The kinds of shortage."""

    KEPT = auto()  # what is free waits for a larger trial
    HOME = auto()  # where the parent's weights are
    DEVICES = auto()
    ROOM = auto()  # CPUs, memory, things by name
    SLOTS = auto()


class Shortage(NamedTuple):
    """The shortage that keeps the first trial in line, in a sentence."""

    of: Short
    text: str


def shortage(state: State) -> Shortage | None:
    """Why the queued trials are not placed; None if it is not their needs that keep them.

    Only workers that could take a trial are asked; the troubles of the others are another sentence.
    """
    workers = [w for w in state.workers.values() if w.usable and w.health.trusted]
    kept = Reservations(state)
    waiting = list(heads(state))
    for trial in waiting:
        if needs_of(state, trial).counted:
            kept.keep_for(trial, may_go)
    for trial in waiting:
        held_back = [w for w in workers if _only_kept_from(state, trial, w, kept)]
        if held_back:
            return Shortage(Short.KEPT, _kept_text(state, held_back[0], kept))
    first = waiting[0]
    needs, home = needs_of(state, first), home_of(state, first)
    there = [w for w in workers if not avoids(state, first, w)]
    reached = [w for w in there if home is None or domain_of(state, w) == home]
    lasting = [w for w in there if lasts(state, w)]
    if home is not None and any(fit(needs, w, rules_of(state, w)) is not None for w in lasting):
        return Shortage(Short.HOME, _home_text(state, first, home, reached))
    if not needs.counted or not reached:
        return None
    lacks = [(worker, _lack(state, needs, worker)) for worker in reached]
    of = next((kind for kind in Short if any(lack[0] is kind for _, lack in lacks)), Short.SLOTS)
    text = "; ".join(f"{worker.id}: {lack[1]}" for worker, lack in lacks[:_NAMED])
    more = f"; and {len(lacks) - _NAMED} more" if len(lacks) > _NAMED else ""
    return Shortage(of, f"trial {first.id} needs {needs_text(needs)} ({text}{more})")


def _only_kept_from(state: State, trial: Trial, worker: Worker, kept: Reservations) -> bool:
    """Whether the trial would run there, were nothing kept for another one."""
    for_others = kept.on(worker)
    if for_others is None or trial in for_others.trials or not lasts(state, worker):
        return False
    if not may_go(state, trial, worker):
        return False
    needs, rules = needs_of(state, trial), rules_of(state, worker)
    return fit(needs, worker, rules) is not None and fit(needs, worker, rules, for_others) is None


def _kept_text(state: State, worker: Worker, kept: Reservations) -> str:
    reserved: Kept | None = kept.on(worker)
    assert reserved is not None
    trials = joined(
        [f"trial {t.id}, which needs {needs_text(needs_of(state, t))}" for t in reserved.trials]
    )
    return f"what is free on {worker.id} is kept for {trials}"


def _home_text(state: State, trial: Trial, home: str, reached: list[Worker]) -> str:
    place = f"the storage domain {home!r}" if home else "the storage domain without a name"
    text = (
        f"the weights of trial {trial.parent}, from which trial {trial.id} starts, are in {place}"
    )
    if not reached:
        return f"{text}, of which no worker is there"
    if all(len(worker.running) >= worker.slots for worker in reached):
        return f"{text}, all of whose slots are taken"
    return f"{text}, which has no place for {needs_text(needs_of(state, trial))}"


def _lack(state: State, needs: Needs, worker: Worker) -> tuple[Short, str]:
    rules = rules_of(state, worker)
    if len(worker.running) >= worker.slots:
        return Short.SLOTS, "all slots taken"
    if not lasts(state, worker):
        return Short.SLOTS, "nothing may begin in its place any more"
    if worker.offer is None and (needs.gpus or needs.custom):
        return Short.DEVICES if needs.gpus else Short.ROOM, "has not reported its resources"
    offer, used = worker.offer or Offer(), worker.used
    if needs.gpus:
        fitting = suited(needs, offer)
        free = [d for d in fitting if not d.trouble and has_room(needs, d.id, used, rules)]
        if len(free) < needs.devices:
            troubled = [f"{d.index}: {d.trouble}" for d in fitting if d.trouble][:_NAMED]
            beside = f", {', '.join(troubled)}" if troubled else ""
            return Short.DEVICES, f"{len(free)} of {len(fitting)} GPUs free{beside}"
    if needs.cpus and offer.cpus is not None and used.cpus + needs.cpus > offer.cpus:
        return Short.ROOM, f"{offer.cpus - used.cpus:g} of {offer.cpus:g} CPUs free"
    if needs.memory_bytes and offer.memory_bytes is not None:
        left = offer.memory_bytes - used.memory_bytes
        if left < needs.memory_bytes:
            return Short.ROOM, f"{left / (1 << 30):.4g} GB of memory free"
    has = dict(offer.custom)
    for name, amount in needs.custom:
        total, taken = has.get(name, 0.0), used.custom.get(name, 0.0)
        if taken + amount > total:
            return Short.ROOM, f"{total - taken:g} of {total:g} {name} free"
    return Short.SLOTS, "free"
