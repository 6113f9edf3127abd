"""Ask the machines, in an order that leaves caches no excuse.

First each alone: where it is, whether it can write, its habits and its pace. Then all at once
(:mod:`~nfs_setup.verify.survey_pairs`), so that all ordered pairs take as long as one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from nfs_setup.mounts import READER_PATIENCE_S
from nfs_setup.verify import survey_pairs
from nfs_setup.verify.asked import Asked, Place
from nfs_setup.verify.facts import Begun, Failure, Habits, Laid, Moment, Pace, Surroundings
from nfs_setup.verify.files import new_name
from nfs_setup.verify.plan import Plan
from nfs_setup.verify.surveyed import Clock, Survey

_MOST_AT_ONCE = 32

Say = Callable[[str], None]


def survey(places: Sequence[Place], plan: Plan, say: Say = lambda text: None) -> Survey:
    """Measure a share from one or several machines, and remove what was made for it. Blocks
    for some seconds, where caches are slow for about ``plan.watch_s``. Raises nothing for what
    a share or a machine is like.

    Args:
        places: the first one that can write makes the folder that all others must see.
        plan: how much.
        say: gets a line about what is done right now.
    """
    name = new_name()
    hosts = [place.host or place.peer.name for place in places]
    machines = [
        Asked(place, name, f"m{i}", plan.limit_s, again=hosts[i] in hosts[:i])
        for i, place in enumerate(places)
    ]
    result = Survey([m.facts for m in machines], len(set(hosts)) == 1, plan.watch_s)
    pool = ThreadPoolExecutor(min(len(machines), _MOST_AT_ONCE))
    try:
        say("where it is, and whether it can be written")
        for _ in pool.map(_look, machines):
            pass
        _measure(_begin(machines, name, pool), result, plan, say, pool)
    finally:
        # Interrupted, whoever is still asked is not waited for: its peer is closed soon.
        pool.shutdown(wait=False, cancel_futures=True)
        result.left_behind = _remove(machines, name)
    return result


def _measure(
    machines: Sequence[Asked], result: Survey, plan: Plan, say: Say, pool: ThreadPoolExecutor
) -> None:
    alone = [machine for machine in machines if not machine.facts.again]
    say("habits of the file system")
    for _ in pool.map(_habits, alone):
        pass
    for machine in alone:  # one after another: each has the share for itself
        say(f"small files, {machine.name}")
        _pace(machine, plan)
    if not plan.quick:
        survey_pairs.survey_pairs(machines, result, plan, say, pool)


def _look(machine: Asked) -> None:
    machine.facts.surroundings = machine.ask(Surroundings, "look", path=machine.path)
    began = time.time()
    moment = machine.ask(Moment, "now")
    if isinstance(moment, Moment):
        machine.facts.clock = Clock(moment.now_s - time.time(), moment.now_s - began)


def _begin(machines: Sequence[Asked], name: str, pool: ThreadPoolExecutor) -> list[Asked]:
    """One makes the folder, the others wait until they see it. Those that can go on."""

    patience_s = float(READER_PATIENCE_S)

    def begin(machine: Asked, make: bool = False) -> None:
        machine.facts.begun = machine.ask(
            *(Begun, "begin", patience_s),
            path=machine.path,
            name=name,
            own=machine.own,
            make=make,
            limit_s=patience_s,
        )

    waiting = [m for m in machines if _has_folder(m)]
    while waiting:
        maker = waiting.pop(0)
        begin(maker, make=True)
        if maker.facts.uses_it:
            break
    for _ in pool.map(begin, waiting):
        pass
    return [m for m in machines if m.facts.uses_it]


def _has_folder(machine: Asked) -> bool:
    around = machine.facts.surroundings
    return isinstance(around, Surroundings) and around.found == "folder"


def _habits(machine: Asked) -> None:
    machine.facts.habits = machine.ask(Habits, "habits", folder=machine.inside(machine.own))


def _pace(machine: Asked, plan: Plan) -> None:
    machine.facts.pace = machine.ask(
        Pace,
        "pace",
        folder=machine.inside(machine.own),
        rounds=plan.rounds,
        limit_s=plan.limit_s / 3,
    )


def _remove(machines: Sequence[Asked], name: str) -> Failure | None:
    """Remove the folder by any machine that can: what one user made another may not remove."""
    failed = None
    for machine in machines:
        if not isinstance(machine.facts.begun, Failure) and not machine.facts.uses_it:
            continue
        ended = machine.ask(Laid, "end", path=machine.path, name=name)
        if isinstance(ended, Laid) or ended.code == "ENOENT":
            return None
        failed = failed or ended
    return failed
