"""Architecture search by network morphisms: hill climbing, and aging evolution.

Elsken, Metzen, Hutter: Simple and Efficient Architecture Search for Convolutional Neural Networks,
2018, arXiv:1711.04528, section 4, Algorithm 1. Both tuners propose networks as chains of blocks
(``growth.py``) with the steps that lead from the parent to the child; the trial hands them to
``trial_runtime.morphism.chain.inherit``, so that a child computes its parent's function at birth:

>>> from trial_runtime.morphism import chain
>>> parameters = {"inherited": [{"id": 0, "width": 4, "kernel": 3}], "steps": []}
>>> chain.inherit({}, parameters["inherited"], parameters["steps"])
{}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism import chain
from tuners import space as spaces
from tuners import values
from tuners.crossing import crossed
from tuners.evolution import RegularizedEvolutionTuner
from tuners.growth import Growth, applied
from tuners.inheriting import PATHS, InheritingTuner

if TYPE_CHECKING:
    import numpy as np

#: Parameters that both tuners add, beside paths.
_OURS = ("blocks", "inherited", "steps")


@dataclass(slots=True, eq=False)
class Neighbour:
    """A finished trial of one step of the climb. ``score``: larger is better."""

    parameter_id: int
    blocks: list[dict[str, Any]]
    score: float


class NetworkMorphismTuner(InheritingTuner):
    """Hill climbing by network morphisms (NASH). Thread-safe; memory is bounded.

    Trial 0 is the network to begin with. Then, step by step, ``neighbours`` trials start from the
    weights of the best one of the step before; all but the last get morphisms, the last one is
    that network itself, trained on. The next step begins when all of them have ended; a wait holds
    no slot, so run as many as there are neighbours. A step in which all fail is passed over.

    Parameters are ``blocks`` (what to build), ``inherited`` (the parent's blocks) and ``steps``
    (from these to those), and what the search space names, such as a learning rate, drawn anew for
    each trial.

    Args:
        blocks: the network to begin with, see :class:`tuners.growth.Growth`.
        optimize_mode: ``maximize`` or ``minimize``.
        neighbours: trials a step, 8 in the paper.
        operations: some of ``wider``, ``kernel``, ``deeper``, ``skip``.
        steps: morphisms a child, 5 in the paper.
        max_blocks: longest chain.
        max_width: widest block.
        max_kernel: largest kernel.
        seed: one seed gives one search, whatever the timing; null draws one.
    """

    _own_keys: ClassVar[tuple[str, ...]] = (*PATHS, *_OURS)
    _not_ended = "trial {trial} of the step before has not ended"

    def __init__(
        self,
        blocks: Sequence[Mapping[str, Any]],
        optimize_mode: str = "maximize",
        neighbours: int = 8,
        operations: Sequence[str] = chain.OPERATIONS,
        steps: int = 5,
        max_blocks: int = 16,
        max_width: int = 512,
        max_kernel: int = 7,
        seed: int | None = 0,
    ) -> None:
        self.growth = Growth(blocks, operations, steps, max_blocks, max_width, max_kernel)
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.neighbours = values.whole("neighbours", neighbours, 2)
        self.seed = values.seed(seed)
        # Of the latest steps: results, by step, and all that have ended anyhow.
        self._finished: dict[int, list[Neighbour]] = {}
        self._ended: dict[int, bool] = {}

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns a neighbour of the best network. Blocks until the step before has ended.

        Raises:
            NoMoreTrialError: it has not, and waiting is not allowed (``multiThread: false``): ask
                again after the next result.
        """
        step = self._step(parameter_id)
        for earlier in self._trials(step - 1):
            self._has_ended_well(earlier)
        while True:
            with self.lock:
                best = self._best_before(step)
                parameters = self._propose(parameter_id, best)
            if best is None or self._has_ended_well(best.parameter_id):
                return parameters
            with self.lock:
                self._finished[self._step(best.parameter_id)].remove(best)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; one that is not finite does not count."""
        score = values.score(value, self.optimize_mode)
        if score is None or kwargs.get("customized"):
            return
        step = self._step(parameter_id)
        with self.lock:
            line = self._finished.setdefault(step, [])
            line.append(Neighbour(parameter_id, parameters["blocks"], score))
            line.sort(key=lambda one: one.parameter_id)
            # The latest step that has results is never dropped: its best is still climbed from.
            for old in sorted(self._finished)[:-3]:
                del self._finished[old]

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Counts a neighbour as ended, for requests that may not wait."""
        with self.lock:
            self._ended[parameter_id] = success
            latest = sorted({self._step(one) for one in self._ended})[-3:]
            for old in [one for one in self._ended if self._step(one) not in latest]:
                del self._ended[old]

    def state(self) -> dict[str, Any]:
        """The results of the latest steps. Running trials are known from the ids alone."""
        with self.lock:
            finished = [asdict(one) for line in self._finished.values() for one in line]
            ended = [[number, well] for number, well in self._ended.items()]
            return {"seed": self.seed, "finished": finished, "ended": ended}

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._finished = {}
            self._ended = {int(number): bool(well) for number, well in state["ended"]}
            for one in state["finished"]:
                self._finished.setdefault(self._step(one["parameter_id"]), []).append(
                    Neighbour(**one)
                )

    # ---- which trial is which -----------------------------------------------------------------

    def _step(self, parameter_id: int) -> int:
        return (parameter_id + self.neighbours - 1) // self.neighbours

    def _trials(self, step: int) -> range:
        last = step * self.neighbours
        return range(max(0, last - self.neighbours + 1), last + 1)

    # ---- decisions, all with the lock held ---------------------------------------------------

    def _best_before(self, step: int) -> Neighbour | None:
        """The best of the last step before this one in which any finished; the earliest if even."""
        for earlier in sorted(self._finished, reverse=True):
            if earlier < step and self._finished[earlier]:
                return max(self._finished[earlier], key=lambda one: one.score)
        return None

    def _propose(self, parameter_id: int, best: Neighbour | None) -> dict[str, Any]:
        rng = self.rng(parameter_id)
        parameters = spaces.sample(self._space, rng)
        parameters["save_path"] = self.save_path(parameter_id)
        if best is None:
            return {**parameters, "blocks": self.growth.founder(), "steps": []}
        is_last = parameter_id % self.neighbours == 0
        steps = [] if is_last else self.growth.child(best.blocks, rng)
        return {
            **parameters,
            "blocks": applied(best.blocks, steps),
            "inherited": applied(best.blocks, []),
            "steps": steps,
            "restore_path": self.save_path(best.parameter_id),
        }

    def _reported_end(self, parameter_id: int) -> bool | None:
        return self._ended.get(parameter_id)


class MorphingEvolutionTuner(RegularizedEvolutionTuner):
    """Aging evolution whose mutations are network morphisms.

    Selection is that of :class:`tuners.RegularizedEvolutionTuner`, whose arguments it takes;
    parameters are those of :class:`NetworkMorphismTuner`. Founders are the network to begin with,
    each with initial weights of its own; networks only grow. With ``trained_on`` some children are
    their parent itself, trained on, so that a small network may become a good one as well. With
    ``founder_steps`` the first generation is spread over sizes: its first one is the network to
    begin with, the others have got ever more morphisms, evenly up to that many at the last one, and
    weights of their own. For a front, which has to reach from small to large, that does what the
    random first generation of NSGA-II does (Deb et al. 2002, section III-C).

    A child of two parents (``crossover``) starts from the fitter one, computes what that one
    computes, and has grown at some places to what the other one is there. Pairs for which no
    morphisms lead there (``tuners.crossing`` says which) have none: the fitter one is mutated.

    Args:
        blocks: the network to begin with, see :class:`tuners.growth.Growth`.
        operations: some of ``wider``, ``kernel``, ``deeper``, ``skip``.
        steps: morphisms a child.
        max_blocks: longest chain.
        max_width: widest block.
        max_kernel: largest kernel.
        optimize_mode: ``maximize`` or ``minimize``.
        population_size: P of aging evolution.
        sample_size: S of aging evolution.
        seed: as there.
        asynchronous: as there.
        objectives: as there, such as accuracy and number of parameters.
        survival: as there.
        crossover: how likely a child has two parents.
        trained_on: how likely a child is its parent itself.
        founder_steps: morphisms of the last one of the first generation; 0: all are the network to
            begin with.
    """

    _own_keys: ClassVar[tuple[str, ...]] = (*PATHS, *_OURS)

    def __init__(
        self,
        blocks: Sequence[Mapping[str, Any]],
        operations: Sequence[str] = chain.OPERATIONS,
        steps: int = 1,
        max_blocks: int = 16,
        max_width: int = 512,
        max_kernel: int = 7,
        optimize_mode: str = "maximize",
        population_size: int = 20,
        sample_size: int = 5,
        seed: int | None = 0,
        asynchronous: bool = True,
        objectives: Mapping[str, str] | None = None,
        crossover: float = 0.0,
        survival: str = "age",
        trained_on: float = 0.0,
        founder_steps: int = 0,
    ) -> None:
        self.growth = Growth(blocks, operations, steps, max_blocks, max_width, max_kernel)
        self.founder_steps = values.whole("founder_steps", founder_steps, 0)
        self.trained_on = values.share("trained_on", trained_on, zero=True)
        super().__init__(
            optimize_mode,
            population_size,
            sample_size,
            seed,
            asynchronous=asynchronous,
            objectives=objectives,
            crossover=crossover,
            survival=survival,
        )

    def founder(self, rng: np.random.Generator) -> dict[str, Any]:
        """The network to begin with, and what the search space names."""
        return {**super().founder(rng), "blocks": self.growth.founder(), "steps": []}

    def mutate(self, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Morphisms of the parent, or none; what the search space names is drawn anew."""
        if self.trained_on and rng.random() < self.trained_on:
            return self._morphed(parameters, [], rng)
        return self._morphed(parameters, self.growth.child(parameters["blocks"], rng), rng)

    def cross(
        self, fitter: Mapping[str, Any], other: Mapping[str, Any], rng: np.random.Generator
    ) -> dict[str, Any] | None:
        """See :meth:`.RegularizedEvolutionTuner.cross`.

        The child is the fitter one, grown towards the other one; what the search space names is
        drawn anew. None: morphisms do not lead there, or there is nothing to grow.
        """
        try:
            steps = crossed(fitter["blocks"], other["blocks"], rng, self.growth.max_blocks)
        except WeightsMismatch:
            return None
        return self._morphed(fitter, steps, rng) if steps else None

    def _founded(self, parameter_id: int, rng: np.random.Generator) -> dict[str, Any]:
        """A founder, grown the more the later its place in the first generation.

        The place follows from the id alone, so that it does not hang on who finishes when.
        """
        parameters = self.founder(rng)
        last = max(1, self.population_size - 1)
        count = round(self.founder_steps * (parameter_id % self.population_size) / last)
        steps = self.growth.child(parameters["blocks"], rng, count)
        return {**parameters, "blocks": applied(parameters["blocks"], steps)}

    def _morphed(
        self, parent: Mapping[str, Any], steps: list[dict[str, Any]], rng: np.random.Generator
    ) -> dict[str, Any]:
        return {
            **super().founder(rng),
            "blocks": applied(parent["blocks"], steps),
            "inherited": applied(parent["blocks"], []),
            "steps": steps,
        }
