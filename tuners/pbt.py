"""Population based training: members that train on, copy one another and move their parameters.

Jaderberg, Dalibard, Osindero, Czarnecki, Donahue, Razavi, Vinyals, Green, Dunning, Simonyan,
Fernando, Kavukcuoglu: Population Based Training of Neural Networks, arXiv:1711.09846, Algorithm 1.
``exploit.py`` has its selection rules, ``space/sampling.py`` its exploration.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tuners import exploit, values
from tuners import space as spaces
from tuners.inheriting import PATHS, InheritingTuner, without

if TYPE_CHECKING:
    import numpy as np


@dataclass(slots=True, eq=False)
class Generation:
    """A member's finished trial. ``score``: larger is better; None: diverged, crashed, unread."""

    parameter_id: int
    parameters: dict[str, Any]
    score: float | None
    succeeded: bool | None = None  # None: its end was not delivered yet


class PBTTuner(InheritingTuner):
    """Population based training. Thread-safe; memory is bounded by the population.

    A trial is one *generation* of one member: it loads what ``restore_path`` names, trains until
    the member is "ready" (the trial's own number of steps), reports, and saves everything that is
    to be gone on with: weights, and the optimiser with its state. Trial ``n`` belongs to member
    ``n % population_size`` and waits for the trial ``n - population_size`` of the same member, so
    a member's generations follow one another while members need not wait for each other; a wait
    holds no slot. For members to keep apace, ``lookahead`` should reach over one population.

    When its turn comes a member compares itself with the latest results of all (exploit): it goes
    on with its own weights and hyperparameters, or takes over those of a better member and moves
    the hyperparameters (explore). Until its next result one that has taken over counts with the
    result that it took over (Algorithm 1, line 8: ``p <- eval(theta)`` right after exploring), so
    that it holds no place among the worst. One that diverged (NaN, infinity) or crashed takes over
    from a better one, whatever its rank. Hyperparameters outside a changed search space are drawn
    anew when a member moves. Trials that users propose by hand are no members.

    The schedule that a member found is read from the finished experiment by
    ``tuners.schedules.schedule`` and can be run again by the tuner ``Schedule``.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        population_size: members; the paper used 10 to 80.
        exploit: ``truncation`` ("PBT for RL") or ``tournament`` ("PBT for GANs").
        fraction: of truncation: how large bottom and top are, at most 0.5; 0.2 in the paper.
        factor: exploration multiplies by ``1 + factor`` or ``1 - factor``; 0.2 in the paper.
        resample_probability: how likely a hyperparameter is drawn anew instead.
        seed: the same seed gives the same answers under the same order of results; null draws one.
        asynchronous: true: as in the paper. false: a generation begins when the one before it has
            ended for all members, so that one seed gives one search, whatever the timing.
    """

    _not_ended = "this member's earlier trial {trial} has not ended"

    def __init__(
        self,
        optimize_mode: str = "maximize",
        population_size: int = 10,
        exploit: str = "truncation",
        fraction: float = 0.2,
        factor: float = 0.2,
        resample_probability: float = 0.25,
        seed: int | None = 0,
        asynchronous: bool = True,
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.population_size = values.whole("population_size", population_size, 2)
        self.fraction = values.share("fraction", fraction, 0.5)
        self.factor = values.share("factor", factor)
        self.resample_probability = values.share(
            "resample_probability", resample_probability, zero=True
        )
        self.exploit_rule = _rule(exploit, self.fraction)
        self.seed = values.seed(seed)
        self.asynchronous = values.flag("asynchronous", asynchronous)
        # By member, in order of ids. Two: a generation that began early must not be seen by the
        # one before it when generations are kept apart.
        self._finished: dict[int, deque[Generation]] = {}
        # By member: the trial that it went on with from another member's, and that one.
        self._moved: dict[int, tuple[int, Generation]] = {}
        # By member: the last id that a user's trial has taken from it.
        self._foreign: dict[int, int] = {}

    # ---- hooks for hyperparameters of one's own ----------------------------------------------

    def founder(self, member: int, rng: np.random.Generator) -> dict[str, Any]:
        """Draws a member's first hyperparameters. Called with ``self.lock`` held."""
        return spaces.sample(self._space, rng)

    def explore(self, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Returns moved hyperparameters of a better member. Called with ``self.lock`` held."""
        return spaces.perturb(
            self._space,
            parameters,
            rng,
            factor=self.factor,
            resample_probability=self.resample_probability,
        )

    # ---- the tuner ---------------------------------------------------------------------------

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns a member's next generation. Blocks until the one before it has ended.

        Raises:
            NoMoreTrialError: it has not, and waiting is not allowed (``multiThread: false``): ask
                again after the next result.
        """
        self._await_earlier(parameter_id)
        while True:
            with self.lock:
                parameters, source = self._propose(parameter_id)
            # Outside the lock: the end that is waited for needs it.
            well = source is None or self._has_ended_well(source.parameter_id)
            with self.lock:
                if well:
                    self._move(parameter_id, source)
                    return parameters
                assert source is not None
                source.score = None  # it is no longer anybody's source

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; it is that of a member's generation."""
        if kwargs.get("customized"):
            with self.lock:
                self._foreign[parameter_id % self.population_size] = parameter_id
            return
        score = values.score(value, self.optimize_mode)
        with self.lock:
            self._note(Generation(parameter_id, without(parameters, PATHS), score))

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Notes how a generation ended; one without a result has no score."""
        with self.lock:
            generation = self._generation(parameter_id)
            if generation is not None:
                generation.succeeded = success
            elif not success:
                self._note(Generation(parameter_id, {}, None, succeeded=False))

    def state(self) -> dict[str, Any]:
        """The latest two generations of each member. Running trials follow from the ids alone."""
        with self.lock:
            return {
                "seed": self.seed,
                "finished": [asdict(one) for line in self._finished.values() for one in line],
                "moved": [[trial, asdict(source)] for trial, source in self._moved.values()],
                "foreign": [[member, last] for member, last in self._foreign.items()],
            }

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._finished.clear()
            self._moved.clear()
            for one in state["finished"]:
                self._note(Generation(**one))
            for trial, one in state.get("moved", ()):  # older states have none
                source = self._generation(one["parameter_id"])
                self._move(trial, source or Generation(**one))
            self._foreign = {int(member): int(last) for member, last in state["foreign"]}

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Takes note of the trial that a member goes on from."""
        path = parameters.get("restore_path") if isinstance(parameters, Mapping) else None
        with self.lock:
            known = [one for line in self._finished.values() for one in line]
            known += [source for _, source in self._moved.values()]
            source = (one for one in known if self.save_path(one.parameter_id) == path)
            self._move(parameter_id, next(source, None))

    # ---- decisions, all with the lock held ---------------------------------------------------

    def _note(self, generation: Generation) -> None:
        member = generation.parameter_id % self.population_size
        self._finished.setdefault(member, deque(maxlen=2)).append(generation)
        if member in self._moved and self._moved[member][0] <= generation.parameter_id:
            del self._moved[member]

    def _move(self, parameter_id: int, source: Generation | None) -> None:
        """A member goes on from ``source``: until its next result it counts as that."""
        member = parameter_id % self.population_size
        own = self._finished.get(member)
        if source is not None and not (own and own[-1] is source):
            self._moved[member] = (parameter_id, source)

    def _propose(self, parameter_id: int) -> tuple[dict[str, Any], Generation | None]:
        """Parameters, and the trial whose weights they name; drawn after the last wait."""
        rng = self.rng(parameter_id)
        member = parameter_id % self.population_size
        latest = [self._standing(each, parameter_id) for each in range(self.population_size)]
        members = [each for each, one in enumerate(latest) if one is not None or each == member]
        scores = [None if (one := latest[each]) is None else one.score for each in members]
        chosen = members[self.exploit_rule(scores, members.index(member), rng)]
        # Its own before the last, when the last one failed and nobody is better off.
        source = latest[chosen] if chosen != member else self._usable(member, parameter_id)
        if source is None:
            parameters = self.founder(member, rng)
        elif chosen == member:
            parameters = dict(source.parameters)
        else:
            parameters = self.explore(source.parameters, rng)
        parameters["save_path"] = self.save_path(parameter_id)
        if source is not None:
            parameters["restore_path"] = self.save_path(source.parameter_id)
        return parameters, source

    def _standing(self, member: int, parameter_id: int) -> Generation | None:
        """The trial that a member counts as: its last one visible here, or one taken over."""
        is_own = member == parameter_id % self.population_size
        if self.asynchronous and not is_own and member in self._moved:
            return self._moved[member][1]
        return next(self._seen(member, parameter_id), None)

    def _usable(self, member: int, parameter_id: int) -> Generation | None:
        """The last one that has something to go on from."""
        seen = self._seen(member, parameter_id)
        return next((one for one in seen if one.score is not None), None)

    def _seen(self, member: int, parameter_id: int) -> Iterator[Generation]:
        first_of_own = parameter_id - parameter_id % self.population_size
        for generation in reversed(self._finished.get(member, ())):
            if self.asynchronous or generation.parameter_id < first_of_own:
                yield generation

    def _generation(self, parameter_id: int) -> Generation | None:
        known = [*self._finished.get(parameter_id % self.population_size, ())]
        known += [source for _, source in self._moved.values()]
        return next((one for one in known if one.parameter_id == parameter_id), None)

    def _reported_end(self, parameter_id: int) -> bool | None:
        generation = self._generation(parameter_id)
        ended = None if generation is None else generation.succeeded
        member = parameter_id % self.population_size
        if ended is None and parameter_id <= self._foreign.get(member, -1):
            return False
        return ended

    # ---- waits, all without the lock ---------------------------------------------------------

    def _await_earlier(self, parameter_id: int) -> None:
        """Waits for the member's earlier trial, or for all of the generation before.

        Where there was none (its request failed, or a user's trial has its id), the one before
        that is the earlier one.
        """
        size = self.population_size
        first_of_own = parameter_id - parameter_id % size
        lasts = [parameter_id - size]
        if not self.asynchronous:
            lasts = list(range(first_of_own - size, first_of_own))
        for last in lasts:
            for earlier in range(last, -1, -size):
                self._has_ended_well(earlier)
                with self.lock:
                    if self._generation(earlier) is not None:
                        break


def _rule(name: str, fraction: float) -> exploit.Rule:
    if values.one_of("exploit", name, ("truncation", "tournament")) == "truncation":
        return partial(exploit.truncation, fraction=fraction)
    return exploit.tournament
