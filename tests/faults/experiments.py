"""Small experiments with real processes that die where a plan says, and their judge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from dispatcher.control.client import HeadClient
from dispatcher.core import events as e
from dispatcher.errors import DispatcherError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.store.verify import verify
from dispatcher.store.weights_ledger import SqliteWeightsLedger
from tests.support.checker import check_journal, read_store
from tests.support.processes import end_processes_of, left_of
from trial_runtime import facts, failpoints
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.fact_wire import decode_fact

ROOT = Path(__file__).parents[2]
CODE = Path(__file__).parent / "code"

#: A bound on a hang of one head.
HEAD_S = 240.0


class Experiment:
    """One experiment below ``base``; ``plan`` is a value of ``BEQUEATH_FAILPOINTS``."""

    def __init__(self, base: Path, *, trials: int = 10, **keys: Any) -> None:
        base.mkdir(exist_ok=True)
        self.base = base
        self.trials = trials
        self.told = base / "told"
        self.told.mkdir()
        self.struck = base / "struck"
        self.struck.mkdir()
        self.keys = keys
        # Set by create, or by whoever creates it otherwise. Until then it is no folder: a journal
        # that is opened where there is none would be made, in the checkout.
        self.folder = base / "not laid down"

    def values(self) -> dict[str, Any]:
        """The experiment file."""
        keys = dict(self.keys)
        tuner, function = keys.pop("tuner", "Told"), keys.pop("function", "train")
        module = keys.pop("module", "told")
        reuse = keys.pop("reuse", "inProcess")
        return {
            "experimentName": "faults",
            "experimentWorkingDirectory": str(self.base),
            "tuner": {
                "className": f"{module}:{tuner}",
                "codeDirectory": str(CODE),
                "classArgs": {"folder": str(self.told)},
            },
            "trialFunction": f"{module}:{function}",
            "trialCodeDirectory": str(CODE),
            "trialConcurrency": 2,
            "maxTrialNumber": self.trials,
            "retryBackoff": 0,
            "trialRetries": 2,
            "debug": True,
            "seed": 1,
            "trainingService": {"platform": "local", "reuseMode": reuse, "preload": ["numpy"]},
            **keys,
        }

    def create(self) -> None:
        """Lay it down, here."""
        self.folder = create(build_experiment(self.values()))

    def start(self, plan: str = "", *words: str) -> subprocess.Popen[bytes]:
        """A head in a process of its own, which gets the further ``words``; those that it
        starts find the plan as well."""
        with (self.base / "stderr").open("wb") as stderr:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "dispatcher.background", str(self.folder), *words],
                env=self.environment(plan),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )

    def environment(self, plan: str) -> dict[str, str]:
        """Ours, with a plan that strikes once in all."""
        return {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            failpoints.VARIABLE: plan,
            failpoints.STRUCK_VARIABLE: str(self.struck),
        }

    def lead(self, plan: str = "", *words: str) -> int:
        """One head, from its start to its end: its exit code."""
        head = self.start(plan, *words)
        try:
            return head.wait(HEAD_S)
        finally:
            head.kill()
            head.wait()

    def lead_to_the_end(self, *plans: str) -> int:
        """Heads one after another, each with the next plan (the last one from then on), until
        one ends of itself; how many were killed."""
        killed = 0
        while True:
            code = self.lead(plans[min(killed, len(plans) - 1)] if plans else "")
            if code != -signal.SIGKILL:
                assert code == 0, self.stderr
                return killed
            killed += 1
            assert killed <= 5, "each head dies"

    def answers(self) -> bool:
        """Whether a head leads it and says so."""
        try:
            with HeadClient(self.folder, timeout_s=2.0) as client:
                client.ask("snapshot")
        except DispatcherError:
            return False
        return True

    def has_struck(self, place: str) -> bool:
        """Whether the plan's part of this name did what it says."""
        return (self.struck / place).exists()

    @property
    def stderr(self) -> str:
        """What the last head said."""
        return (self.base / "stderr").read_text()

    @property
    def events(self) -> list[e.Event]:
        """The journal, read without the store's own code."""
        return [row.event for row in read_store(self.folder / "journal.sqlite")]

    def calls(self) -> list[tuple[str, int, object]]:
        """What the tuner's newest life was told, restored calls included."""
        newest = max(self.told.glob("calls-*.jsonl"))
        return [tuple(json.loads(line)) for line in newest.read_text().splitlines()]

    def judge(self, *, spoilt: int = 0) -> None:
        """Every trial is accounted for, each result counts once, nothing is left.

        ``spoilt``: so many trials at most may have died between their result and their end,
        which is no success and is not repeated.
        """
        rows = read_store(self.folder / "journal.sqlite")
        calls = self.calls()
        assert check_journal(rows, calls, over=True) == []
        events = [row.event for row in rows]
        ends = sorted(x.trial for x in events if isinstance(x, e.EndDelivered))
        assert ends == list(range(self.trials))
        assert sorted(number for what, number, _ in calls if what == "result") == ends
        assert sorted(number for what, number, _ in calls if what == "end") == ends
        assert sum(not good for what, _, good in calls if what == "end") <= spoilt
        assert self._generations(calls) == self._expected(events, ends)
        assert left_of(self.folder) == []
        verification = verify(self.folder / "journal.sqlite")
        assert verification.ok, verification
        self._judge_removals()

    def _judge_removals(self) -> None:
        """What was to be removed is gone, and written down as gone."""
        ledger = SqliteWeightsLedger.open(self.folder / "journal.sqlite")
        try:
            removals = ledger.removals()
        finally:
            ledger.close()
        for removal in removals:
            assert removal.removed_at is not None, removal
            assert not (self.folder / "weights" / removal.path / "manifest.json").exists(), removal

    def spooled_ends(self) -> list[tuple[int, int]]:
        """The attempts that have ended by what lies in the agent's spool."""
        found = Outbox(str(self.folder / "spool-local")).next_frame()
        words = [decode_fact(raw) for raw in (found.messages if found is not None else [])]
        return [
            (word.trial, word.attempt) for word in words if isinstance(word, facts.AttemptEnded)
        ]

    def _generations(self, calls: list[tuple[str, int, object]]) -> dict[int, float]:
        return {number: json.loads(str(value)) for what, number, value in calls if what == "result"}

    def _expected(self, events: list[e.Event], ends: list[int]) -> dict[int, float]:
        """One more than the parent's: a child that began on torn or foreign weights differs."""
        found: dict[int, float] = {}
        parents = {
            x.trial: json.loads(x.parameters).get("parent")
            for x in events
            if isinstance(x, e.Proposed)
        }
        for trial in ends:
            parent = parents[trial]
            found[trial] = 1.0 + (found[parent] if parent is not None else 0.0)
        return found

    def close(self) -> None:
        """Nothing may be left, whatever the test did."""
        if self.folder.is_dir():
            end_processes_of(self.folder)
