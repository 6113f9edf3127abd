"""The core by hand: events in, actions out, every invariant checked after each."""

from __future__ import annotations

from typing import Any

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Trial, Weights
from dispatcher.core.settings import Settings, StallPolicy, TunerErrorPolicy
from dispatcher.ports import JournalEntry, JournalRow
from dispatcher.store.early_stops import recall
from tests.support.memory_journal import MemoryJournal
from tests.support.replaying import differences
from tests.support.timely import overslept

HOST = WorkerId("local")


def weights(trial: int, attempt: int = 1) -> Weights:
    return Weights(f"{trial}.{attempt}", "bequeath", 10)


class Scene:
    """An experiment with a ready tuner host and one worker, unless told otherwise.

    Words are short: ``propose(3, parent=1)``, ``run(3)``, ``exit(3)``, ``deliver(3)``; each
    returns the actions that followed. A second passes before each event.
    """

    def __init__(self, *, begin: bool = True, workers: int | None = None, **settings: Any) -> None:
        for name, kind in (("on_tuner_error", TunerErrorPolicy), ("on_stall", StallPolicy)):
            if name in settings:
                settings[name] = kind(settings[name])
        self.settings = Settings(**{"slots": 2, "lookahead": 8, **settings})
        self.state = core.new_state(self.settings)
        self.now = 1000.0
        self.rows: list[JournalRow] = []
        self.counted = True
        self._metrics = MemoryJournal()
        if begin:
            self.say(e.HeadStarted(1))
            self.say(e.WorkerJoined(HOST, self.settings.slots if workers is None else workers))
            self.say(e.TunerHostReady())

    def say(self, *events: e.Event, after: float = 1.0) -> list[a.Action]:
        """Apply the events; all actions that followed. After each the core must know when it has
        to be woken."""
        out: list[a.Action] = []
        if self.state.trace is None:
            self.state.trace = []
        for event in events:
            self.now += after
            step = core.apply(self.state, event, self.now)
            self.rows.append(JournalRow(len(self.rows) + 1, self.now, event))
            core.check(self.state)
            late = overslept(self.state)
            assert not late, late
            self.counted = step.counted
            if isinstance(event, e.MetricReported):
                entry = JournalEntry(self.now, event, step.counted)
                self._metrics.append([entry], [], durable=False)
            out.extend(step.actions)
        return out

    def wait_until(self, moment: float) -> list[a.Action]:
        """A tick at that moment."""
        return self.say(e.Tick(), after=moment - self.now)

    def tick(self) -> list[a.Action]:
        """Time jumps to the next deadline."""
        due = core.next_deadline(self.state)
        assert due is not None, "nothing is due"
        return self.wait_until(due)

    def trial(self, number: int) -> Trial:
        return self.state.trials[TrialId(number)]

    # -- the tuner -------------------------------------------------------------------------

    def propose(
        self, trial: int, parent: int | None = None, *, saves: bool = True
    ) -> list[a.Action]:
        save = f"t/{trial}" if saves else None
        restore = None if parent is None else f"t/{parent}"
        return self.say(e.Proposed(TrialId(trial), f'{{"x":{trial}}}', save, restore))

    def wait(self, trial: int, *parents: int, mode: str = "all", ticket: int = 1) -> list[a.Action]:
        whom = tuple(TrialId(p) for p in parents)
        return self.say(e.WaitStarted(TrialId(trial), ticket, whom, mode))

    def refuse(self, trial: int, kind: e.RequestEnd, **more: Any) -> list[a.Action]:
        return self.say(e.RequestFailed(TrialId(trial), kind, **more))

    def not_now(self, trial: int) -> list[a.Action]:
        return self.refuse(trial, e.RequestEnd.NOT_NOW)

    def result(self, trial: int, error: str = "") -> list[a.Action]:
        return self.say(e.ResultDelivered(TrialId(trial), error))

    def end(self, trial: int, error: str = "") -> list[a.Action]:
        return self.say(e.EndDelivered(TrialId(trial), error))

    def deliver(self, trial: int) -> list[a.Action]:
        """Result, if there is one, and end; the actions after the end."""
        if self.trial(trial).result is not None and not self.trial(trial).result_delivered:
            self.result(trial)
        return self.end(trial)

    # -- the worker ------------------------------------------------------------------------

    def started(self, trial: int, attempt: int = 1) -> list[a.Action]:
        return self.say(e.AttemptStarted(TrialId(trial), attempt, 7))

    def metric(self, trial: int, seq: int, value: str, attempt: int = 1) -> list[a.Action]:
        return self.say(e.MetricReported(TrialId(trial), attempt, seq, value))

    def final(self, trial: int, value: str = "0.5", attempt: int = 1) -> list[a.Action]:
        return self.say(e.FinalReported(TrialId(trial), attempt, 10, value))

    def publish(self, trial: int, attempt: int = 1) -> list[a.Action]:
        return self.say(e.WeightsPublished(TrialId(trial), attempt, 9, weights(trial, attempt)))

    def exit(
        self,
        trial: int,
        reason: EndReason = EndReason.FINISHED,
        attempt: int = 1,
        *,
        files: bool = False,
    ) -> list[a.Action]:
        found = weights(trial, attempt) if files else None
        return self.say(e.AttemptEnded(TrialId(trial), attempt, reason, weights=found))

    def run(self, trial: int, value: str = "0.5", attempt: int = 1) -> list[a.Action]:
        """A whole attempt that goes well; the actions after its exit."""
        self.started(trial, attempt)
        self.publish(trial, attempt)
        self.final(trial, value, attempt)
        return self.exit(trial, attempt=attempt)

    def whole(self, trial: int, parent: int | None = None) -> list[a.Action]:
        """A request's answer, its attempt and its delivery."""
        self.propose(trial, parent)
        self.run(trial)
        return self.deliver(trial)

    # -- judgement -------------------------------------------------------------------------

    def replayed(self) -> core.State:
        """The state that a new head would find: metrics are not in its journal, the newest of each
        attempt that runs is beside it."""
        state = core.new_state(self.settings)
        for _, at, event in self.rows:
            if e.is_journalled(event):
                core.apply(state, event, at)
        recall(self._metrics, state)
        return state

    def assert_replays(self) -> None:
        found = differences(self.state, self.replayed())
        assert not found, found


def of_kind(actions: list[a.Action], kind: type) -> list[Any]:
    """Only the actions of this class."""
    return [x for x in actions if isinstance(x, kind)]
