"""The data of a run that is saved as one file: read of its store, without secrets."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any, Final, Protocol

import msgspec

from dispatcher import queries
from dispatcher.attempt_files import log_stream
from dispatcher.errors import DispatcherError
from dispatcher.experiments.handle import ExperimentHandle
from dispatcher.folders.ownership import is_ours
from dispatcher.operations.operation import Context, perform
from dispatcher.operations.table import TRIAL_TENSORS
from dispatcher.queries import ExperimentReader, FlatTrial, TrialSummary
from dispatcher.web.curves import thinned
from dispatcher.web.lives import lives_in_columns
from dispatcher.web.table import TrialTable
from dispatcher.wiring.masks import mask_of

#: Characters of one text of a trial; of its parameters and its result as JSON.
MOST_TEXT: Final = 20_000
MOST_JSON: Final = 256_000

#: What a page shows of an experiment and has no business elsewhere.
_NOT_TOLD: Final = {"folder": "", "pid": None, "host": None}


class Run(Protocol):
    """A run that can be saved. Calls block on the disk."""

    id: str
    name: str

    def answers(self) -> dict[str, Any]:
        """Return answers about the whole, by their path below the experiment's."""
        ...

    def ranked(self) -> list[int]:
        """List all trials: those that matter most come first."""
        ...

    def details(self, trials: Sequence[int], points: int) -> dict[str, Any]:
        """Return all about some trials, with curves of at most so many points."""
        ...

    def tensors(self, trial: int) -> Any | None:
        """Say which tensors of a trial came from whom; None if nothing is known."""
        ...

    def log(self, trial: int, stream: str, most: int) -> dict[str, Any] | None:
        """Return the end of a log of a trial's newest attempt; None if there is none.

        Args:
            trial: its number.
            stream: ``stdout`` or ``stderr``.
            most: bytes of it, at most.
        """
        ...


class StoredRun:
    """A run in its store, running or over.

    Args:
        handle: of the experiment.
    """

    def __init__(self, handle: ExperimentHandle) -> None:
        self._handle = handle
        # Of a damaged file nobody knows the secrets: it raises.
        self._mask = mask_of(handle.config(), ours=is_ours(handle.folder))
        self.id = handle.id
        self.name = handle.name
        with handle.reading() as reader:
            self._summaries = {one.id: one for one in queries.list_trials(reader)}
            self._mode = reader.mode
            self._unnumbered = {
                int(row["trial"]): int(row["many"])
                for row in reader.rows(
                    "SELECT trial, count(*) AS many FROM metrics WHERE counted AND NOT final "
                    "AND number IS NULL GROUP BY trial"
                )
            }
        self._children: dict[int, list[int]] = {}
        for one in self._summaries.values():
            if one.parent is not None:
                self._children.setdefault(one.parent, []).append(one.id)

    def answers(self) -> dict[str, Any]:
        """See :class:`Run`."""
        with self._handle.reading() as reader, reader.moment():
            table = TrialTable()
            table.put(map(self._flat, queries.flat_trials(reader)))
            lives = lives_in_columns(reader)
            bands = queries.curve_bands(reader).to_json()
        standing = msgspec.to_builtins(self._handle.standing())
        standing["experiment"].update(_NOT_TOLD)
        standing["sinks"] = []  # their targets are addresses of other services
        told = {"experiment": self.id, "cursor": "", **table.described()}
        answers = {"": standing, "/table": told, "/history": lives, "/curves/bands": bands}
        return {path: self._hide(answer) for path, answer in answers.items()}

    def ranked(self) -> list[int]:
        """See :class:`Run`: the line of the best, the others by their values, then the newest."""
        sign = -1.0 if self._mode is queries.OptimizeMode.MAXIMIZE else 1.0
        valued = [one for one in self._summaries.values() if one.value is not None]
        valued.sort(key=lambda one: (sign * (one.value or 0.0), one.id))
        line: list[int] = []
        at = valued[0].id if valued else None
        while at is not None and at in self._summaries and at not in line:
            line.append(at)
            at = self._summaries[at].parent
        newest = sorted(self._summaries, reverse=True)
        return list(dict.fromkeys([*line, *(one.id for one in valued), *newest]))

    def details(self, trials: Sequence[int], points: int) -> dict[str, Any]:
        """See :class:`Run`."""
        some = [self._summaries[trial] for trial in trials]
        with self._handle.reading() as reader, reader.moment():
            attempts = queries.attempts_of(reader, some)
            found: dict[str, Any] = {
                str(one.id): {
                    "trial": _bounded(self._hide(one.to_json())),
                    "attempts": [
                        _cut(self._hide(msgspec.to_builtins(each))) for each in attempts[one.id]
                    ],
                    "children": self._children.get(one.id, []),
                    "curve": _curve(reader, one, points),
                    "unnumbered": self._unnumbered.get(one.id, 0),
                    "final": one.value is not None,
                }
                for one in some
            }
        return found

    def tensors(self, trial: int) -> Any | None:
        """See :class:`Run`."""
        try:
            found = perform(
                TRIAL_TENSORS, Context(), experiment=str(self._handle.folder), trial=trial
            )
        except DispatcherError:
            return None
        return self._hide(msgspec.to_builtins(found))

    def log(self, trial: int, stream: str, most: int) -> dict[str, Any] | None:
        """See :class:`Run`."""
        try:
            with self._handle.attempts(trial) as located:
                shown = located.show_files(located.attempt(None), stream)
                with closing(shown.files) as files:
                    sizes = {each.path: each.size for each in shown.listed.entries if not each.link}
                    aside = 2 * self._mask.longest
                    many = most + aside
                    part = log_stream.part(files, stream, sizes, -many, many)
        except (DispatcherError, OSError):
            return None
        if not part.data:
            return None
        text, begin = self._mask(part.data.decode("utf-8", errors="replace")), part.start
        if begin:  # it may begin with the end of a secret, which no mask knows
            text, begin = text[aside:], begin + aside
        return {"text": text, "begin": begin, "size": part.size}

    def _hide(self, value: Any) -> Any:
        """Replace the experiment's secrets in all texts of a value; before any of them is cut, as
        half a secret is not found."""
        if isinstance(value, str):
            return self._mask(value)
        if isinstance(value, dict):
            return {self._hide(key): self._hide(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self._hide(one) for one in value]
        return value

    def _flat(self, one: FlatTrial) -> FlatTrial:
        parameters, metrics = self._hide(one.parameters), self._hide(one.metrics)
        return replace(one, parameters=parameters, metrics=metrics)


def _curve(reader: ExperimentReader, one: TrialSummary, points: int) -> dict[str, Any] | None:
    if points < 3:
        return None
    curve = queries.curve(reader, one.id)
    if not curve.steps:
        return None
    steps, values = thinned(curve.steps, curve.values, points)
    return {"attempt": one.attempt, "steps": steps, "values": values}


def _bounded(whole: dict[str, Any]) -> dict[str, Any]:
    """Return a trial as JSON has it; what is too long is left out, and says so."""
    plain = _cut(whole)
    for name in ("parameters", "result"):
        if len(msgspec.json.encode(plain[name])) > MOST_JSON:
            plain[name] = {"left out": f"more than {MOST_JSON:,} characters"}
    return plain


def _cut(plain: dict[str, Any]) -> dict[str, Any]:
    return {
        name: f"{one[:MOST_TEXT]}…" if isinstance(one, str) and len(one) > MOST_TEXT else one
        for name, one in plain.items()
    }
