"""Our tuners, led by their public methods through virtual time.

A request that would wait is asked again after the next end, in order of ids, as a thread that the
gate lets go: what a tuner proposes it draws after its last wait, so the two are the same.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Mapping
from typing import Any

from benchmarks.peers.surrogates import PROBLEMS, Best, BlackBox, Curves, Front, Population
from benchmarks.peers.virtual_time import Piece, lead
from tuners import NoMoreTrialError, ParentFailed, Tuner, WaitNotAllowed, make_builtin
from tuners.base import WaitMode
from tuners.testing import OpenGate, with_gate

Proposal = tuple[int, dict[str, Any]]


class _Gate(OpenGate):
    """Knows what has ended, and which requests came to nothing; lets nobody wait."""

    def __init__(self, versions: dict[str, int] | None) -> None:
        super().__init__(versions=versions)
        self.ended: set[int] = set()

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        for parent in parents:
            if parent in self.failed:
                break
            if parent not in self.ended:
                raise WaitNotAllowed(f"trial {parent} has not ended")
        return super().wait(parents, mode, timeout)


class Led:
    """A tuner with its requests: those that wait, and those whose trials run.

    Args:
        tuner: has its search space already.
        lookahead: how many requests may wait at once, beyond those that find a worker free.
        versions: the newest version of each shared store, which its trials add to.
    """

    def __init__(
        self, tuner: Tuner, lookahead: int, versions: dict[str, int] | None = None
    ) -> None:
        self.gate = _Gate(versions)
        self.tuner, self.lookahead = with_gate(tuner, self.gate), lookahead
        self.asked = 0
        self.waiting: deque[int] = deque()

    def proposal(self) -> Proposal | None:
        """The parameters of the first request that need not wait."""
        for request in list(self.waiting):
            self.waiting.remove(request)
            if (found := self._ask(request)) is not None:
                return found
        while len(self.waiting) <= self.lookahead:
            self.asked += 1
            if (found := self._ask(self.asked - 1)) is not None:
                return found
        return None

    def over(self, trial: int, parameters: Mapping[str, Any], value: Any) -> None:
        """A trial has ended with a result."""
        self.tuner.receive_trial_result(trial, parameters, value)
        self.tuner.trial_end(trial, True)
        self.gate.ended.add(trial)

    def _ask(self, request: int) -> Proposal | None:
        try:
            return request, self.tuner.generate_parameters(request)
        except NoMoreTrialError:
            self.waiting.append(request)
            self.waiting = deque(sorted(self.waiting))
        except ParentFailed:
            self.gate.failed[request] = "it never became a trial"
        return None


class _OnBlackBox:
    def __init__(self, led: Led, problem: BlackBox) -> None:
        self.led, self.problem = led, problem
        self.best, self.front = Best(), Front()

    def next(self) -> Piece | None:
        found = self.led.proposal()
        return None if found is None else Piece(1.0, found)

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        value = self.problem.value(parameters)
        if self.problem.objectives > 1:
            self.front.points.append(value)
            value = {"default": value[0], "second": value[1]}
        else:
            self.best.take(value, value)
        self.led.over(trial, parameters, value)

    def score(self) -> float:
        return self.front.area() if self.problem.objectives > 1 else self.best.true


class _OnCurves:
    def __init__(self, led: Led, problem: Curves, seed: int) -> None:
        self.led, self.problem = led, problem
        self.best, self.dice = Best(), random.Random(f"noise of seed {seed}")

    def next(self) -> Piece | None:
        found = self.led.proposal()
        if found is None:
            return None
        return Piece(found[1]["budget"] - found[1]["budget_before"], found)

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        epoch = parameters["budget"]
        seen = self.problem.seen(parameters, epoch, self.dice)
        self.best.take(seen, self.problem.value(parameters, epoch))
        self.led.over(trial, parameters, seen)

    def score(self) -> float:
        return self.best.true


class _OnPopulation:
    def __init__(self, led: Led, problem: Population, seed: int) -> None:
        self.led, self.problem = led, problem
        self.best, self.dice = Best(), random.Random(f"noise of seed {seed}")
        self.saved: dict[str, tuple[float, ...]] = {}

    def next(self) -> Piece | None:
        found = self.led.proposal()
        return None if found is None else Piece(1.0, found)

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        before = self.saved.get(parameters.get("restore_path", ""), self.problem.start)
        state = self.problem.train(before, parameters)
        self.saved[parameters["save_path"]] = state
        seen = self.problem.seen(state, self.dice)
        self.best.take(seen, self.problem.value(state))
        self.led.over(trial, parameters, seen)

    def score(self) -> float:
        return self.best.true


def score(
    tuner: str,
    arguments: Mapping[str, Any],
    problem: str,
    seed: int,
    *,
    workers: int,
    pieces: int = 0,
    horizon: float = 0.0,
    lookahead: int = 0,
) -> float:
    """What a built-in tuner reaches on a problem with one seed, in the problem's own units."""
    one = PROBLEMS[problem]
    drawn = {} if tuner == "GridSearch" else {"seed": seed}  # a grid is gone through in one order
    made = make_builtin(tuner, {**arguments, **drawn})
    made.update_search_space(one.space)
    led = Led(made, lookahead)
    search: _OnBlackBox | _OnCurves | _OnPopulation
    if isinstance(one, BlackBox):
        search = _OnBlackBox(led, one)
    elif isinstance(one, Curves):
        search = _OnCurves(led, one, seed)
    else:
        search = _OnPopulation(led, one, seed)
    lead(search, seed=seed, workers=workers, pieces=pieces, horizon=horizon)
    return search.score()
