"""Answers of queries: frozen, typed, and ready for JSON.

Times are seconds since the epoch (UTC), durations seconds, sizes bytes. ``value`` is the
number in the result delivered to the tuner, by which trials are compared.
"""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import msgspec

from dispatcher.queries.as_html import table

#: Rows of a table of one trial in a notebook.
MOST_SHOWN: Final = 40

#: Parameters by which a trial finds and leaves weights, which nobody compares.
WEIGHT_PATHS: Final = frozenset({"save_path", "restore_path"})


class OptimizeMode(StrEnum):
    """The direction in which values are better."""

    MAXIMIZE = "maximize"
    MINIMIZE = "minimize"

    @classmethod
    def of(cls, word: object) -> OptimizeMode:
        """Read it from an experiment file's value; maximize unless it is ``minimize``."""
        return cls.MINIMIZE if word == cls.MINIMIZE else cls.MAXIMIZE

    def better(self, value: float, than: float | None) -> bool:
        """Whether ``value`` improves on ``than`` (None: on nothing)."""
        if than is None:
            return True
        return value > than if self is OptimizeMode.MAXIMIZE else value < than

    @property
    def order(self) -> str:
        """The SQL keyword for best first."""
        return "DESC" if self is OptimizeMode.MAXIMIZE else "ASC"


@dataclass(frozen=True, slots=True)
class Record:
    """Base of all answers."""

    def to_json(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers; keys are the attributes' names."""
        return {field.name: plain(getattr(self, field.name)) for field in dataclasses.fields(self)}


def plain(value: Any) -> Any:
    """Return the value with records, enums and tuples made plain."""
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


_decoder: Final = msgspec.json.Decoder()

#: Levels of lists and objects in a value; one with more is shown as its text.
_MOST_LEVELS: Final = 64


def json_value(text: str | None) -> Any:
    """Decode a JSON text; return the text itself if it is none, or nests too deeply to be shown."""
    if not text:
        return None
    try:
        value = _decoder.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    if len(text) <= _MOST_LEVELS or text.count("[") + text.count("{") <= _MOST_LEVELS:
        return value
    return text if _is_deeper(value, _MOST_LEVELS) else value


def _is_deeper(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return False
    return levels == 0 or any(_is_deeper(each, levels - 1) for each in value)


#: The columns that :meth:`TrialSummary.of` takes, in their order.
SUMMARY_COLUMNS: Final = (
    "id", "state", "outcome", "success", "number", "told", "final", "parameters", "parent",
    "save_path", "restore_path", "by_hand", "attempt", "failures", "losses", "worker",
    "weights_digest", "weights_kind", "weights_nbytes", "verdict", "verdict_chain", "end_reason",
    "exit_code", "signal", "error", "tuner_error", "since", "asked_at", "proposed_at", "started_at",
    "ended_at", "cpu_s", "wall_s", "tags", "starred",
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class TrialSummary(Record):
    """One trial in a list."""

    id: int
    state: str
    outcome: str | None
    success: bool
    value: float | None
    result: Any  # delivered to the tuner, else the one reported
    parameters: Any  # an object; of tuners written for NNI any JSON value
    parent: int | None
    save_path: str | None
    restore_path: str | None
    by_hand: bool
    attempt: int
    failures: int
    losses: int
    worker: str | None
    weights_digest: str | None
    weights_kind: str | None
    weights_bytes: int | None
    gate: str | None  # None: not decided; "open"; else why children may not inherit
    gate_chain: tuple[int, ...]
    end_reason: str | None
    exit_code: int | None
    signal: int | None
    error: str | None
    tuner_error: str | None
    since: float
    asked_at: float | None
    proposed_at: float | None
    started_at: float | None
    ended_at: float | None
    cpu_s: float
    wall_s: float
    tags: tuple[str, ...] = ()  # given by people, in order, as is the star
    starred: bool = False

    @property
    def named_parameters(self) -> dict[str, Any]:
        """The parameters by name; what is no object is called ``value``."""
        known = self.parameters
        return known if isinstance(known, dict) else {"value": known}

    def __repr__(self) -> str:
        """Short, for notebooks; all of it by :meth:`to_json`."""
        result = "" if self.value is None else f", value {self.value:.6g}"
        parent = "" if self.parent is None else f", parent {self.parent}"
        return f"<Trial {self.id} {self.outcome or self.state}{result}{parent}>"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        rows = [
            ("result", self.value),
            ("state", self.outcome or self.state),
            ("parent", self.parent),
            ("error", self.error),
            *self.named_parameters.items(),
        ]
        shown = [row for row in rows if row[1] is not None]
        return table(shown[:MOST_SHOWN], caption=f"trial {self.id}")

    @property
    def over(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state == "ended"

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> TrialSummary:
        """Make it from a row of ``trials`` with what people gave it (``notes.given_to``)."""
        by_name = dict(zip(row.keys(), row, strict=True))  # a row looks names up one by one
        return cls.of(by_name[name] for name in SUMMARY_COLUMNS)

    @classmethod
    def of(cls, columns: Iterable[Any]) -> TrialSummary:
        """Make it from :data:`SUMMARY_COLUMNS`. A table has ten thousand."""
        (
            id, state, outcome, success, number, told, final, parameters, parent, save_path,
            restore_path, by_hand, attempt, failures, losses, worker, digest, kind, nbytes, verdict,
            chain, end_reason, exit_code, signal, error, tuner_error, since, asked_at, proposed_at,
            started_at, ended_at, cpu_s, wall_s, tags, starred,
        ) = columns  # fmt: skip
        values = json_value(parameters)
        return cls(
            id, state, outcome, bool(success), number, json_value(final if told is None else told),
            {} if values is None else values, parent, save_path, restore_path, bool(by_hand),
            attempt, failures, losses, worker, digest, kind, nbytes,
            "open" if verdict == "" else verdict, tuple(json_value(chain) or ()), end_reason,
            exit_code, signal, error, tuner_error, since, asked_at, proposed_at, started_at,
            ended_at, cpu_s, wall_s, () if tags == "[]" else tuple(sorted(json_value(tags))),
            bool(starred),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Attempt(Record):
    """One try to run a trial. ``end_reason`` is ``lost`` if its end was not seen."""

    number: int
    worker: str | None
    pid: int | None
    started_at: float | None
    ended_at: float | None
    end_reason: str | None
    exit_code: int | None
    signal: int | None
    text: str | None
    cpu_s: float | None
    wall_s: float | None

    @classmethod
    def from_row(cls, row: sqlite3.Row, of: TrialSummary) -> Attempt:
        """Make it from a row of ``attempts``, and its trial as of the same moment."""
        running = of.state == "running" and row["attempt"] == of.attempt
        unseen = row["ended_at"] is None and not running
        return cls(
            number=row["attempt"],
            worker=row["worker"],
            pid=row["pid"],
            started_at=row["started_at"],
            ended_at=row["ended_at"],
            end_reason="lost" if unseen else row["end_reason"],
            exit_code=row["exit_code"],
            signal=row["signal"],
            text=row["text"],
            cpu_s=row["cpu_s"],
            wall_s=row["wall_s"],
        )


@dataclass(frozen=True, slots=True)
class MetricPoint(Record):
    """One reported metric. Those not ``counted`` came from a superseded attempt."""

    attempt: int
    seq: int
    at: float
    final: bool
    counted: bool
    value: Any
    number: float | None

    @classmethod
    def from_row(cls, row: sqlite3.Row) -> MetricPoint:
        """Make it from a row of ``metrics``."""
        return cls(
            attempt=row["attempt"],
            seq=row["seq"],
            at=row["at"],
            final=bool(row["final"]),
            counted=bool(row["counted"]),
            value=json_value(row["value"]),
            number=row["number"],
        )


@dataclass(frozen=True, slots=True)
class WrittenNote(Record):
    """A text that somebody wrote beside a trial or an experiment; plain, with line breaks."""

    number: int
    at: float
    text: str


@dataclass(frozen=True, slots=True, repr=False)
class TrialDetail(Record):
    """All there is about one trial."""

    trial: TrialSummary
    attempts: tuple[Attempt, ...]
    metrics: tuple[MetricPoint, ...]
    children: tuple[int, ...]
    notes: tuple[WrittenNote, ...] = ()

    def __repr__(self) -> str:
        """Short, for notebooks; all of it by :meth:`to_json`."""
        counts = f"attempts: {len(self.attempts)}, metrics: {len(self.metrics)}"
        return f"{repr(self.trial)[:-1]}, {counts}, children: {len(self.children)}>"

    def _repr_html_(self) -> str:
        """A small table, for notebooks."""
        return self.trial._repr_html_()
