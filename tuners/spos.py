"""Single path one-shot: one supernet is trained, then paths through it are searched by evolution.

Guo, Zhang, Mu, Heng, Liu, Wei, Sun: Single Path One-Shot Neural Architecture Search with Uniform
Sampling, ECCV 2020, arXiv:1904.00420, section 3 and Algorithm 1.

``paths.py`` has its rules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tuners import space as spaces
from tuners import values
from tuners.errors import NoMoreTrialError, ParentFailed, TunerArgumentError
from tuners.inheriting import InheritingTuner, without
from tuners.paths import Blocks, Path, generation, refusal


class SPOSTuner(InheritingTuner):
    """Single path one-shot search. Thread-safe; memory is bounded by a few generations.

    Trial 0 trains the supernet: its parameters are ``supernet`` (hyperparameters, as the argument
    of that name has them), ``choices`` (the options of each choice block) and ``save_path``. It
    trains one path at a time, drawn evenly for each batch, and reports whatever it likes, such as
    what a random path reaches. Every other trial evaluates one path: its parameters are one option
    for each block and the supernet's ``restore_path``; it trains nothing and saves nothing.

    The first generation is drawn evenly; each further one is bred from the ``top`` best of all
    before it, once the generation before has ended, so that one seed gives one search, whatever
    the timing. A wait holds no slot. Paths that failed, or reported NaN or infinity, are not bred
    from. After the last generation there are no more trials. If the supernet's own trial fails,
    the next request trains another one; ``supernet_tries`` bounds it.

    Every path's cost is the sum of its options' ``costs``, such as numbers of weights, and at most
    ``max_cost``. Override ``admits`` for costs that do not add up.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        population_size: P of the paper: paths a generation, 50 there.
        generations: T of the paper, 20 there.
        top: k of the paper: how many are bred from, 10 there.
        crossover_share: share of a generation that is crossed, half in the paper; the rest are
            mutations.
        mutation_probability: for each block, how likely a mutation draws it anew; 0.1 in the paper.
        supernet: hyperparameters that the supernet's trial gets.
        costs: for each choice block, the costs of its options in the order of the file; a block
            that is left out costs nothing.
        max_cost: the most that a path may cost; null: there is no bound.
        supernet_tries: how many trials may fail to train the supernet before the search ends.
        seed: one seed gives one search, whatever the timing; null draws one.
    """

    _own_keys: ClassVar[tuple[str, ...]] = ("save_path", "restore_path", "supernet", "choices")
    _not_ended = "trial {trial} has not ended, and paths are bred from whole generations"

    def __init__(
        self,
        optimize_mode: str = "maximize",
        population_size: int = 50,
        generations: int = 20,
        top: int = 10,
        crossover_share: float = 0.5,
        mutation_probability: float = 0.1,
        supernet: Mapping[str, Any] | None = None,
        costs: Mapping[str, Sequence[float]] | None = None,
        max_cost: float | None = None,
        supernet_tries: int = 2,
        seed: int | None = 0,
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.population_size = values.whole("population_size", population_size, 1)
        self.generations = values.whole("generations", generations, 1)
        self.top = values.whole("top", top, 1)
        self.crossover_share = values.share("crossover_share", crossover_share, zero=True)
        self.mutation_probability = values.share("mutation_probability", mutation_probability)
        if supernet is not None and not isinstance(supernet, Mapping):
            raise TunerArgumentError("supernet is an object of hyperparameters, or null.")
        self.supernet = dict(supernet or {})
        self.costs = _costs(costs or {})
        self.max_cost = max_cost
        if max_cost is not None:
            if not self.costs:
                raise TunerArgumentError(
                    "max_cost bounds costs, and there are none.",
                    "Add costs, one number for each option of a choice block.",
                )
            self.max_cost = values.share("max_cost", max_cost, math.inf)
        self.supernet_tries = values.whole("supernet_tries", supernet_tries, 1)
        self.seed = values.seed(seed)
        self._trained: int | None = None  # the trial that has trained the supernet
        # By trial, of the latest generations: what finished with a score, and how trials ended.
        self._results: dict[int, tuple[dict[str, Any], float]] = {}
        self._ended: dict[int, bool] = {}
        self._foreign: set[int] = set()  # trials of users, before there was a supernet
        # By generation: the best before it, the best first.
        self._best: dict[int, list[tuple[dict[str, Any], float]]] = {}
        self._drawn: dict[int, list[Path]] = {}  # follows from the best; not kept over a restart

    def handles(self, search_space: Any) -> str:
        """Whether it is made of choices, and whether the costs are theirs."""
        space = spaces.parse(search_space)
        reason = super().handles(space) or refusal(space)
        if reason:
            return reason
        sizes = {name: len(options) for name, options in Blocks.of(space).options}
        for name, costs in self.costs.items():
            if name not in sizes:
                return f"the costs name {name!r}, which is no choice block."
            if len(costs) != sizes[name]:
                return f"{name!r} has {sizes[name]} options and {len(costs)} costs."
        cheapest = sum(min(costs) for costs in self.costs.values())
        if self.max_cost is not None and cheapest > self.max_cost:
            return f"the cheapest path costs {cheapest:g}, and max_cost is {self.max_cost:g}."
        return ""

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space for paths drawn from now on; raises SpaceError if it is unreadable."""
        super().update_search_space(search_space)
        with self.lock:
            self._drawn.clear()

    def admits(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a path may be evaluated: the constraint C. Called with ``self.lock`` held."""
        return self.max_cost is None or self.cost(parameters) <= self.max_cost

    def _admitted(self, parameters: Mapping[str, Any]) -> bool:
        return self._space.admits(parameters) and self.admits(parameters)

    def cost(self, parameters: Mapping[str, Any]) -> float:
        """The sum of the ``costs`` of a path's options."""
        blocks = Blocks.of(self._space)
        path = blocks.path(parameters) or ()
        priced = zip(blocks.options, path, strict=True)
        return sum(self.costs[name][at] for (name, _), at in priced if name in self.costs)

    # ---- the tuner ---------------------------------------------------------------------------

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns the supernet's parameters, or a path's. Blocks until what it needs has ended.

        Raises:
            NoMoreTrialError: all generations were issued; or it has not ended and waiting is not
                allowed (``multiThread: false``).
            ParentFailed: the supernet could not be trained.
            TunerArgumentError: the constraint admits no path that was tried.
        """
        trained = self._await_supernet(parameter_id)
        if trained is None:
            with self.lock:
                choices = {name: list(some) for name, some in Blocks.of(self._space).options}
            paths = {"save_path": self.save_path(parameter_id)}
            return {"supernet": dict(self.supernet), "choices": choices, **paths}
        number = self._generation(parameter_id, trained)
        if number >= self.generations:
            raise NoMoreTrialError(f"all {self.generations} generations of paths were issued")
        if number:
            for earlier in self._trials(number - 1, trained):
                self._has_ended_well(earlier)
        with self.lock:
            blocks = Blocks.of(self._space)
            paths_of_it = self._population(number, trained, blocks)
            place = parameter_id - self._trials(number, trained).start
            chosen = blocks.parameters(paths_of_it[place])
        return {**chosen, "restore_path": self.save_path(trained)}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the supernet's own is of no consequence."""
        with self.lock:
            if kwargs.get("customized"):
                if self._trained is None:
                    self._foreign.add(parameter_id)
                return
        if not isinstance(parameters, Mapping) or "supernet" in parameters:
            return
        score = values.score(value, self.optimize_mode)
        if score is not None:
            with self.lock:
                self._results[parameter_id] = (without(parameters, self._own_keys), score)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Counts a trial as ended, for requests that may not wait."""
        with self.lock:
            self._ended[parameter_id] = success
            if not success:
                self._results.pop(parameter_id, None)

    def state(self) -> dict[str, Any]:
        """The trial of the supernet, the best paths, and results of the latest generations."""
        with self.lock:
            return {
                "seed": self.seed,
                "trained": self._trained,
                "results": [[one, own, score] for one, (own, score) in self._results.items()],
                "ended": [[one, well] for one, well in self._ended.items()],
                "foreign": sorted(self._foreign),
                "best": [[number, best] for number, best in self._best.items()],
            }

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._trained = state["trained"]
            self._results = {int(one): (own, score) for one, own, score in state["results"]}
            self._ended = {int(one): bool(well) for one, well in state["ended"]}
            self._foreign = set(state["foreign"])
            self._best = {
                int(number): [(own, score) for own, score in best] for number, best in state["best"]
            }
            self._drawn.clear()

    # ---- which trial is which -----------------------------------------------------------------

    def _generation(self, parameter_id: int, trained: int) -> int:
        return (parameter_id - trained - 1) // self.population_size

    def _trials(self, number: int, trained: int) -> range:
        first = trained + 1 + number * self.population_size
        return range(first, first + self.population_size)

    # ---- waits, all without the lock ---------------------------------------------------------

    def _await_supernet(self, parameter_id: int) -> int | None:
        """The trial that has trained the supernet; None: this one is to do it."""
        with self.lock:
            if self._trained is not None and self._trained != parameter_id:
                return self._trained
        failed = 0
        for earlier in range(parameter_id):
            well = self._has_ended_well(earlier)
            with self.lock:
                if earlier in self._foreign:
                    continue
                if well:
                    self._trained = earlier
                    self._foreign.clear()
                    return earlier
            failed += 1
            if failed == self.supernet_tries:
                raise ParentFailed(
                    earlier, f"it was the last of {failed} that were to train the supernet"
                )
        return None

    # ---- decisions, all with the lock held ---------------------------------------------------

    def _population(self, number: int, trained: int, blocks: Blocks) -> list[Path]:
        """The paths of a generation: drawn at its first request, the same for all of it."""
        if number not in self._drawn:
            found = [blocks.path(own) for own, _ in self._best_before(number, trained)]
            self._drawn[number] = generation(
                blocks,
                [path for path in found if path is not None],
                lambda path: self._admitted(blocks.parameters(path)),
                self.rng(self._trials(number, trained).start, "generation"),
                size=self.population_size,
                crossovers=round(self.crossover_share * self.population_size),
                probability=self.mutation_probability,
            )
            self._forget_before(number - 1, trained)
        if not self._drawn[number]:
            raise TunerArgumentError(
                "the constraint admits none of the paths that were drawn.",
                "Allow more, or give cheaper options.",
            )
        return self._drawn[number]

    def _best_before(self, number: int, trained: int) -> list[tuple[dict[str, Any], float]]:
        """Update_Topk of Algorithm 1, generation by generation; the earlier one if even."""
        if number == 0:
            return []
        if number not in self._best:
            earlier = self._best_before(number - 1, trained)
            those = [self._results.get(one) for one in self._trials(number - 1, trained)]
            ranked: list[tuple[dict[str, Any], float]] = []
            for one in sorted([*earlier, *filter(None, those)], key=lambda one: -one[1]):
                if all(one[0] != other[0] for other in ranked):
                    ranked.append(one)
            self._best[number] = ranked[: self.top]
        return self._best[number]

    def _forget_before(self, number: int, trained: int) -> None:
        """Drops what no request needs any more: requests of a generation begin together."""
        for old in [one for one in self._best if one < number]:
            del self._best[old]
        for old in [one for one in self._drawn if one < number]:
            del self._drawn[old]
        first = self._trials(number, trained).start if number > 0 else 0
        for table in (self._results, self._ended):
            for trial in [one for one in table if one < first]:
                del table[trial]

    def _reported_end(self, parameter_id: int) -> bool | None:
        return self._ended.get(parameter_id)


def _costs(costs: Any) -> dict[str, list[float]]:
    if not isinstance(costs, Mapping):
        raise TunerArgumentError("costs maps choice blocks to the costs of their options.")
    found: dict[str, list[float]] = {}
    for name, some in costs.items():
        legal = isinstance(some, list | tuple) and some
        for one in some if legal else ():
            number = isinstance(one, int | float) and not isinstance(one, bool)
            legal = legal and number and math.isfinite(one) and one >= 0
        if not legal:
            raise TunerArgumentError(
                f"the costs of {name!r} are a list of numbers from 0 up, not {some!r}."
            )
        found[str(name)] = [float(one) for one in some]
    return found
