"""Measurements between machines: when one sees what another made, races, locks, big files.

Everybody lays its cases, everybody looks at everybody's (so that caches hold what was before),
everybody publishes, everybody looks until it sees. Locks come last, since they can hang.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from nfs_setup.verify.asked import Asked
from nfs_setup.verify.facts import (
    BigFile,
    Churned,
    Failure,
    Held,
    Laid,
    Published,
    Seen,
    Surroundings,
)
from nfs_setup.verify.plan import Plan
from nfs_setup.verify.surveyed import Locked, Reread, Survey

_BIG_S = 60.0

#: Of the room that is free, the part that a big file may take.
_PART = 4

Say = Callable[[str], None]


def survey_pairs(
    machines: Sequence[Asked],
    result: Survey,
    plan: Plan,
    say: Say,
    pool: ThreadPoolExecutor,
) -> None:
    """Measure between machines; a single one only writes and reads a big file.

    Args:
        machines: those that can write to the share.
        result: gets the facts.
        plan: how much.
        say: gets a line about what is done right now.
        pool: threads for all machines at once.
    """
    result.rereads.extend(_big(machines, plan.big_bytes, say))
    if len(machines) < 2:
        return
    say(f"what one makes, another sees (up to {plan.watch_s:.0f} s)")
    laid = _views(machines, plan.watch_s, pool)
    say("files that are replaced while they are read")
    _churn(laid, plan.churn_s, pool)
    say("locks")
    here = [machine for machine in machines if not machine.lost]
    for holder, others in zip(here[:2], (here[1:], here[:1])):
        if others:
            result.locks.extend(_lock(holder, others, plan.hold_s, pool))


def _big(machines: Sequence[Asked], nbytes: int, say: Say) -> list[Reread]:
    """One after another, so that each has the share for itself; the next one reads it."""
    rereads = []
    for number, writer in enumerate(machines):
        if writer.facts.again:
            continue
        reader = machines[(number + 1) % len(machines)]
        say(f"a big file, {writer.name}")
        size = min(nbytes, _room(writer) // _PART)
        written = writer.ask(
            BigFile,
            "write big",
            _BIG_S,
            path=writer.inside(writer.own, "big"),
            nbytes=size,
            limit_s=_BIG_S,
        )
        writer.facts.written = written
        if isinstance(written, BigFile):
            read = reader.ask(
                BigFile,
                "read big",
                _BIG_S,
                path=reader.inside(writer.own, "big"),
                limit_s=_BIG_S,
            )
            rereads.append(Reread(writer.name, reader.name, read))
    return rereads


def _room(machine: Asked) -> int:
    around = machine.facts.surroundings
    return around.free_bytes if isinstance(around, Surroundings) else 0


def _views(machines: Sequence[Asked], watch_s: float, pool: ThreadPoolExecutor) -> list[Asked]:
    """Returns those that laid their cases."""

    def lay(machine: Asked) -> bool:
        done = machine.ask(Laid, "lay", folder=machine.inside(machine.own))
        machine.facts.published = done if isinstance(done, Failure) else None
        return isinstance(done, Laid)

    def prime(machine: Asked) -> None:
        folders = [machine.inside(w.own) for w in laid if w is not machine]
        done = machine.ask(Laid, "prime", watch_s, folders=folders, limit_s=watch_s)
        if isinstance(done, Failure):
            machine.facts.seen = done

    def publish(machine: Asked) -> None:
        mine = machine.inside(machine.own)
        machine.facts.published = machine.ask(Published, "publish", folder=mine)

    def watch(machine: Asked) -> None:
        if machine.facts.seen is not None:
            return
        folders, wanted = {}, {}
        for writer in laid:
            published = writer.facts.published
            if writer is machine or not isinstance(published, Published):
                continue
            folders[writer.name] = machine.inside(writer.own)
            for case, digest in published.digests.items():
                wanted[f"{writer.name}/{case}"] = digest
        machine.facts.seen = machine.ask(
            Seen, "watch", watch_s, folders=folders, wanted=wanted, limit_s=watch_s
        )

    well = list(pool.map(lay, machines))
    laid = [machine for machine, good in zip(machines, well) if good]
    for step in (prime, publish, watch):
        for _ in pool.map(step, laid):
            pass
    return laid


def _churn(laid: Sequence[Asked], churn_s: float, pool: ThreadPoolExecutor) -> None:
    def churn(machine: Asked) -> None:
        others = {m.name: machine.inside(m.own) for m in laid if m is not machine}
        machine.facts.churned = machine.ask(
            Churned,
            "churn",
            churn_s,
            own=machine.inside(machine.own),
            others=others,
            seconds=churn_s,
        )

    for _ in pool.map(churn, laid):
        pass


def _lock(
    holder: Asked, others: Sequence[Asked], hold_s: float, pool: ThreadPoolExecutor
) -> list[Locked]:
    """One holds it while the others try, until each was refused; whoever begins first."""
    seconds = hold_s + max(map(_trip_s, (holder, *others)))

    def mark(machine: Asked, other: Asked) -> str:
        return machine.inside(holder.own, f"refused.{other.own}")

    def ask(machine: Asked) -> Held | Failure:
        path = machine.inside(holder.own, "lock")
        if machine is holder:
            marks = [mark(holder, other) for other in others]
            return machine.ask(Held, "hold", seconds, path=path, marks=marks, seconds=seconds)
        mine = mark(machine, machine)
        return machine.ask(Held, "attempt", seconds, path=path, mark=mine, seconds=seconds)

    held, *tried = pool.map(ask, (holder, *others))
    return [Locked(holder.name, o.name, held, t) for o, t in zip(others, tried)]


def _trip_s(machine: Asked) -> float:
    """Seconds that a question and its answer take at least."""
    clock = machine.facts.clock
    return clock.ahead_most_s - clock.ahead_least_s if clock is not None else 0.0
