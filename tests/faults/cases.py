"""At which failpoint who dies, when, and in what experiment. ``tests/arch`` knows them all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Case:
    """One death. ``at`` is the time of passing by that kills (in one process);

    ``first`` is a plan for a head before, so that the one that dies here has a past;
    ``beside`` is added to the plan: another death that brings the process here;
    ``spoilt``: so many trials may die with it between their result and their end.
    """

    at: int = 1
    head: bool = False
    first: str = ""
    beside: str = ""
    trials: int = 10
    spoilt: int = 0
    keys: dict[str, Any] = field(default_factory=dict)

    def place(self, name: str) -> str:
        return f"{name}@{self.at}"

    def plan(self, name: str) -> str:
        return ",".join(filter(None, (f"{self.place(name)}=kill", self.beside)))


def _head(at: int = 1, **rest: Any) -> Case:
    return Case(at, head=True, **rest)


#: A head that is killed in its midst, so that the next one finds a past.
_BEFORE = "engine.batch.committed@9=kill"
_HOST_DIES = "host.result.returned@3=kill"
_FORKED = {"reuse": "forked"}
_PLAIN = {"function": "train_plainly"}
_STATE = {"tuner": "Remembering"}
#: Sweeps come once a second.
_SWEPT = {
    "tuner": "Rooted",
    "function": "train_longer",
    "optimizeMode": "minimize",
    "retention": {"keep": "best", "count": 3},
}
#: An agent whose head ended after all was done has nobody to tell it so.
_SHORT = {"headGrace": 2}

CASES: dict[str, Case] = {
    "leadership.lock.taken": _head(first=_BEFORE),
    "leadership.draft.synced": _head(first=_BEFORE),
    "leadership.written": _head(first=_BEFORE),
    "head.epoch.journalled": _head(first=_BEFORE),
    "head.run_file.written": _head(first=_BEFORE),
    "head.outstanding.performed": _head(first=_BEFORE),
    "restore.draft.written": _head(first=_BEFORE),
    "restore.file.written": _head(at=2, beside=_HOST_DIES),
    "launch.tuner.spawned": _head(first=_BEFORE),
    "launch.agent.spawned": _head(),
    "launch.agent.recorded": _head(),
    "engine.batch.applied": _head(at=10),
    "journal.batch.written": _head(at=12),
    "engine.batch.committed": _head(at=11),
    "journal.snapshot.written": _head(trials=80, keys=_STATE),
    "engine.snapshot.kept": _head(trials=80, keys=_STATE),
    "engine.batch.acknowledged": _head(at=10),
    "engine.tuner.told": _head(at=13),
    "engine.actions.sent": _head(at=9),
    "head.engine.over": _head(keys=_SHORT),
    "head.tuner.closed": _head(keys=_SHORT),
    "head.agent.closed": _head(),
    "head.end.recorded": _head(),
    "keeper.removal.granted": _head(trials=30, keys=_SWEPT),
    "ledger.intent.written": _head(trials=30, keys=_SWEPT),
    "keeper.removal.intended": _head(trials=30, keys=_SWEPT),
    "weights.file.removed": _head(trials=30, keys=_SWEPT),
    "keeper.files.removed": _head(trials=30, keys=_SWEPT),
    "host.restored": Case(beside=_HOST_DIES),
    "host.request.returned": Case(at=5),
    "host.result.returned": Case(at=4),
    "host.end.returned": Case(at=60, trials=80, keys=_STATE),  # a state, and results since
    "host.gate.opened": Case(at=4),
    "host.state.taken": Case(trials=80, keys=_STATE),
    "host.words.gathered": Case(at=9),
    "agent.order.taken": Case(at=4, spoilt=2),
    "agent.parent.verified": Case(at=2, spoilt=2, keys=_PLAIN),
    "agent.leftovers.set_aside": Case(at=2, spoilt=2, keys={"function": "fail_first"}),
    "agent.room.made": Case(at=4, spoilt=2),
    "agent.session.written": Case(at=4, spoilt=2, keys=_FORKED),
    "agent.worker.told": Case(at=2, spoilt=2),
    "agent.process.started": Case(at=4, spoilt=2),
    "agent.folder.made": Case(at=3, spoilt=2, keys={"function": "train_loudly"}),
    "agent.exit.seen": Case(at=4, spoilt=2),
    "agent.files.digested": Case(at=3, spoilt=2, keys=_PLAIN),
    "agent.end.noted": Case(at=4, spoilt=2),
    "agent.words.sent": Case(at=6, spoilt=2),
    "agent.spool.written": Case(spoilt=2, beside=_BEFORE, head=True),
    "agent.spool.synced": Case(spoilt=2, beside=_BEFORE, head=True),
    "agent.spool.obsolete": Case(spoilt=2, beside=_BEFORE, head=True),
    "weights.data.written": Case(at=2),
    "weights.data.synced": Case(at=2),
    "weights.data.renamed": Case(at=2),
    "weights.manifest.written": Case(at=2),
    "weights.manifest.synced": Case(at=2),
    "weights.manifest.renamed": Case(at=2),
    "trial.weights.announced": Case(at=2),
    "trial.final.reported": Case(at=2, spoilt=1),
    "worker.function.returned": Case(at=2, spoilt=1),
    "trial.leaving": Case(spoilt=1, keys=_FORKED),
}

#: Deaths of a head that takes over from one that does not answer.
TAKE_OVER = ("leadership.lock.replaced",)

#: Deaths of whoever lays an experiment down, and whether there is one to resume then.
CREATION: dict[str, bool] = {
    "create.folder.made": False,
    "config.drafted": False,
    "create.config.written": False,
    "create.journal.made": False,
    "create.experiment.journalled": True,
}

#: Deaths while a setting is changed, and whether the change is made then.
UPDATING: dict[str, bool] = {"config.drafted": False, "head.config.updated": True}
