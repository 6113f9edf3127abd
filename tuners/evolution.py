"""Regularized (aging) evolution in which children start from their parents' weights.

Real, Aggarwal, Huang, Le: Regularized Evolution for Image Classifier Architecture Search, AAAI
2019, Algorithm 1: a queue of P individuals, first drawn at random; then, cycle by cycle, a sample
of S is drawn from it with replacement, the best of the sample is mutated, the child joins on the
right and the oldest leaves on the left, however good it is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tuners import space as spaces
from tuners import values
from tuners.errors import NoMoreTrialError, TunerArgumentError
from tuners.inheriting import PATHS, InheritingTuner, without
from tuners.pareto import Archive, Objectives, Point, best_first, excess

if TYPE_CHECKING:
    import numpy as np

#: Mixtures of two parents that may miss the constraints before the pair counts as having no child.
_MOST_CROSSINGS = 32

#: What leaves a full population when another one joins it.
_SURVIVALS = ("age", "rank")


@dataclass(slots=True, eq=False)
class Individual:
    """A finished trial in the population. ``score``: larger is better, whatever the mode."""

    parameter_id: int | None  # None: imported from elsewhere, without weights
    parameters: dict[str, Any]
    score: float
    save_path: str | None
    succeeded: bool | None = None  # None: its end was not delivered yet
    point: Point | None = None  # of several objectives; the score is its first coordinate
    far: float = 0.0  # how far it is beyond the bounds of the objectives; 0: it keeps them


class RegularizedEvolutionTuner(InheritingTuner):
    """Aging evolution, asynchronous, with inheritance. Thread-safe; memory is bounded.

    With ``inherit`` every trial gets a ``save_path``, and a child the ``restore_path`` of its
    parent, whose weights are certain to be committed: the request waits for the parent before it
    answers. Trials that failed before they had a result, or reported NaN or infinity, do not enter
    the population; during the first generation others are drawn in their place. One that has a
    result and no weights leaves it when it is to be a parent: another one is.

    Parents that lie outside a changed search space are mutated into it. Override ``founder`` and
    ``mutate`` for a search space of your own.

    With several ``objectives`` the best of a sample is the first one by the crowded comparison of
    NSGA-II in the whole population (Deb et al. 2002, section III-B): by front, and within a front
    by how lonely it is. ``archive`` then keeps the non-dominated ones of all that finished, however
    old: ``{"parameter_id", "parameters"}`` each, population_size at most.

    Bounds of objectives count before all else: those that keep them come first, then the nearest
    (the same, section VI); the archive has only such that keep them all.
    With ``survival: rank`` a full population loses its last one by the same comparison, in place of
    its oldest one: the elitism of NSGA-II, one child at a time.

    ``crossover``, which the paper has not, makes some children of two parents: the best of two
    samples, of which the fitter one bequeaths its weights. Override ``cross`` to say how.

    Args:
        optimize_mode: ``maximize`` or ``minimize``; of no meaning with ``objectives``.
        population_size: P of the paper, which used 100.
        sample_size: S of the paper, which used 25; at most P.
        seed: the same seed gives the same answers under the same order of results; null draws one.
        inherit: whether children start from their parents' weights.
        asynchronous: true: a child may be bred as soon as S individuals have finished, from those
            finished by then; until S have, requests wait for the earliest unfinished ones. false:
            the serial algorithm to the letter: each child waits for every trial proposed before
            it, so that one seed gives one search, whatever the timing.
        objectives: numbers of the final result, their modes and bounds, such as ``{"default":
            "maximize", "latency_ms": "minimize <= 50"}``; None: ``default`` alone.
        crossover: how likely a child has two parents.
        survival: ``age``: the oldest one leaves a full population; ``rank``: the last one by the
            crowded comparison, of one objective the worst.
    """

    _not_ended = "too few trials have finished to breed from"

    def __init__(
        self,
        optimize_mode: str = "maximize",
        population_size: int = 100,
        sample_size: int = 25,
        seed: int | None = 0,
        inherit: bool = True,
        asynchronous: bool = True,
        objectives: Mapping[str, str] | None = None,
        crossover: float = 0.0,
        survival: str = "age",
    ) -> None:
        self.objectives = None if objectives is None else Objectives.of(objectives)
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.population_size = values.whole("population_size", population_size, 1)
        self.sample_size = values.whole("sample_size", sample_size, 1)
        if sample_size > population_size:
            raise TunerArgumentError(
                f"sample_size ({sample_size}) is above population_size ({population_size}).",
                "The paper used 25 of 100.",
            )
        self.seed = values.seed(seed)
        self.inherit = values.flag("inherit", inherit)
        self.asynchronous = values.flag("asynchronous", asynchronous)
        self.crossover = values.share("crossover", crossover, zero=True)
        self.survival = values.one_of("survival", survival, _SURVIVALS)
        self.archive: Archive[dict[str, Any]] = Archive(population_size)
        self._population: deque[Individual] = deque()
        # Asked for or running: parameter_id -> whether it is a founder without a result yet.
        self._pending: dict[int, bool] = {}
        self._grown = False  # whether the population has ever been full

    def handles(self, search_space: Any) -> str:
        """Whether there is anything to mutate."""
        own = type(self).mutate is not RegularizedEvolutionTuner.mutate
        if not own and not spaces.parse(search_space).dimensions:
            return "the search space is empty, and a child would have nothing to mutate."
        return super().handles(search_space)

    # ---- hooks for architectures of one's own ------------------------------------------------

    def founder(self, rng: np.random.Generator) -> dict[str, Any]:
        """Draws an individual of the first generation. Called with ``self.lock`` held."""
        return spaces.sample(self._space, rng)

    def mutate(self, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Returns a changed copy of a parent's parameters. Called with ``self.lock`` held."""
        return spaces.mutate(self._space, parameters, rng)

    def cross(
        self, fitter: Mapping[str, Any], other: Mapping[str, Any], rng: np.random.Generator
    ) -> dict[str, Any] | None:
        """Returns a child of two, which gets the weights of the fitter one.

        Here: each parameter from either, with even odds. Called with ``self.lock`` held.

        Args:
            fitter: parameters of the fitter parent.
            other: parameters of the other one.
            rng: the only source of randomness.

        Returns:
            The child's parameters; None: these two have no child that differs from the fitter
            one, which is mutated then.
        """
        own = spaces.conform(self._space, fitter, rng)
        theirs = spaces.conform(self._space, other, rng)
        for _ in range(_MOST_CROSSINGS):
            child = {name: (theirs if rng.random() < 0.5 else own)[name] for name in own}
            if self._space.admits(child):
                return None if child == own else child
        return None

    # ---- the tuner ---------------------------------------------------------------------------

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Breeds a child, or draws a founder. Blocks while too few individuals have finished.

        Raises:
            NoMoreTrialError: too few have finished and waiting is not allowed
                (``multiThread: false``): ask again after the next result.
        """
        with self.lock:
            self._pending[parameter_id] = False  # a place in the line, before any wait
        try:
            while True:
                with self.lock:
                    awaited = self._awaited(parameter_id)
                    if awaited is None:
                        parameters, parent = self._propose(parameter_id)
                # Waits are outside the lock: the results that are waited for need it.
                if awaited is not None:
                    self._has_ended_well(awaited)
                    # Over either way. Usually its end was delivered; a proposal that never became
                    # a trial has none, and must not be waited for again and again.
                    self._forget(awaited)
                elif parent is None or self._can_bequeath(parent):
                    return parameters
                else:
                    self._bury(parent)
        except BaseException:
            self._forget(parameter_id)
            raise

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the individual joins the population;
        one leaves it when it is full, the oldest one unless ``survival`` is ``rank``."""
        score, point, far = self._read(value)
        if score is None:
            return
        saved = parameters.get("save_path") if isinstance(parameters, Mapping) else None
        own = without(parameters, PATHS)
        with self.lock:
            self._admit(Individual(parameter_id, own, score, saved, point=point, far=far))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Counts the trial out; one without a usable result leaves its place to another."""
        with self.lock:
            self._pending.pop(parameter_id, None)
            for individual in self._population:
                if individual.parameter_id == parameter_id:
                    individual.succeeded = success

    def import_data(self, data: Sequence[dict[str, Any]]) -> None:
        """Takes results of another experiment; their children start without weights."""
        for entry in data:
            score, point, far = self._read(entry["value"])
            if score is not None:
                with self.lock:
                    self._admit(
                        Individual(
                            None, dict(entry["parameter"]), score, None, point=point, far=far
                        )
                    )

    def state(self) -> dict[str, Any]:
        """Population and pending trials; bounded by population size and trials in flight."""
        with self.lock:
            return {
                "seed": self.seed,
                "grown": self._grown,
                "population": [asdict(individual) for individual in self._population],
                "pending": [[key, founder] for key, founder in self._pending.items()],
                "archive": self.archive.state(),
            }

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._grown = state["grown"]
            self._population.clear()
            for one in state["population"]:
                individual = Individual(**one)
                if individual.point is not None:
                    individual.point = tuple(individual.point)  # a list in JSON
                self._population.append(individual)
            self.archive.restore(state.get("archive", ()))  # older states have none
            self._pending = {int(key): bool(founder) for key, founder in state["pending"]}

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Counts a trial as under way."""
        with self.lock:
            inherits = isinstance(parameters, Mapping) and "restore_path" in parameters
            self._pending[parameter_id] = not self._grown and not inherits

    # ---- decisions, all with the lock held ---------------------------------------------------

    def _awaited(self, parameter_id: int) -> int | None:
        """The earliest trial that this request must wait for, or None when it may go on."""
        if self._needs_founder(parameter_id):
            return None
        earlier = [
            key
            for key, founder in self._pending.items()
            if key < parameter_id and (founder or not self.asynchronous)
        ]
        enough = self.asynchronous and len(self._population) >= self.sample_size
        return None if enough or not earlier else min(earlier)

    def _needs_founder(self, parameter_id: int) -> bool:
        earlier = [founder for key, founder in self._pending.items() if key < parameter_id]
        if self._grown:  # all buried: begin again rather than stall
            return not self._population and (self.asynchronous or not earlier)
        # In order, requests before it that still wait come first: else the place of a founder that
        # failed would go to the first that wakes.
        founders = sum(self._pending.values()) if self.asynchronous else len(earlier)
        return len(self._population) + founders < self.population_size

    def _propose(self, parameter_id: int) -> tuple[dict[str, Any], Individual | None]:
        """Parameters, and the parent whose weights they name; drawn after the last wait."""
        rng = self.rng(parameter_id)
        parent = None
        if self._needs_founder(parameter_id) or not self._population:
            parameters = self._founded(parameter_id, rng)
            self._pending[parameter_id] = True
        else:
            fittest, parameters = self._breed(rng)
            self._pending[parameter_id] = False
            if self.inherit and fittest.save_path and fittest.parameter_id is not None:
                parent = fittest
                parameters["restore_path"] = fittest.save_path
        if self.inherit:
            parameters["save_path"] = self.save_path(parameter_id)
        return parameters, parent

    def _founded(self, parameter_id: int, rng: np.random.Generator) -> dict[str, Any]:
        """A founder, whose place in the first generation may matter."""
        return self.founder(rng)

    def _read(self, value: Any) -> tuple[float | None, Point | None, float]:
        if self.objectives is None:
            return values.score(value, self.optimize_mode), None, 0.0
        point = self.objectives.point(value)
        return (
            None if point is None else point[0],
            point,
            excess(self.objectives.beyond(value)),
        )

    def _breed(self, rng: np.random.Generator) -> tuple[Individual, dict[str, Any]]:
        """A parent whose weights are inherited, and the parameters of its child."""
        place = self._sampled(rng)
        child = None
        if self.crossover and rng.random() < self.crossover:
            first, second = place, self._sampled(rng)
            place = self._fittest([first, second])
            other = self._population[second if place == first else first]
            child = self.cross(self._population[place].parameters, other.parameters, rng)
        fittest = self._population[place]
        return fittest, self.mutate(fittest.parameters, rng) if child is None else child

    def _sampled(self, rng: np.random.Generator) -> int:
        """The place of the best of a sample, drawn with replacement."""
        drawn = rng.integers(len(self._population), size=self.sample_size)
        return self._fittest([int(place) for place in drawn])

    def _fittest(self, places: Sequence[int]) -> int:
        """The best of some places in the population; the first one if even."""
        if self.objectives is None:
            return max(places, key=lambda place: self._population[place].score)
        rank = {place: number for number, place in enumerate(_by_rank(self._population))}
        return min(places, key=lambda place: rank[place])

    def _make_room(self) -> None:
        """Lets the oldest one, or the last one by rank, leave a population that is one too many."""
        if self.survival == "age":
            self._population.popleft()
            return
        if self.objectives is None:
            worst = min(self._population, key=lambda one: one.score)
        else:
            worst = self._population[_by_rank(self._population)[-1]]
        self._population.remove(worst)

    def _admit(self, individual: Individual) -> None:
        if individual.parameter_id in self._pending:
            # No longer a founder to come, yet pending until its end was delivered too.
            self._pending[individual.parameter_id] = False
        self._population.append(individual)
        if len(self._population) > self.population_size:
            self._make_room()
        if individual.point is not None and individual.far == 0:
            self.archive.add(
                individual.point,
                {"parameter_id": individual.parameter_id, "parameters": individual.parameters},
            )
        if not self.asynchronous:
            # Founders run side by side; in order of their ids they age alike in every run.
            in_order = sorted(self._population, key=_age)
            self._population.clear()
            self._population.extend(in_order)
        self._grown = self._grown or len(self._population) == self.population_size

    # ---- waits, all without the lock ---------------------------------------------------------

    def _can_bequeath(self, parent: Individual) -> bool:
        """Waits until the parent's weights are committed: at once, or as long as its end takes."""
        assert parent.parameter_id is not None
        try:
            return self._has_ended_well(parent.parameter_id)
        except NoMoreTrialError:
            if parent.succeeded is None:
                raise
            return parent.succeeded  # without a gate, its end is all there is to go by

    def _forget(self, parameter_id: int) -> None:
        with self.lock:
            self._pending.pop(parameter_id, None)

    def _bury(self, parent: Individual) -> None:
        with self.lock:
            if parent in self._population:
                self._population.remove(parent)


def _age(individual: Individual) -> int:
    return -1 if individual.parameter_id is None else individual.parameter_id


def _by_rank(population: Sequence[Individual]) -> list[int]:
    return best_first([one.point or () for one in population], [one.far for one in population])
