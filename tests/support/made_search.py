"""A made-up search of any size, as answers of the product's own types: what the web page is shown.

Made by seed in a second for 50,000 trials, which a real store of that size takes minutes for. Which
shapes answers have is the business of ``dispatcher.queries``, ``control`` and ``operations``, whose
types are filled here.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from dispatcher.control.snapshot import HeadSnapshot
from dispatcher.folders.status import ExperimentStatus
from dispatcher.queries import Attempt, MetricPoint, OptimizeMode, TrialSummary, WrittenNote
from dispatcher.queries.summary import ExperimentListing, ExperimentSummary
from dispatcher.sinks.standing import SinkStanding

#: Texts and numbers of a trial that mean harm, or that pages tend to show wrongly.
HOSTILE: dict[str, Any] = {
    "markup": "<img src=x onerror=\"document.title='owned'\"><script>alert(1)</script>",
    "turned": "gnp.\u202egpj.exe\u2066\u200b",
    "escapes": "\u001b[2J\u001b]0;owned\u0007\u0000red",
    "huge": 123456789012345678901234567890,
    "long": "x" * 100_000,
    "<b>name</b>": 1,
    "quote\"'`": "a'b\"c`d",
    "deep": {"a": [{"b": [1, {"c": None}]}]},
}

_NOTHING: dict[str, Any] = {
    "save_path": None, "restore_path": None, "by_hand": False, "failures": 0, "losses": 0,
    "weights_digest": None, "weights_kind": None, "weights_bytes": None, "gate_chain": (),
    "end_reason": None, "exit_code": None, "signal": None, "error": None, "tuner_error": None,
}  # fmt: skip


@dataclass
class MadeTrial:
    """One trial, with the intermediate metrics it has reported."""

    trial: int
    parent: int | None
    generation: int
    parameters: dict[str, Any]
    state: str
    outcome: str | None
    value: float | None
    created: float
    started: float | None
    ended: float | None
    worker: str | None
    curve: list[float] = field(default_factory=list)
    error: str | None = None
    pinned: bool = False
    tags: tuple[str, ...] = ()
    starred: bool = False
    notes: list[str] = field(default_factory=list)

    def summary(self) -> TrialSummary:
        """What ``trial show`` says of it."""
        over = self.state == "ended"
        return TrialSummary(
            **_NOTHING
            | {
                "id": self.trial, "state": self.state, "outcome": self.outcome,
                "success": self.outcome == "succeeded", "value": self.value, "result": self.value,
                "parameters": self.parameters, "parent": self.parent,
                "save_path": f"trials/{self.trial}",
                "restore_path": None if self.parent is None else f"trials/{self.parent}",
                "attempt": int(self.started is not None), "worker": self.worker,
                "weights_digest": "9f3c" * 16 if over and self.value is not None else None,
                "weights_bytes": 4_200_000, "gate": "open" if over else None,
                "end_reason": self.outcome if over else None,
                "exit_code": 0 if self.outcome == "succeeded" else None, "error": self.error,
                "since": self.ended or self.started or self.created, "asked_at": self.created,
                "proposed_at": self.created + 0.2, "started_at": self.started,
                "ended_at": self.ended, "cpu_s": 42.0, "wall_s": 60.0,
                "tags": self.tags, "starred": self.starred,
            }
        )  # fmt: skip

    def row(self) -> dict[str, Any]:
        """Its row of the table, choices by their texts."""
        return {
            "trial": self.trial, "state": self.state, "outcome": self.outcome,
            "parent": self.parent, "generation": self.generation, "value": self.value,
            "created": self.created, "started": self.started, "ended": self.ended,
            "attempts": int(self.started is not None), "reports": len(self.curve),
            "latest": self.curve[-1] if self.curve else None, "worker": self.worker,
            "pinned": int(self.pinned), "tags": " ".join(self.tags) or None,
            "starred": int(self.starred), "notes": len(self.notes), **self.flat(),
        }  # fmt: skip

    def flat(self) -> dict[str, Any]:
        """Parameters as cells: numbers and short texts."""
        cells: dict[str, Any] = {}
        for name, value in self.parameters.items():
            plain = isinstance(value, int | float) and abs(value) < 1 << 53
            text = value if isinstance(value, str) else msgspec.json.encode(str(value)).decode()
            cells[name] = value if plain else text[:200]
        return cells


KINDS = {
    "trial": "integer", "state": "choice", "outcome": "choice", "parent": "integer",
    "generation": "integer", "value": "number", "created": "time", "started": "time",
    "ended": "time", "attempts": "integer", "reports": "integer", "latest": "number",
    "worker": "choice", "pinned": "integer", "tags": "choice", "starred": "integer",
    "notes": "integer",
}  # fmt: skip


class MadeSearch:
    """An evolution in which children inherit; the last trials run or wait.

    Args:
        trials: how many there are.
        seed: of what is drawn.
        hostile: whether one trial has texts that mean harm, and one hundreds of parameters.
        ident: the experiment's id.
    """

    def __init__(
        self,
        trials: int,
        seed: int = 1,
        *,
        hostile: bool = False,
        ident: str = "digits-evolution-k3x9pa",
    ) -> None:
        self.ident = ident
        self.name = "digits-evolution" if not hostile else "digits <i>&amp;\u202e evolution"
        self.draw = random.Random(seed)
        self.began = time.time() - 4_000.0
        self.slots = 64
        self.trials: list[MadeTrial] = []
        self._good: list[int] = []
        self.tags: tuple[str, ...] = ("dataset:digits",)
        self.starred = False
        self.notes: list[str] = []
        self.sinks: list[SinkStanding] = []
        self.why = (
            "NO_FREE_GPU",
            "1 slot is empty: 3 trials are queued, and no worker has a free GPU; "
            "ssh/gpu4 is left out for 42 s since trials 91 and 97 failed there",
        )
        for _ in range(trials):
            self.add()
        if hostile and trials:
            self.trials[0].parameters = {**self.trials[0].parameters, **HOSTILE}
            self.notes = self.trials[0].notes = [HOSTILE["markup"], HOSTILE["turned"]]
            self.trials[0].error = "Traceback:\n<b>bold</b> \u001b[31mred\u001b[0m \u202eturned"
            many = {f"blocks[{n // 6}].gene{n % 6}": n for n in range(600)}
            self.trials[-1].parameters = {**self.trials[-1].parameters, **many}

    def add(self, *, state: str | None = None) -> MadeTrial:
        """Add a trial: over, unless another state is asked for."""
        draw, number = self.draw, len(self.trials)
        parent, generation, value = None, 0, draw.uniform(0.6, 0.72)
        if len(self._good) > 12 and draw.random() > 0.03:
            recent = self._good[-max(48, len(self._good) // 2) :]
            parent = max(draw.sample(recent, 4), key=lambda one: self.trials[one].value or 0.0)
            above = self.trials[parent]
            generation = above.generation + 1
            value = (above.value or 0.0) + (1 - (above.value or 0.0)) * draw.gauss(-0.01, 0.05)
            parameters = dict(above.parameters)
            self._mutate(parameters)
        else:
            parameters = {
                "lr": 10 ** draw.uniform(-4, -1), "width": draw.choice([16, 32, 64, 128]),
                "depth": draw.randint(2, 9), "dropout": round(draw.uniform(0, 0.5), 3),
                "optimizer": draw.choice(["adam", "sgd", "lion"]),
                **{f"blocks[{n}].op": draw.choice(["conv3", "sep5", "skip"]) for n in range(4)},
                **{f"blocks[{n}].kernel": draw.choice([3, 5, 7]) for n in range(2)},
            }  # fmt: skip
        busy = [one.trial for one in self.trials[-60:] if one.state == "running"]
        if state == "blocked" and busy:
            parent = busy[number % min(3, len(busy))]
        slot = number / max(1, self.slots)
        created = round(self.began + slot * 22 + draw.uniform(0, 3), 3)
        if parent is not None:
            created = max(created, (self.trials[parent].ended or created) + 0.04)
        ended = round(created + draw.uniform(12, 30), 3)
        outcome = "succeeded"
        if draw.random() < 0.06:
            outcome = draw.choice(["failed", "failed", "timed out", "lost", "killed"])
        good = outcome == "succeeded"
        curve = [value * (1 - 0.5 * 0.6**step) for step in range(1, 9)] if good else []
        one = MadeTrial(
            number, parent, generation, parameters, state or "ended", None if state else outcome,
            value if good and not state else None, created,
            None if state in ("queued", "blocked", "held") else round(created + 0.4, 3),
            None if state else ended, f"ssh/gpu{number % 4 + 1}", curve,
            None if good or outcome != "failed" else "RuntimeError: CUDA out of memory",
        )  # fmt: skip
        self.trials.append(one)
        if good and not state:
            self._good.append(number)
        return one

    def _mutate(self, genes: dict[str, Any]) -> None:
        draw = self.draw
        match draw.choice(["lr", "width", "depth", "dropout", "block"]):
            case "lr":
                genes["lr"] = min(0.3, max(1e-5, genes["lr"] * 10 ** draw.uniform(-0.4, 0.4)))
            case "width":
                genes["width"] = draw.choice([16, 32, 64, 128])
            case "depth":
                genes["depth"] = max(1, min(12, genes["depth"] + draw.choice([-1, 1])))
            case "dropout":
                genes["dropout"] = round(draw.uniform(0, 0.5), 3)
            case _:
                genes[f"blocks[{draw.randrange(4)}].op"] = draw.choice(["conv3", "sep5", "skip"])

    # -- answers -----------------------------------------------------------------------------

    def best(self) -> MadeTrial | None:
        """The trial with the greatest value."""
        found = [one for one in self.trials if one.value is not None]
        return max(found, key=lambda one: one.value or 0.0) if found else None

    def listing(self, status: str = "running") -> ExperimentListing:
        """Its line in the list of experiments."""
        best = self.best()
        return ExperimentListing(
            id=self.ident, name=self.name, folder=f"/home/me/experiments/{self.ident}",
            status=ExperimentStatus(status), created_at=self.began, last_event_at=time.time(),
            trials=len(self.trials), best_trial=best.trial if best else None,
            best_value=best.value if best else None, mode=OptimizeMode.MAXIMIZE,
            tuner="Evolution", dataset="<b>digits</b>" if "<" in self.name else "digits", seed=1,
            tags=self.tags, starred=self.starred, cpu_s=42.0 * len(self.trials),
        )  # fmt: skip

    def tally(self, name: str) -> dict[str, int]:
        """Counts of a word of trials."""
        found: dict[str, int] = {}
        for one in self.trials:
            word = getattr(one, name)
            if word is not None:
                found[word] = found.get(word, 0) + 1
        return found

    def standing(self, *, head: bool = True) -> dict[str, Any]:
        """What ``status`` answers."""
        best = self.best()
        ended = sum(one.state == "ended" for one in self.trials)
        summary = ExperimentSummary(
            id=self.ident, name=self.name, folder=f"/home/me/experiments/{self.ident}",
            status=ExperimentStatus("running" if head else "interrupted"), phase_reason="",
            mode=OptimizeMode.MAXIMIZE, slots=self.slots, max_trials=len(self.trials) + 3_588,
            pid=4711, host="workstation", epoch=3, created_at=self.began,
            last_event_at=time.time(), events=len(self.trials) * 7, trials=len(self.trials),
            submitted=len(self.trials), ended=ended, states=self.tally("state"),
            outcomes=self.tally("outcome"), best=best.summary() if best else None,
            cpu_s=42.0 * len(self.trials), wall_s=60.0 * len(self.trials), weights_bytes=10**9,
            rate=1.4 if head else None, time_left_s=2_580.0 if head else None,
            tuner="Evolution", dataset="digits", tags=self.tags, starred=self.starred,
            notes=noted(self.notes),
        ).to_json()  # fmt: skip
        sinks = [one.to_json() for one in self.sinks]
        return {"experiment": summary, "head": self.snapshot() if head else None, "sinks": sinks}

    def snapshot(self) -> dict[str, Any]:
        """What a head would answer; it is one by the product's own type."""
        counts = self.tally("state")
        names = ("open", "blocked", "parked", "held", "queued", "running", "backoff", "delivering")
        running = [one for one in self.trials if one.state == "running"]
        waiting = [one for one in self.trials if one.state == "blocked"]
        now = time.time()
        gib = 1 << 30
        value = {
            "phase": "running", "reason": "", "epoch": 3, "slots": self.slots, "lookahead": 64,
            "max_trials": len(self.trials) + 3_588, "max_duration_s": None,
            "active_s": now - self.began, "submitted": len(self.trials),
            "ended": sum(one.state == "ended" for one in self.trials),
            "counts": {name: counts.get(name, 0) for name in names},
            "running": [
                {"trial": one.trial, "attempt": 1, "state": "running", "worker": one.worker,
                 "parent": one.parent, "for_s": now - (one.started or now),
                 "last": str(one.curve[-1]) if one.curve else None, "cpu": 98.0,
                 "rss_bytes": gib, "devices": ["gpu0"], "gpu_bytes": 3 * gib}
                for one in running
            ],
            "waiting": [
                {"trial": one.trial, "mode": "all", "place": "tuner.py:81", "for": [one.parent],
                 "for_s": now - one.created}
                for one in waiting if one.parent is not None
            ],
            "open": [{"trial": len(self.trials), "for_s": 0.4}],
            "workers": [
                {"name": f"ssh/gpu{n}", "slots": 16, "alive": n != 4,
                 "busy": sum(one.worker == f"ssh/gpu{n}" for one in running),
                 "waiting": "left out for 42 s since trials 91 and 97 failed" if n == 4 else ""}
                for n in range(1, 5)
            ],
            "why": {"cause": self.why[0], "text": self.why[1]},
            "devices": [
                {"worker": f"ssh/gpu{n}", "id": f"gpu{k}", "index": k, "name": "NVIDIA A100 40GB",
                 "memory_bytes": 40 * gib, "used_bytes": (9 + 7 * k) * gib,
                 "utilization": 92.0 - 20 * k, "watts": 310.0, "celsius": 64.0, "trouble": "",
                 "old_s": 1.0, "trials": [one.trial for one in running[k :: 4 * n]][:2]}
                for n in range(1, 4) for k in range(2)
            ],
        }  # fmt: skip
        HeadSnapshot.of(value)
        return value

    def table(self, cursor: str) -> dict[str, Any]:
        """All trials in columns."""
        rows = [one.row() for one in self.trials]
        names = dict.fromkeys(KINDS) | dict.fromkeys(name for row in rows for name in row)
        columns = []
        for name in names:
            values = [row.get(name) for row in rows]
            kind = KINDS.get(name) or _kind(values)
            group = "parameter" if name not in KINDS else "trial"
            column = {"name": name, "kind": kind, "group": group, "values": values}
            if kind == "choice":
                choices = list(dict.fromkeys(str(one) for one in values if one is not None))
                code = {text: at for at, text in enumerate(choices)}
                column["choices"] = choices
                column["values"] = [None if one is None else code[str(one)] for one in values]
            columns.append(column)
        return {
            "experiment": self.ident, "cursor": cursor, "count": len(rows), "left_out": 0,
            "columns": columns,
        }  # fmt: skip

    def lives(self) -> dict[str, Any]:
        """What ``/history`` answers: each trial was proposed 0.2 s after it was asked for."""
        ran = [one for one in self.trials if one.started is not None]
        return {
            "experiment": self.ident, "began": self.trials[0].created if self.trials else None,
            "until": time.time(), "trials": [one.trial for one in self.trials],
            "proposed": [one.created + 0.2 for one in self.trials],
            "spans": {
                "trial": [one.trial for one in ran], "began": [one.started for one in ran],
                "ended": [one.ended for one in ran],
            },
            "notes": [],
        }  # fmt: skip

    def bands(self) -> dict[str, Any]:
        """What the curves of its first trials have in common."""
        curves = [one.curve for one in self.trials[:400] if one.curve]
        steps = list(range(8)) if len(curves) > 2 else []
        parts = [statistics.quantiles([one[step] for one in curves], n=10) for step in steps]
        return {
            "trials": len(self.trials), "used": len(curves), "steps": steps,
            "low": [one[0] for one in parts], "middle": [one[4] for one in parts],
            "high": [one[8] for one in parts],
        }  # fmt: skip

    def slots_then(self) -> dict[str, Any]:
        """An hour of slots: busy, then without a GPU, then waiting for parents."""
        until = time.time()
        begin = until - 3_600
        causes = [("ALL_SLOTS_BUSY", "all 64 slots are busy"),
                  ("NO_FREE_GPU", "3 trials are queued: no worker has a free GPU"),
                  ("LOOKAHEAD_FULL", "64 requests wait: 12 wait for 88")]  # fmt: skip
        busy = [(64.0, 61.0, 50.0)[at // 300 % 3] for at in range(3_600)]
        return {
            "experiment": self.ident, "title": self.ident, "cursor": "", "notes": [],
            "begin": begin, "until": until, "each_s": 1.0, "busy": busy, "slots": [64.0] * 3_600,
            "busy_share": sum(busy) / 64 / 3_600,
            "idle": [{"cause": "LOOKAHEAD_FULL", "share": 14 / 192},
                     {"cause": "NO_FREE_GPU", "share": 3 / 192}],
            "reasons": [{"begin": begin + 300 * at, "end": begin + 300 * (at + 1),
                         "cause": causes[at % 3][0], "text": causes[at % 3][1]}
                        for at in range(12)],
        }  # fmt: skip

    def tensors(self, number: int) -> dict[str, Any]:
        """What ``/tensors`` answers: a stem that is the first ancestor's, a head that is new."""
        one = self.trials[number]
        line = [one]
        while line[-1].parent is not None:
            line.append(self.trials[line[-1].parent])
        wanted = [
            ("stem.weight", "unchanged" if one.parent is not None else "new", line[-1], 864),
            ("stem.bias", "changed", one, 64),
            ("<b>head</b>.weight", "resized", one, 40_960),
        ]
        found = [
            {
                "name": name, "group": name.rpartition(".")[0], "change": change,
                "dtype": "float32", "shape": [size // 4], "bytes": size, "origin": who.trial,
                "generations": line.index(who), "stored": who.trial,
                "before": "float32 7" if change == "resized" else "", "was": "",
            }
            for name, change, who, size in wanted
        ]  # fmt: skip
        groups = [
            {"name": each["group"], "tensors": 1, "bytes": each["bytes"],
             "changes": {each["change"]: {"tensors": 1, "bytes": each["bytes"]}},
             "origins": [each["origin"]]}
            for each in found
        ]  # fmt: skip
        committed = one.value is not None
        return {
            "experiment": self.ident, "trial": number, "parent": one.parent,
            "why": "" if committed else f"trial {number} has committed no weights",
            "count": 3, "bytes": 41_888,
            "changes": {each["change"]: {"tensors": 1, "bytes": each["bytes"]} for each in found},
            "ancestors": [
                {"trial": each["origin"], "generations": each["generations"], "tensors": 1,
                 "bytes": each["bytes"]} for each in found
            ],
            "groups": groups if committed else [], "tensors": found if committed else [],
            "gone": ["tail.weight"] if one.parent is not None else [], "notes": [],
        }  # fmt: skip

    def shown(self, number: int) -> dict[str, Any]:
        """What ``trial show`` answers."""
        one = self.trials[number]
        attempt = Attempt(
            1,
            one.worker,
            4712,
            one.started,
            one.ended,
            one.outcome,
            0,
            None,
            one.error,
            42.0,
            60.0,
        )
        points = [
            MetricPoint(1, at, (one.started or 0) + at, False, True, value, value)
            for at, value in enumerate(one.curve)
        ]
        if one.value is not None:
            points.append(MetricPoint(1, 99, one.ended or 0, True, True, one.value, one.value))
        return {
            "experiment": self.ident, "trial": one.summary().to_json(),
            "attempts": [attempt.to_json()] if one.started else [],
            "metrics": [point.to_json() for point in points],
            "children": [each.trial for each in self.trials if each.parent == number],
            "notes": [note.to_json() for note in noted(one.notes)],
        }  # fmt: skip


def noted(texts: list[str]) -> tuple[WrittenNote, ...]:
    """Notes with these texts."""
    return tuple(WrittenNote(at + 1, 1_760_000_000.0 + at, text) for at, text in enumerate(texts))


def _kind(values: list[Any]) -> str:
    there = [one for one in values if one is not None]
    if all(isinstance(one, int) for one in there):
        return "integer"
    if all(isinstance(one, int | float) for one in there):
        return "number"
    return "choice" if len({str(one) for one in there}) <= 256 else "text"
