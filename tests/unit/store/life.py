"""A life to write down: the real core, driven by hand, journalled batch by batch."""

from __future__ import annotations

from typing import Self

from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Trial, Weights
from dispatcher.core.settings import Settings
from dispatcher.ports import Journal, JournalEntry

HOST = WorkerId("local")
DIGEST = "d" * 64


class Life:
    """Applies events and appends each call's as one batch; time grows by a second an event."""

    def __init__(self, journal: Journal, **settings: object) -> None:
        chosen = Settings(**{"slots": 2, "lookahead": 8, **settings})  # type: ignore[arg-type]
        self.journal = journal
        self.now = 1000.0
        self.state = core.new_state(chosen)
        self.say(e.ExperimentCreated(chosen), e.HeadStarted(1))

    @classmethod
    def of(cls, journal: Journal, state: core.State) -> Self:
        """The life of an experiment that is there."""
        life = cls.__new__(cls)
        life.journal, life.state, life.now = journal, state, max(1000.0, state.now)
        return life

    def say(self, *events: e.Event, durable: bool = True) -> int:
        """One batch: apply, then append."""
        entries = []
        for event in events:
            self.now += 1.0
            step = core.apply(self.state, event, self.now)
            entries.append(JournalEntry(self.now, event, step.counted))
        touched: list[Trial] = [self.state.trials[t] for t in self.state.dirty]
        self.state.dirty.clear()
        return self.journal.append(entries, touched, durable=durable)

    def begin(self) -> None:
        """Worker and tuner host come; requests open."""
        self.say(e.WorkerJoined(HOST, 2))
        self.say(e.TunerHostReady())

    def propose(self, trial: int, parent: int | None = None, parameters: str = "") -> None:
        """The tuner answers a request."""
        restore = None if parent is None else f"t/{parent}"
        self.say(
            e.Proposed(TrialId(trial), parameters or f'{{"x":{trial}}}', f"t/{trial}", restore)
        )

    def run(self, trial: int, value: str = "0.5", attempt: int = 1) -> None:
        """An attempt starts, reports two metrics, a final and its weights, and exits with 0."""
        t = TrialId(trial)
        self.say(e.AttemptStarted(t, attempt, 4000 + trial))
        self.say(
            e.MetricReported(t, attempt, 1, "0.1"),
            e.MetricReported(t, attempt, 2, "0.2"),
            durable=False,
        )
        self.say(
            e.FinalReported(t, attempt, 3, value),
            e.WeightsPublished(t, attempt, 4, Weights(DIGEST, "bequeath", 1234)),
        )
        self.exit(trial, attempt)

    def exit(
        self, trial: int, attempt: int = 1, reason: EndReason = EndReason.FINISHED, text: str = ""
    ) -> None:
        """The attempt's process ends."""
        code = 0 if reason is EndReason.FINISHED else 1
        self.say(
            e.AttemptEnded(
                TrialId(trial), attempt, reason, exit_code=code, text=text, cpu_s=1.5, wall_s=2.0
            )
        )

    def deliver(self, trial: int, error: str = "") -> None:
        """The tuner takes the result (if there is one) and the end."""
        t = TrialId(trial)
        if self.state.trials[t].result is not None:
            self.say(e.ResultDelivered(t, error))
        self.say(e.EndDelivered(t))

    def whole(self, trial: int, parent: int | None = None, value: str = "0.5") -> None:
        """From the answer to the end."""
        self.propose(trial, parent)
        self.run(trial, value)
        self.deliver(trial)
