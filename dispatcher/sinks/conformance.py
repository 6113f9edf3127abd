"""Tries a sink with all that the protocol promises it, and all that it promises: for its author's
tests. Needs no test framework, and no experiment that runs.

    from dispatcher.sinks.conformance import try_sink

    def test_my_sink(tmp_path):
        kind, section = MyKind(), MySection(kind="mine", folder=str(tmp_path / "there"))
        try_sink(kind, section, tmp_path, lambda: read_back(tmp_path / "there"))

``read_back`` says what the tracker holds: for each trial its parameters, its points by their steps,
and its end. It is asked after each of these: whole runs, the same twice, a crash between any two
calls, an attempt that is superseded, names and numbers of any kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from dispatcher.errors import UserError
from dispatcher.sinks.protocol import (
    ExperimentRun,
    Flushed,
    Point,
    Sink,
    SinkKind,
    Surroundings,
    TrialEnd,
    TrialRun,
)

#: Names and texts that come from trials; a tracker may change them, and may not fail.
HOSTILE: Final[Mapping[str, Any]] = {
    "": 1,
    "../../etc/passwd": "../x",
    "/abs": True,
    "a\0b\x1b[2J": "\0\x1b]0;x\x07",
    "<img src=x onerror=alert(1)>": "<script>alert(1)</script>",
    "\u202etxt.exe": "\u2028\ud83d\ude00",
    "x" * 10_000: "y" * 100_000,
    "huge": 10**400,
    "tiny": -5e-324,
    "nothing": None,
    "blocks[17].op": ["conv", {"kernel": [3, 3]}],
    "deep": {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": {"j": 1}}}}}}}}}},
}

_NUMBERS: Final = (0.5, 0.0, -1.0, 1e308, 5e-324, math.inf, -math.inf, math.nan)


class NotConforming(UserError):
    """Raised when a sink does other than the protocol says; the text says what."""


@dataclass(slots=True)
class HeldRun:
    """The part of one trial that a tracker holds, as far as ``read_back`` can tell.

    Attributes:
        steps: the numbers of its points, in their order; each once.
        ended: whether it holds the end.
        parent: of the trial; None also if the tracker does not tell.
    """

    steps: list[int] = field(default_factory=list)
    ended: bool = False
    parent: int | None = None


ReadBack = Callable[[], Mapping[int, HeldRun]]


def try_sink(kind: SinkKind[Any], section: Any, folder: Path, read_back: ReadBack) -> None:
    """Try a sink. Blocks for as long as the tracker takes.

    Args:
        kind: as the entry point names it.
        section: with which it reaches a tracker that may be written to.
        folder: a folder of its own, empty.
        read_back: reads the tracker by other means than the sink.

    Raises:
        NotConforming: it does other than the protocol says.
        DispatcherError: what the sink itself raises.
    """
    _Trying(kind, section, folder, read_back).all()


class _Trying:
    def __init__(
        self, kind: SinkKind[Any], section: Any, folder: Path, read_back: ReadBack
    ) -> None:
        self._kind = kind
        self._section = section
        self._read_back = read_back
        self._experiment = ExperimentRun(
            "conformance-1", "<b>a name</b>\x1b[2J", 1.7e9, folder, {"lr": {}}, maximize=True
        )
        self._kept = Flushed()
        self._begun = False

    def all(self) -> None:
        """One question after the other."""
        target = self._kind.target(self._section, self._experiment)
        self._demand(isinstance(target, str) and bool(target), "'target' says nothing")
        self._whole_runs()
        self._crashes()
        self._superseded()
        self._hostile()
        self._dropped()
        self._again()

    def _sink(self, *, kept: Flushed | None = None) -> Sink:
        memo = (kept or self._kept).memo if self._begun else None
        self._begun = True
        return self._kind.sink_for(self._section, Surroundings(self._experiment, memo, {}))

    def _whole_runs(self) -> None:
        sink = self._sink()
        for trial in (1, 2):
            self._give(sink, _run(trial, parent=1 if trial == 2 else None), _points(1, 6))
        self._kept = sink.flush()
        sink.close("")
        self._compare({1: 5, 2: 5}, "whole runs")
        parent = self._read_back()[2].parent
        self._demand(parent in (None, 1), f"trial 2 inherits from 1, and it holds {parent!r}")

    def _crashes(self) -> None:
        """A sink that is lost after any number of calls since its last flush, and the next one."""
        for lost_after in range(4):
            trial = 10 + lost_after
            run = _run(trial)
            sink = self._sink()
            sink.begin(run, None)
            sink.points(run, _points(1, 4))
            kept = sink.flush()
            calls = [
                partial(sink.points, run, _points(4, 7)),
                partial(sink.points, run, _points(7, 9)),
                partial(sink.end, run, END),
            ]
            for call in calls[:lost_after]:
                call()
            sink.close("")  # as after an error: what it holds is not taken any more
            after = self._sink(kept=kept)
            place = kept.places.get(trial)
            goes_on = place is not None and after.begin(run, place)
            if not goes_on:
                after.begin(run, None)
            after.points(run, _points(4 if goes_on else 1, 9))
            after.end(run, END)
            self._kept = after.flush()
            after.close("")
            self._compare({trial: 8}, f"a crash {lost_after} calls after a flush")

    def _superseded(self) -> None:
        sink = self._sink()
        sink.begin(_run(20), None)
        sink.points(_run(20), _points(1, 6))
        if not self._kind.whole:
            sink.flush()
        self._give(sink, _run(20, attempt=2), _points(1, 3))
        self._kept = sink.flush()
        sink.close("")
        self._compare({20: 2}, "an attempt that counts no more")

    def _hostile(self) -> None:
        sink = self._sink()
        points = [Point(n, 1.7e9 + n, {**HOSTILE, "v": 1}, v) for n, v in enumerate(_NUMBERS, 1)]
        self._give(sink, _run(30, parameters=HOSTILE), points)
        self._kept = sink.flush()
        sink.close("")
        held = self._read_back().get(30)
        self._demand(held is not None and held.ended, "names of any kind: the run is not there")

    def _dropped(self) -> None:
        sink = self._sink()
        sink.drop([2, 4_000])
        sink.drop([2])
        self._kept = sink.flush()
        sink.close("completed")
        held = self._read_back()
        self._demand(2 not in held, "trial 2 was dropped, and is there")
        self._demand(1 in held, "trial 1 was not dropped, and is gone")

    def _again(self) -> None:
        """A cursor that is lost: all comes again, to a sink that knows nothing."""
        self._begun = False
        sink = self._sink()
        self._give(sink, _run(1), _points(1, 6))
        sink.flush()
        sink.close("")
        self._compare({1: 5}, "all of it once more")

    def _give(self, sink: Sink, run: TrialRun, points: Sequence[Point]) -> None:
        sink.begin(run, None)
        sink.points(run, points)
        sink.end(run, END)

    def _compare(self, expected: Mapping[int, int], what: str) -> None:
        held = self._read_back()
        for trial, many in expected.items():
            one = held.get(trial)
            self._demand(one is not None, f"{what}: trial {trial} is not there")
            assert one is not None
            wanted = list(range(1, many + 1))
            text = f"{what}: trial {trial} has the points {one.steps}, and {wanted} were given"
            self._demand(one.steps == wanted, text)
            self._demand(one.ended, f"{what}: trial {trial} has not ended")

    def _demand(self, holds: bool, text: str) -> None:
        if not holds:
            raise NotConforming(f"the sink does not keep to the protocol: {text}")


END: Final = TrialEnd("succeeded", True, 0.5, {"default": 0.5}, 1.7e9 + 99, "", "d" * 64, 1.0, 2.0)


def _run(
    trial: int,
    *,
    attempt: int = 1,
    parent: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> TrialRun:
    given = {"lr": 0.1, "act": "relu"} if parameters is None else parameters
    generation = 0 if parent is None else 1
    return TrialRun(trial, attempt, given, parent, generation, False, "local", 1.7e9 + trial)


def _points(first: int, end: int) -> list[Point]:
    def made() -> Iterator[Point]:
        for seq in range(first, end):
            yield Point(seq, 1.7e9 + seq, {"default": 1 / seq, "loss": seq}, 1 / seq)

    return list(made())
