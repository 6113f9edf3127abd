"""How many places are asked for: as many as trials could use."""

from __future__ import annotations

from typing import Any

from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.resources import Offer
from dispatcher.head.ordering import PATIENCE_S, CostedPlace, Ordering, load_of
from tests.support.cluster import Cluster
from tests.support.scene import HOST, Scene


def queued(scene: Scene, worker: str = "slurm-1") -> int:
    return load_of(scene.state, lambda: scene.now, worker).queued


def test_what_is_queued_beyond_the_concurrency_needs_no_place() -> None:
    """A user submits more than may run at once. Mutation: places are held for them at a scheduler,
    and nothing ever runs there."""
    scene = Scene(slots=2, workers=2)
    for trial in range(2):
        scene.propose(trial)
    assert len(scene.state.running) == 2
    for _ in range(4):
        scene.say(e.TrialSubmitted("{}"))
    assert len(scene.state.queued) == 4
    assert queued(scene) == queued(scene, HOST) == 0


def test_what_is_lost_is_queued_for_whoever_gives_a_place() -> None:
    scene = Scene(slots=3, workers=1)
    scene.say(e.WorkerJoined(WorkerId("slurm-1"), 1))
    for trial in range(3):
        scene.propose(trial)
    assert queued(scene, "slurm-2") == 1
    scene.say(e.WorkerLost(WorkerId("slurm-1"), "its node has gone", planned=True))
    scene.wait_until(scene.now + 60)
    assert queued(scene, "slurm-2") == 2


CHEAP, DEAR = CostedPlace("cheap", 2, 0.0), CostedPlace("dear", 1, 1.0)


def ordering(scene: Scene, *known: CostedPlace) -> Ordering:
    return Ordering(known or (CHEAP, DEAR), scene.state, lambda: scene.now)


def three_queued() -> Scene:
    """The only worker has gone."""
    scene = Scene(slots=3, workers=3)
    for trial in range(3):
        scene.propose(trial)
    scene.say(e.WorkerLost(HOST, "its node has gone", planned=True))
    scene.wait_until(scene.now + 60)
    assert len(scene.state.queued) == 3
    return scene


def test_the_cheaper_scheduler_is_asked_first() -> None:
    """Mutations: both are asked for all; the dearer one is asked for nothing though the cheaper one
    has not enough; the cheaper one is asked for less."""
    scene = three_queued()
    order = ordering(scene)
    assert order.load_of("cheap").queued == 3
    assert order.load_of("dear").queued == 1, "what two cheap slots do not take"
    scene.say(e.WorkerWaits(WorkerId("cheap"), "Priority", 0.0))
    assert order.load_of("dear").queued == 1


def test_the_dearer_one_is_asked_when_the_cheaper_one_waits() -> None:
    """Mutation: trials wait for days in a queue beside nodes that are free."""
    scene = three_queued()
    order = ordering(scene)
    scene.say(e.WorkerWaits(WorkerId("cheap"), "Priority", 0.0))
    scene.now += PATIENCE_S
    assert order.load_of("dear").queued == 3


def test_what_a_scheduler_is_not_asked_for_holds_nothing_back() -> None:
    """A scheduler is asked for as many places as trials could use, and its file may name more.
    Mutations: those count for ever as ones that are about to come, and trials wait for days in a
    queue beside nodes that are free; or they count for nothing, and the dearer scheduler is asked
    for what the cheaper one is about to be asked for."""
    scene = three_queued()
    cheap = [CostedPlace(f"cheap-{number}", 1, 0.0) for number in range(8)]
    order = ordering(scene, *cheap, DEAR._replace(service=1))
    for each in cheap:
        scene.say(e.WorkerWaits(WorkerId(each.worker), "", 0.0))
    scene.now += PATIENCE_S
    assert order.load_of("dear").queued == 0, "there was nothing to run until now"
    scene.say(e.WorkerWaits(WorkerId("cheap-0"), "Priority", 0.0))
    scene.now += PATIENCE_S
    assert order.load_of("dear").queued == 1, "two more cheap ones are about to be asked for"
    for each in cheap[1:3]:
        scene.say(e.WorkerWaits(WorkerId(each.worker), "Priority", 0.0))
    assert order.load_of("dear").queued == 1
    scene.now += PATIENCE_S
    assert order.load_of("dear").queued == 3


def test_each_scheduler_is_counted_on_for_what_it_is_asked_for() -> None:
    """Two trials are left to the cheapest places, and the one behind them waits in the second
    queue. Mutation: the second scheduler counts as one that is about to be asked for all three."""
    scene = three_queued()
    second = [CostedPlace(f"second-{number}", 1, 0.5, service=1) for number in range(8)]
    order = ordering(scene, *second, DEAR._replace(service=2), CHEAP)
    for each in second:
        reason = "Priority" if each is second[0] else ""
        scene.say(e.WorkerWaits(WorkerId(each.worker), reason, 0.0))
    scene.now += PATIENCE_S
    scene.say(e.WorkerWaits(WorkerId("cheap"), "Resources", 0.0))
    assert order.load_of("second-1").queued == 1
    assert order.load_of("dear").queued == 1


class CountedWorkers(dict[WorkerId, Any]):
    """Workers that are counted as they are looked up."""

    looked_up = 0

    def get(self, key: WorkerId, default: Any = None) -> Any:
        """As a dict does it."""
        self.looked_up += 1
        return super().get(key, default)


def test_a_thousand_workers_are_looked_at_together() -> None:
    """The engine asks for each of them, twice a second. Mutation: each answer looks at all that
    are cheaper, and the engine does nothing else; or an answer counts for ever."""
    scene = three_queued()
    scene.state.workers = workers = CountedWorkers(scene.state.workers)
    cheap = [CostedPlace(f"cheap-{number}", 1, 0.0) for number in range(500)]
    dear = [CostedPlace(f"dear-{number}", 1, 1.0, service=1) for number in range(500)]
    order = ordering(scene, *cheap, *dear)
    assert {order.load_of(each.worker).queued for each in dear} == {0}
    assert workers.looked_up < 3000
    scene.now += PATIENCE_S
    assert {order.load_of(each.worker).queued for each in dear} == {3}


def test_one_that_nobody_hears_of_is_waited_for_a_while() -> None:
    scene = three_queued()
    order = ordering(scene)
    scene.now += PATIENCE_S - 1
    assert order.load_of("dear").queued == 1
    scene.now += 1
    assert order.load_of("dear").queued == 3


def test_one_that_was_lost_is_not_counted_on() -> None:
    scene = three_queued()
    order = ordering(scene)
    scene.say(e.WorkerWaits(WorkerId("cheap"), "Priority", 0.0))
    scene.say(e.WorkerLost(WorkerId("cheap"), "it cannot be had"))
    assert order.load_of("dear").queued == 3


def test_those_of_equal_cost_are_asked_together() -> None:
    """As before there was an order. Mutation: the first in the file is asked first."""
    scene = three_queued()
    order = ordering(scene, CHEAP, DEAR._replace(cost=0.0))
    assert order.load_of("cheap").queued == order.load_of("dear").queued == 3


def test_trials_whose_weights_lie_elsewhere_are_not_left_to_a_cheaper_place() -> None:
    """Children run where their parents' weights are. Mutation: they wait for a place in which they
    may not run."""
    scene = three_queued()
    far = CHEAP._replace(domain="far")
    assert ordering(scene, far, DEAR).load_of("dear").queued == 1, "they may run anywhere"
    (own,) = scene.state.queue_classes
    scene.state.queue_classes[own._replace(home="")] = scene.state.queue_classes.pop(own)
    assert ordering(scene, far, DEAR).load_of("dear").queued == 3


def test_places_that_can_never_take_a_trial_hold_nothing_back() -> None:
    """The first one of the cheap service has come, and has too little; those after it are asked for
    one by one. Mutations: each delays the dearer service by a minute; what one has counts for other
    services, or for trials that do fit there."""
    lab = Cluster({}, slots=9, workers=9)
    for _ in range(3):
        lab.submit(cpus=8.0)
    cheap = [CostedPlace(f"cheap-{number}", 1, 0.0) for number in range(4)]
    other = CostedPlace("other", 1, 0.5, service=2)
    order = ordering(lab, *cheap, other, DEAR._replace(service=1))
    lab.join("cheap-0", Offer(cpus=4.0), 1)
    for each in (*cheap[1:], other):
        lab.say(e.WorkerWaits(WorkerId(each.worker), "Priority", 0.0))
    assert order.load_of("other").queued == 3
    assert order.load_of("dear").queued == 2, "nobody knows what the other service has"
    for _ in range(2):
        lab.submit(cpus=2.0)
    assert len(lab.state.running) == 1
    assert order.load_of("other").queued == 3, "the small one is left to the cheap service"
    lab.say(e.WorkerLost(WorkerId("cheap-0"), "its place was taken back", planned=True))
    lab.now += 1
    assert order.load_of("other").queued == 3, "what was seen there once is known"
