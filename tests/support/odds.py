"""How often what goes wrong in a simulated world, and the experiment that a seed stands for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dispatcher.core.resources import A_SLOT, Device, Needs, Offer, WorkerRules
from dispatcher.core.settings import Settings, StallPolicy, TunerErrorPolicy


@dataclass(frozen=True)
class Odds:
    """Numbers of accidents are upper bounds, spread over the run; the rest are probabilities,
    unless the name says otherwise."""

    trial_fails: float = 0.15
    tuner_raises: float = 0.02
    not_now: float = 0.05
    tuner_slowness: float = 1.0  # by how much all that the tuner does takes longer
    keeps_state: bool = False  # the tuner has state() and restore()
    host_crashes: int = 1
    agent_deaths: int = 1
    cuts: int = 0  # of the line to an agent, for seconds; some outlast the lease
    resets: int = 0  # of its connection: what was under way is lost
    freezes: int = 0  # an agent stands still and comes back
    head_crashes: int = 1  # between any two of its steps
    zombies: float = 0.0  # the head before goes on speaking with its agents
    disk_faults: int = 0  # a commit is refused; the head ends and is started again
    power_cuts: int = 0  # what was not waited for is gone
    full_disks: int = 0  # for some seconds each
    clock_steps: int = 0  # the wall clock leaps by hours, either way
    offers: int = 0  # a device falls into trouble, or off the bus, for some seconds
    removals: int = 0  # retention wants to delete weights
    user_acts: int = 3
    stops: int = 0
    early_stops: float = 0.0  # of a trial at each of its intermediate results
    advisor: bool = False  # judges where results are delivered; else an assessor, beside them
    stores: float = 0.0  # that a trial writes to a shared store
    reviews: int = 0  # the weight keeper looks through the stores unasked
    imports: int = 0  # of other experiments' results
    spaces: int = 0  # changes of the search space
    changes: float = 0.0  # of settings, before a head
    upgrades: bool = False  # such a change turns a newer rule on
    updates: int = 0  # of settings, by a user, while it runs
    troubles: int = 0  # of a host: its agent may not join for some seconds
    sick: bool = False  # the first host fails all that it runs, for a while
    hangs: float = 0.0  # of trials: they end when they are stopped
    aimed: int = 0  # heads that end between what they received and what they applied
    ambushes: int = 0  # agents that die just before they are told to start something
    takes: int = 0  # places of agents that a scheduler takes back; the next one waits in its queue
    walls: float = 0.0  # of places that agents have of a scheduler: the end of each is known
    seconds: int = 0  # agents that a scheduler starts a second time with the ticket of the first
    tripwires: int = 0  # connections that break just behind an order to stop
    tangled: bool = False  # requests wait for many, earlier and later ones, in rings if they may
    saves_again: float = 0.0  # of trials that publish: they do so a second time
    weight_files: bool = False  # weights are files, saved and loaded by the product
    save_pause_s: float = 0.3  # for so long a save stands still now and then
    save_accidents: int = 0  # agents that die, freeze or are cut off while they save
    stands: float = 0.0  # of requests: they wait long, or for ever, for what is not ours
    locks: float = 0.0  # of deliveries: they stand still at a lock, long or for ever
    thinks: float = 0.0  # of requests and deliveries: they compute for long
    bulk_bytes: int = 0  # of the parameters of each trial, more or less
    latency_s: float = 0.02
    repeats: float = 0.02  # of frames between head and agents
    overtakes: float = 0.02


@dataclass(frozen=True)
class Case:
    """A whole experiment in a whole world. Equal cases live equal lives."""

    seed: int
    settings: Settings
    odds: Odds
    workers: dict[str, int]
    offers: dict[str, Offer] = field(default_factory=dict)  # of workers with devices

    @property
    def folds(self) -> bool:
        """Whether the journal's beginning is folded as it grows; half of the worlds do it."""
        return random.Random(f"folds {self.seed}").random() < 0.5

    def needs_of(self, trial: int) -> Needs | None:
        """What the tuner says that a trial needs: the same whenever it is asked."""
        if not self.offers:
            return None
        dice = random.Random(f"needs {self.seed} {trial}")
        return dice.choice((None, None, None, *_OWN_NEEDS))


_OWN_NEEDS = (
    A_SLOT,
    Needs(gpus=0.25),
    Needs(gpus=0.6, priority=1),
    Needs(gpus=1.0, gpu_memory_bytes=40),
    Needs(gpus=2.0, cpus=2.0),
    Needs(gpus=3.0),
    Needs(cpus=3.0, memory_bytes=60, priority=-1),
    Needs(custom=(("licence", 1.0),)),
    Needs(gpus=9.0),  # more than any host has
)


def _lab(seed: int, case: Case) -> Case:
    """Two in five worlds have devices; dice of its own, so that the others stay as they were."""
    dice = random.Random(f"devices {seed}")
    if dice.random() >= 0.4:
        return case
    offers: dict[str, Offer] = {}
    for name in case.workers:
        gpus = [
            Device(f"GPU-{name}-{n}", n, memory_bytes=dice.choice((20, 80)))
            for n in range(dice.choice((1, 2, 3, 4)))
        ]
        if dice.random() < 0.3:
            cut = gpus[-1]
            parts = (
                Device(f"MIG-{name}-{n}", cut.index, memory_bytes=10, parent=cut.id)
                for n in range(2)
            )
            gpus.extend(parts)
        licences = (("licence", 1.0),) if dice.random() < 0.5 else ()
        offers[name] = Offer(tuple(gpus), dice.choice((None, 3.0, 8.0)), 100, licences)
    rules: dict[str, WorkerRules] = {}
    for name in case.workers:
        domain = name if dice.random() < 0.3 else ""
        rules[name] = WorkerRules(dice.choice((0.0, 0.0, 1.0)), dice.choice((0, 0, 2)), domain)
    settings = replace(
        case.settings,
        needs=dice.choice((A_SLOT, Needs(gpus=0.5), Needs(gpus=1.0))),
        worker_rules=rules,
        workers=len(case.workers),
    )
    odds = replace(case.odds, offers=0 if case.odds.trial_fails == 0.0 else dice.choice((0, 4)))
    return replace(case, settings=settings, odds=odds, offers=offers)


def case_of(seed: int) -> Case:
    """What a seed stands for."""
    case = _lab(seed, _plain_case(seed))
    for name, add in _KINDS.items():
        dice = random.Random(f"{name} {seed}")
        if dice.random() < _SHARE.get(name, 0.3):
            case = add(case, dice)
    return case


def _plain_case(seed: int) -> Case:
    dice = random.Random(f"settings {seed}")
    slots = dice.choice((1, 2, 2, 3, 5))
    settings = Settings(
        slots=slots,
        lookahead=dice.choice((1, 2, 4, 8)),
        max_trials=dice.choice((5, 10, 20, 40)),
        on_tuner_error=dice.choice((TunerErrorPolicy.CONTINUE, TunerErrorPolicy.RETRY)),
        on_stall=dice.choice(list(StallPolicy)),
        stall_timeout_s=30.0,
        bounded_drain=True,
        placed_anew=True,
        trial_retries=dice.choice((0, 1, 2)),
        retry_backoff_max_s=20.0,
        substitute_result=dice.choice((None, None, "0")),
        silent_is_failure=dice.random() < 0.2,
        trial_stop_grace_s=1.0,
        retries=dice.choice(({}, {}, {"failed": 2, "lost": 1})),
        losses_at_once=dice.random() < 0.5,
        through_when_stopped=dice.random() < 0.5,
        end_dropped=random.Random(f"dropped {seed}").random() < 0.5,
        max_failed_in_a_row=dice.choice((0, 0, 4)),
        quarantine_after=dice.choice((0, 2)),
        asks_at_most=random.Random(f"asks {seed}").choice((0, 0, slots)),
    )
    workers = {"local": slots} if dice.random() < 0.5 else {"local": slots, "far": 2}
    return Case(seed, settings, _odds(dice), workers)


def _is_calm(case: Case) -> bool:
    return case.odds.trial_fails == 0.0


def _judged(case: Case, dice: random.Random) -> Case:
    """An assessor, or an advisor, ends trials by what they report."""
    settings = replace(case.settings, assess=True, early_stop_keeps_result=dice.random() < 0.6)
    odds = replace(case.odds, early_stops=dice.choice((0.1, 0.4)), advisor=dice.random() < 0.4)
    return replace(case, settings=settings, odds=odds)


def _shared(case: Case, dice: random.Random) -> Case:
    """Trials write to shared stores; the tuner waits for versions, holds and pins them."""
    keep = dice.choice((0, 1, 1, 2))
    of = dice.choice(({}, {"omega": 2}, {"omega": 0, "psi": 1}))
    settings = replace(case.settings, keep_versions=keep, keep_versions_of=of)
    odds = replace(case.odds, stores=dice.choice((0.3, 0.8)), reviews=dice.choice((0, 5)))
    return replace(case, settings=settings, odds=odds)


def _changed(case: Case, dice: random.Random) -> Case:
    """Limits are other ones than before: under the next head, or while this one leads."""
    limit = dice.choice((None, 8.0, 25.0, 60.0))
    follow = ("local",) if dice.random() < 0.5 else ()
    settings = replace(case.settings, max_duration_s=limit, slots_follow=follow)
    odds = replace(
        case.odds,
        changes=dice.choice((0.0, 0.7)),
        upgrades=dice.random() < 0.5,
        updates=0 if _is_calm(case) else dice.choice((0, 4)),
    )
    more = {name: slots + dice.choice((0, 3)) for name, slots in case.workers.items()}
    return replace(case, settings=settings, odds=odds, workers=more)


def _earned(case: Case, dice: random.Random) -> Case:
    """The search may earn its end: by a result, for want of a better one, by its trials' time."""
    settings = replace(
        case.settings,
        maximize=dice.random() < 0.5,
        target=dice.choice((None, None, 1.0, 4.0)),
        patience=dice.choice((0, 2, 5)),
        least_progress=dice.choice((0.0, 0.5, 2.0)),
        most_trial_s=dice.choice((None, 5.0, 40.0)),
    )
    if settings.patience:  # each trial reports a number, so that none lacks it
        settings = replace(settings, objectives=("default",))
    elif settings.most_trial_s == 5.0:  # results lack this one: time alone ends it
        settings = replace(settings, end_objective="size")
    if settings.least_progress == 0.5:
        settings = replace(settings, at_most={"default": 3.0})
    elif settings.least_progress == 2.0:
        settings = replace(settings, at_least={"default": 0.5})
    return replace(case, settings=settings)


def _told(case: Case, dice: random.Random) -> Case:
    """Users bring results of other experiments, and change the search space."""
    odds = replace(case.odds, imports=dice.choice((1, 4)), spaces=dice.choice((0, 2)))
    return replace(case, odds=odds)


def _hosts(case: Case, dice: random.Random) -> Case:
    """Hosts that may not join, or that fail what they run; other patience with all of that."""
    settings = replace(
        case.settings,
        workers=len(case.workers),
        lost_retries=dice.choice((1, 5)),
        retry_backoff_s=dice.choice((0.1, 3.0)),
        quarantine_after=dice.choice((1, 2)),
        quarantine_pause_s=dice.choice((2.0, 20.0)),
    )
    if _is_calm(case):
        return replace(case, settings=settings)
    odds = replace(
        case.odds,
        troubles=dice.choice((0, 3)),
        sick=len(case.workers) > 1 and dice.random() < 0.7,
        hangs=dice.choice((0.0, 0.15)),
    )
    return replace(case, settings=settings, odds=odds)


def _strict(case: Case, dice: random.Random) -> Case:
    """The first exception of the tuner ends the experiment, until somebody resumes it."""
    settings = replace(case.settings, on_tuner_error=TunerErrorPolicy.FAIL)
    return replace(case, settings=settings)


def _aimed(case: Case, dice: random.Random) -> Case:
    """Heads end where it hurts; trials save more than once."""
    if _is_calm(case):
        return case
    odds = replace(
        case.odds,
        aimed=dice.choice((0, 3)),
        ambushes=dice.choice((0, 2)),
        tripwires=dice.choice((0, 3)),
        hangs=dice.choice((0.0, 0.5)),
        saves_again=dice.choice((0.0, 0.5)),
    )
    return replace(case, odds=odds)


def _tangled(case: Case, dice: random.Random) -> Case:
    """Many requests at once that wait for one another."""
    settings = replace(case.settings, slots=5, lookahead=8, max_trials=20)
    workers = dict.fromkeys(case.workers, 5)
    return replace(case, settings=settings, odds=replace(case.odds, tangled=True), workers=workers)


def with_weight_files(case: Case, dice: random.Random) -> Case:
    """Weights are files; saves are under way while attempts are lost, and given up."""
    odds = replace(
        case.odds, weight_files=True, saves_again=dice.choice((0.0, 0.5)), save_pause_s=1.0
    )
    if _is_calm(case):
        return replace(case, odds=odds)
    odds = replace(odds, save_accidents=8, save_pause_s=dice.choice((0.5, 3.0)))
    workers = case.workers
    if not case.offers:
        workers = {"local": case.settings.slots, "far": 2}
    settings = replace(case.settings, workers=len(workers), losses_at_once=True)
    return replace(case, odds=odds, settings=settings, workers=workers)


def with_standstill(case: Case, dice: random.Random) -> Case:
    """The author's threads stand still, or compute for long; hardly anything else goes wrong."""
    odds = replace(
        case.odds,
        stands=dice.choice((0.0, 0.1, 0.4)),
        locks=dice.choice((0.0, 0.1)),
        thinks=dice.choice((0.0, 0.05)),
        tangled=dice.random() < 0.3,
        tuner_slowness=1.0,
    )
    settings = replace(
        case.settings,
        max_trials=dice.choice((5, 10, 20)),
        stall_timeout_s=dice.choice((15.0, 30.0, 90.0)),
        lookahead=dice.choice((1, 2, 4)),
    )
    return replace(case, odds=odds, settings=settings)


def _bulky(case: Case, dice: random.Random) -> Case:
    """Many slots on one host and large parameters: what is ordered at once is many frames."""
    settings = replace(
        case.settings,
        slots=16,
        lookahead=16,
        max_trials=20,
        needs=A_SLOT,
        worker_rules={},
        workers=1,
    )
    odds = replace(case.odds, bulk_bytes=900_000)
    return replace(case, settings=settings, odds=odds, workers={"local": 16}, offers={})


def _queued(case: Case, dice: random.Random) -> Case:
    """Agents have their places of a scheduler, which takes them back and has none for a while."""
    if _is_calm(case):
        return case
    settings = replace(case.settings, lost_retries=dice.choice((1, 5)))
    odds = replace(case.odds, takes=dice.choice((2, 6)))
    return replace(case, settings=settings, odds=odds)


def with_lent_places(case: Case, dice: random.Random) -> Case:
    """Agents have their places for a time that is known, some of them too short for any trial."""
    if _is_calm(case):
        return case
    longest_s = dice.choice((None, 20.0))
    settings = replace(
        case.settings, longest_trial_s=longest_s, hand_over_s=dice.choice((3.0, 6.0))
    )
    settings = replace(settings, lost_retries=dice.choice((1, 5, 40)))
    odds = replace(case.odds, walls=dice.choice((0.5, 1.0)), seconds=dice.choice((0, 3)))
    most = dice.choice((0, 0, 1, 2))
    old = settings.worker_rules
    rules = {n: replace(old.get(n, WorkerRules()), trials_per_place=most) for n in case.workers}
    settings = replace(settings, worker_rules=rules if most else old)
    return replace(case, settings=settings, odds=odds)


_KINDS: dict[str, Callable[[Case, random.Random], Case]] = {
    "judged": _judged,
    "shared": _shared,
    "changed": _changed,
    "earned": _earned,
    "told": _told,
    "hosts": _hosts,
    "strict": _strict,
    "aimed": _aimed,
    "tangled": _tangled,
    "bulky": _bulky,
    "filed": with_weight_files,
    "standing": with_standstill,
    "queued": _queued,
    "lent": with_lent_places,
}

#: How many of the worlds know a kind, where it is not three in ten.
_SHARE = {
    "strict": 0.1,
    "earned": 0.15,
    "tangled": 0.1,
    "bulky": 0.02,
    "filed": 0.06,
    "standing": 0.1,
}


def _odds(dice: random.Random) -> Odds:
    """A fifth of all worlds are calm; in each of the others only some kinds of things go wrong,
    so that what one kind leads to is not hidden behind the next."""
    slowness = dice.choice((1.0, 1.0, 1.0, 20.0))
    keeps_state = dice.random() < 0.5
    if dice.random() < 0.2:
        return Odds(
            trial_fails=0.0,
            tuner_raises=0.0,
            tuner_slowness=slowness,
            keeps_state=keeps_state,
            host_crashes=0,
            agent_deaths=0,
            head_crashes=0,
            user_acts=0,
            repeats=0.0,
            overtakes=0.0,
        )

    def some(most: int) -> int:
        return dice.choice((0, most))

    return Odds(
        trial_fails=dice.choice((0.1, 0.4)),
        tuner_slowness=slowness,
        keeps_state=keeps_state,
        host_crashes=some(2),
        agent_deaths=some(2),
        cuts=some(2),
        resets=some(3),
        freezes=some(2),
        head_crashes=some(3),
        zombies=dice.choice((0.0, 0.7)),
        disk_faults=some(2),
        power_cuts=some(1),
        full_disks=some(2),
        clock_steps=some(2),
        removals=some(4),
        user_acts=some(6),
        stops=some(1),
        latency_s=dice.choice((0.005, 0.02, 0.3)),
        repeats=dice.choice((0.0, 0.1)),
        overtakes=dice.choice((0.0, 0.1)),
    )
