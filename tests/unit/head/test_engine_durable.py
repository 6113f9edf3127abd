"""Which batches the engine has on disk, past a power cut, before it acts on them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import Trial
from dispatcher.core.resources import Offer
from dispatcher.engine import Engine, _Fact
from dispatcher.ports import Entry
from tests.support.cluster import Cluster, gpus


class Journal:
    """Notes which batches had to be safe."""

    def __init__(self) -> None:
        self.durable: list[bool] = []

    def append(self, entries: Sequence[Entry], _touched: Iterable[Trial], *, durable: bool) -> int:
        self.durable.append(durable)
        return len(entries)


class Nobody:
    """Takes all actions and does nothing."""

    def perform(self, _action: Any) -> None: ...
    def flush(self) -> None: ...
    def act(self, _action: Any) -> None: ...


def test_an_attempt_that_begins_is_on_disk_whatever_began_it() -> None:
    """An offer may be lost in a power cut, and the number of an attempt may not: another one
    would have it, too, and both would be believed."""
    lab = Cluster({"a": None}, workers=2)  # the other one has not said what it has
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
        engine._turn([_Fact("a", e.WorkerOffers(WorkerId("a"), offer))], last=False)
    assert journal.durable == [False, True, False]
