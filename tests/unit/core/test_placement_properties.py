"""What holds of places whatever the hosts are and whatever is asked for."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.core.ids import TrialId
from dispatcher.core.reservations import PASSED_OVER
from dispatcher.core.resources import A_SLOT, NO_RULES, Needs, Offer, WorkerRules
from tests.support.cluster import Cluster, gpus, mig
from tests.support.lengths import some_of

LICENCES = (("licence", 1.0),)

NEEDS = st.sampled_from(
    [
        A_SLOT,
        *(Needs(gpus=share) for share in (0.1, 0.3, 1 / 3, 0.5, 0.7)),
        *(Needs(gpus=float(count)) for count in (1, 2, 3, 1, 1, 4)),
        Needs(gpus=1.0, gpu_memory_bytes=50 << 30),
        Needs(gpus=2.0, cpus=2.5, priority=1),
        Needs(cpus=3.0, memory_bytes=30, priority=-1),
        Needs(custom=LICENCES),
    ]
)


@st.composite
def hosts(draw: st.DrawFn) -> dict[str, Offer | None]:
    found: dict[str, Offer | None] = {}
    for name in "abc"[: draw(st.integers(1, 3))]:
        devices = gpus(
            name, draw(st.sampled_from((4, 3, 2, 1, 0))), memory_gb=draw(st.sampled_from((80, 20)))
        )
        if devices and draw(st.integers(0, 2)) == 2:
            devices = (*devices, *mig(devices[-1], 2))
        cpus = draw(st.sampled_from((None, 8.0, 3.0)))
        found[name] = Offer(devices, cpus, 100, LICENCES if draw(st.booleans()) else ())
    return found


RULES = st.fixed_dictionaries(
    {
        name: st.builds(
            WorkerRules,
            cost=st.sampled_from((0.0, 1.0)),
            trials_per_device=st.sampled_from((0, 0, 2)),
        )
        for name in "abc"
    }
)

#: A trial is submitted with these needs, or the so-manieth of those that run ends.
STEPS = st.lists(st.one_of(NEEDS, NEEDS, st.integers(0, 20)), min_size=15, max_size=40)


def play(offers: dict[str, Offer | None], rules: dict[str, WorkerRules], steps: list) -> Cluster:
    # No host is the last: needs that none of these can meet wait for ever.
    lab = Cluster(offers, each=5, worker_rules=rules, workers=len(offers) + 1)
    for step in steps:
        running = list(lab.state.running)
        if isinstance(step, Needs):
            lab.submit(step)
        elif running:
            lab.leave(running[step % len(running)])
        judge(lab, offers)
    return lab


def judge(lab: Cluster, offers: dict[str, Offer | None]) -> None:
    """Counted anew, from the trials alone."""
    for name, offer in offers.items():
        assert offer is not None
        rules = lab.state.settings.worker_rules.get(name, NO_RULES)
        trials = [t for t in lab.state.trials.values() if lab.where(t.id) == name]
        needs = [t.needs or A_SLOT for t in trials]
        shares: dict[str, float] = defaultdict(float)
        many: dict[str, int] = defaultdict(int)
        for trial, need in zip(trials, needs, strict=True):
            assert len(set(trial.devices)) == len(trial.devices) == need.devices
            for device in trial.devices:
                whole = 1 / rules.trials_per_device if rules.trials_per_device else 1.0
                shares[device] += need.gpus if need.gpus < 1 else whole
                many[device] += 1
        cut = {device.parent for device in offer.devices}
        usable = {device.id for device in offer.devices} - cut
        assert usable.issuperset(shares), "a device that is not one for trials"
        assert all(share <= 1 + 1e-6 for share in shares.values()), shares
        assert not rules.trials_per_device or max(many.values(), default=0) <= 2
        assert len(trials) <= 5
        assert offer.cpus is None or sum(n.cpus for n in needs) <= offer.cpus
        assert sum(n.memory_bytes for n in needs) <= (offer.memory_bytes or 0)
        assert sum(a for n in needs for _, a in n.custom) <= sum(a for _, a in offer.custom)


@settings(max_examples=some_of(100), deadline=None, derandomize=True)
@given(hosts(), RULES, STEPS)
def test_nothing_is_ever_given_twice_and_a_replay_places_the_same(
    offers: dict[str, Offer | None], rules: dict[str, WorkerRules], steps: list
) -> None:
    lab = play(offers, rules, steps)
    lab.assert_replays()


def room_for(lab: Cluster, offers: dict[str, Offer | None], needs: Needs) -> str:
    """The host on which such a trial would fit beside what runs, by a count of our own."""
    for name, offer in offers.items():
        assert offer is not None
        runs = [t for t in lab.state.trials.values() if lab.where(t.id) == name]
        taken: dict[str, float] = defaultdict(float)
        for trial in runs:
            for device in trial.devices:
                taken[device] += min(1.0, (trial.needs or A_SLOT).gpus)
        cut = {device.parent for device in offer.devices}
        free = [
            device
            for device in offer.devices
            if device.id not in cut
            and not (needs.gpus > 1 and device.parent)
            and device.memory_bytes >= needs.gpu_memory_bytes
            and taken[device.id] + min(1.0, needs.gpus) < 1 + 1e-6
        ]
        others = [*(t.needs or A_SLOT for t in runs), needs]
        if (
            len(runs) < 5
            and len(free) >= (max(1, needs.gpus) if needs.gpus else 0)
            and (offer.cpus is None or sum(n.cpus for n in others) <= offer.cpus)
            and sum(n.memory_bytes for n in others) <= (offer.memory_bytes or 0)
            and sum(len(n.custom) for n in others) <= len(offer.custom)
        ):
            return name
    return ""


@settings(max_examples=some_of(100), deadline=None, derandomize=True)
@given(hosts(), STEPS)
def test_nothing_waits_for_what_is_free_and_kept_for_nobody(
    offers: dict[str, Offer | None], steps: list
) -> None:
    lab = play(offers, {}, steps)
    waiting = [lab.trial(trial) for trial in lab.state.queued]
    if any(trial.passed_over >= PASSED_OVER for trial in waiting):
        return  # something is kept
    for trial in waiting:
        assert not room_for(lab, offers, trial.needs or A_SLOT), trial


@settings(max_examples=some_of(40), deadline=None, derandomize=True)
@given(
    st.integers(2, 4),
    st.sampled_from([Needs(gpus=1.0), Needs(gpus=0.5), Needs(gpus=0.3)]),
    st.lists(st.integers(0, 50), min_size=120, max_size=120),
)
def test_a_large_trial_starts_within_a_bounded_number_of_ends(
    hosts: int, small: Needs, ends: list[int]
) -> None:
    """Whichever small trial ends next, and though another comes at once: after ``PASSED_OVER``
    were before it, each trial that then ran ends at most once more."""
    lab = Cluster(dict.fromkeys("abcd"[:hosts], 4), each=16)
    for _ in range(4 * hosts * round(1 / small.gpus) + 3):
        lab.submit(small)
    large = lab.submit(gpus=4)
    waited_for: set[TrialId] | None = None
    for end in ends:
        if waited_for is None and lab.trial(large).passed_over >= PASSED_OVER:
            waited_for = set(lab.state.running)
        # Once it is kept: the oldest first, so that each of those that ran then ends.
        running = sorted(lab.state.running) if waited_for else list(lab.state.running)
        lab.leave(running[0 if waited_for else end % len(running)])
        lab.submit(small)
        if lab.where(large) is not None:
            return
        assert waited_for is None or waited_for & set(lab.state.running), "all of them have ended"
    raise AssertionError(f"after {len(ends)} ends it waits still")
