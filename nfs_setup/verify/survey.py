"""Ask the machines, in an order that leaves caches no excuse.

First each alone: where it is, whether it can write, its habits and its pace. Then all at once,
so that all ordered pairs take as long as one: everybody lays its cases, everybody looks at
everybody's (so that caches hold what was before), everybody publishes, everybody looks until it
sees. Locks come last, since they can hang.

How each thing is measured, asked for and judged stands in a module of its own (``habits``,
``views``, …).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from nfs_setup.mounts import READER_PATIENCE_S
from nfs_setup.verify.churn import ask_churn, judge_churn
from nfs_setup.verify.facts import Begun, Clock, Failure, Laid, Moment, Surroundings, Survey
from nfs_setup.verify.files import new_name
from nfs_setup.verify.findings import Finding, Level, failed, merged
from nfs_setup.verify.habits import ask_habits, judge_habits
from nfs_setup.verify.locks import ask_locks, judge_locks
from nfs_setup.verify.owners import judge_owner, judge_owners_between
from nfs_setup.verify.pace import ask_big, ask_small, judge_pace, judge_rereads
from nfs_setup.verify.peers import Asked, Place, Say
from nfs_setup.verify.place import judge_mount
from nfs_setup.verify.room import judge_clock, judge_clocks_between, judge_room
from nfs_setup.verify.views import ask_views, judge_views


@dataclass(frozen=True)
class Plan:
    """Bounds of a survey.

    Attributes:
        big_bytes: of the big file; a quarter of the free room at most.
        rounds: small files that are published.
        watch_s: how long readers look for what others published.
        churn_s: how long files are replaced while they are read.
        hold_s: how long a lock is held at most.
        limit_s: for a probe that should take no time.
        quick: machines alone, without big files.
    """

    big_bytes: int = 64 << 20
    rounds: int = 20
    watch_s: float = READER_PATIENCE_S + 5.0
    churn_s: float = 2.0
    hold_s: float = 10.0
    limit_s: float = 30.0
    quick: bool = False


_MOST_AT_ONCE = 32


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
    for _ in pool.map(ask_habits, alone):
        pass
    ask_small(alone, plan.rounds, plan.limit_s / 3, say)
    if not plan.quick:
        _measure_pairs(machines, result, plan, say, pool)


def _measure_pairs(
    machines: Sequence[Asked], result: Survey, plan: Plan, say: Say, pool: ThreadPoolExecutor
) -> None:
    """Measure between machines; a single one only writes and reads a big file."""
    result.rereads.extend(ask_big(machines, plan.big_bytes, say))
    if len(machines) < 2:
        return
    say(f"what one makes, another sees (up to {plan.watch_s:.0f} s)")
    laid = ask_views(machines, plan.watch_s, pool)
    say("files that are replaced while they are read")
    ask_churn(laid, plan.churn_s, pool)
    say("locks")
    here = [machine for machine in machines if not machine.lost]
    for holder, others in zip(here[:2], (here[1:], here[:1])):
        if others:
            result.locks.extend(ask_locks(holder, others, plan.hold_s, pool))


def _look(machine: Asked) -> None:
    machine.facts.surroundings = machine.ask(Surroundings, "look", path=machine.path)
    began = time.time()
    moment = machine.ask(Moment, "now")
    if isinstance(moment, Moment):
        machine.facts.clock = Clock(moment.now_s - time.time(), moment.now_s - began)


def _begin(machines: Sequence[Asked], name: str, pool: ThreadPoolExecutor) -> list[Asked]:
    """Have one make the folder, and the others wait until they see it.

    Returns:
        The machines that can go on.
    """
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


def _remove(machines: Sequence[Asked], name: str) -> Failure | None:
    """Have any machine that can remove the folder: what one user made, another may not remove."""
    failed = None
    for machine in machines:
        if not isinstance(machine.facts.begun, Failure) and not machine.facts.uses_it:
            continue
        ended = machine.ask(Laid, "end", path=machine.path, name=name)
        if isinstance(ended, Laid) or ended.code == "ENOENT":
            return None
        failed = failed or ended
    return failed


def judged(survey: Survey) -> list[Finding]:
    """Return the findings of a survey: what passes, is slow or wrong, and what to change."""
    found: list[Finding] = []
    alone = [machine for machine in survey.machines if not machine.again]
    for machine in alone:
        found += judge_mount(machine)
    for machine in alone:
        found += judge_owner(machine)
    found += judge_owners_between(survey.machines)
    for machine in alone:
        found += judge_room(machine) + judge_clock(machine)
    found += judge_clocks_between(alone)
    for machine in alone:
        found += judge_habits(machine) + judge_pace(machine)
    found += judge_rereads(survey)
    found += judge_views(survey) + judge_churn(survey.machines) + judge_locks(survey.locks)
    if survey.left_behind is not None:
        found.append(failed("clean-up", "the share", survey.left_behind, Level.NOTE))
    if survey.one_host and len(survey.machines) > 1 and survey.machines[-1].uses_it:
        text = "only this machine was asked: nothing is known of what others see, and when"
        found.append(Finding("other machines", "here", Level.NOTE, text, "add --from HOST"))
    return merged(found)
