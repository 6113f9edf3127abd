"""Which batches the engine has on disk, past a power cut, before it acts on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Phase, Trial
from dispatcher.core.resources import Offer
from dispatcher.engine import Engine, OwnedFact
from dispatcher.ports import JournalEntry
from tests.support.cluster import Cluster, gpus
from tests.support.scene import Scene, weights


class Journal:
    """Notes which batches had to be safe."""

    def __init__(self) -> None:
        self.durable: list[bool] = []

    def append(
        self, entries: Sequence[JournalEntry], _touched: Iterable[Trial], *, durable: bool
    ) -> int:
        self.durable.append(durable)
        return len(entries)


class Nobody:
    """Takes all actions and does nothing."""

    def perform(self, _action: Any) -> None: ...
    def flush(self) -> None: ...
    def peer_fault(self, owner: str, error: Exception) -> None:
        self.faults = [*getattr(self, "faults", []), (owner, str(error))]

    def act(self, _action: Any) -> None: ...


def test_an_attempt_that_begins_is_on_disk_whatever_began_it() -> None:
    """An offer may be lost in a power cut, and the number of an attempt may not: another one
    would have it, too, and both would be believed."""
    lab = Cluster({"a": None}, workers=2)  # the other one has not reported its resources
    lab.submit(gpus=1)
    journal: Any = Journal()
    nobody: Any = Nobody()
    unused: Any = None
    backends = {"a": nobody}
    engine = Engine(
        lab.state, journal, unused, nobody, backends, unused, nobody, row=0, clock=lambda: lab.now
    )
    for count in (0, 1, 2):
        offer = Offer(gpus("a", count))
        engine.turn([OwnedFact("a", e.WorkerOffers(WorkerId("a"), offer))], last=False)
    assert journal.durable == [False, True, False]


def test_a_delivery_waits_for_the_disk_only_with_what_rests_on_it() -> None:
    """After a power cut the tuner, which went with it, is given the result once more. A child that
    starts with the end of its parent must not have its attempt's number given again."""
    lab = Cluster({"a": Offer(gpus("a", 2))})
    journal: Any = Journal()
    nobody: Any = Nobody()
    unused: Any = None
    engine = Engine(
        lab.state, journal, unused, nobody, {"a": nobody}, unused, nobody, clock=lambda: lab.now
    )
    parent = TrialId(lab.submit())
    child = TrialId(lab.submit(parent=parent))
    assert lab.where(child) is None
    lab.started(parent)
    for fact in (
        e.AttemptEnded(parent, 1, EndReason.FINISHED, weights=weights(parent)),
        e.EndDelivered(parent),  # and so the child begins
        e.AttemptEnded(child, 1, EndReason.FINISHED, weights=weights(child)),
        e.EndDelivered(child),
    ):
        engine.turn([OwnedFact("", fact)], last=False)
    assert lab.trial(child).attempt == 1
    assert journal.durable == [True, True, True, False]


def test_the_end_of_an_experiment_is_on_disk_before_anybody_hears_of_it() -> None:
    scene = Scene(slots=1, max_trials=1)
    scene.propose(0)
    scene.run(0)
    journal: Any = Journal()
    nobody: Any = Nobody()
    unused: Any = None
    engine = Engine(
        scene.state, journal, unused, nobody, {"local": nobody}, unused, nobody, clock=lambda: 50.0
    )
    engine.turn([OwnedFact("", e.ResultDelivered(TrialId(0)))], last=False)
    engine.turn([OwnedFact("", e.EndDelivered(TrialId(0)))], last=False)
    assert scene.state.phase is Phase.COMPLETED
    assert journal.durable == [False, True]


def test_a_peer_reports_only_what_may_come_from_its_like() -> None:
    """A tuner host cannot end an attempt, nor an agent propose a trial; both go on."""
    scene = Scene(slots=1, workers=1)
    scene.propose(0)
    scene.started(0)
    journal: Any = Journal()
    nobody: Any = Nobody()
    unused: Any = None
    engine = Engine(
        scene.state, journal, unused, nobody, {"local": nobody}, unused, nobody, clock=lambda: 50.0
    )
    facts = [
        OwnedFact("tuner", e.AttemptEnded(TrialId(0), 1, EndReason.FINISHED)),
        OwnedFact("local", e.StopRequested(e.StopKind.NOW, "so it pleased me")),
        OwnedFact("local", e.FinalReported(TrialId(0), 1, 1, "0.5")),
    ]
    engine.turn(facts, last=False)
    assert [owner for owner, _ in nobody.faults] == ["tuner", "local"]
    assert "it may not report AttemptEnded" in nobody.faults[0][1]
    assert scene.state.phase is Phase.RUNNING
    assert scene.trial(0).final == "0.5"


def test_what_an_agent_may_forget_is_on_disk() -> None:
    """An agent lets go of what is acknowledged; a metric, too, which is in no other place."""
    scene = Scene(slots=1, workers=1)
    scene.propose(0)
    journal: Any = Journal()
    nobody: Any = Nobody()
    unused: Any = None
    engine = Engine(
        scene.state, journal, unused, nobody, {"local": nobody}, unused, nobody, clock=lambda: 50.0
    )
    for fact in (
        e.AttemptStarted(TrialId(0), 1),  # its agent reports it again, as long as it runs
        e.MetricReported(TrialId(0), 1, 1, "0.4"),
        e.WeightsPublished(TrialId(0), 1, 2, weights(0)),
        e.VersionOffered(TrialId(0), 1, 3, "omega", 0, "omega/0.1-0", "d", 1),
        e.FinalReported(TrialId(0), 1, 4, "0.5"),
        e.AttemptEnded(TrialId(0), 1, EndReason.FINISHED),
    ):
        engine.turn([OwnedFact("local", fact)], last=False)
    assert journal.durable == [False, True, True, True, True, True]
