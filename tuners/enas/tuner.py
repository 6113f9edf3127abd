"""ENAS as a tuner: trials train shared weights or judge architectures, in turns.

Pham, Guan, Zoph, Le, Dean: Efficient Neural Architecture Search via Parameter Sharing,
arXiv:1802.03268, section 2.2. Its two alternating phases are phases of trials here, so that
subgraphs are trained, and judged, in parallel: the shared weights are a shared store
(``docs/trial-authors.md``), whose versions never change, and each trial pins one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tuners import values
from tuners.enas.controller import Controller
from tuners.enas.learning import Reinforce
from tuners.enas.spaces import make_space
from tuners.errors import TunerArgumentError
from tuners.inheriting import InheritingTuner
from tuners.stores import PINS_KEY

#: The part of one epoch that requests belong to: (epoch, number in it). 0 trains the weights.
Round = tuple[int, int]

WEIGHTS, CONTROLLER = "weights", "controller"


class ENASTuner(InheritingTuner):
    """Efficient neural architecture search. Thread-safe; memory does not grow.

    A trial gets ``phase`` and ``architectures``, a list. With ``phase: weights`` it loads the
    version of the shared store that it pins, trains the subgraphs on minibatches in turn, and
    publishes what it changed; what it reports is not learned from. With ``phase: controller`` it
    loads that version and reports the quality of its one architecture on held-out data, with
    weights as they are: nothing is trained.

    An *epoch* is ``weights_trials`` of the first kind and ``controller_trials`` of the other. These
    are judged in rounds of ``batch``, and after each the controller takes one step. A round begins
    when the one before it has ended, all trials of a round pin the version that was the newest
    then, and results are taken in order of their ids: one seed gives one search, whatever the
    timing, up to the order in which weights trials publish. A wait holds no slot. Trials that
    failed, or that users propose by hand, are left out.

    Deriving an architecture (the end of section 2.2) is left to the user of the results: take the
    best of the last epoch's controller trials and train it from scratch.

    The defaults of what the controller learns by are not the paper's, which belong to some hundred
    thousand samples: in a few hundred, each of which is a trial here, its controller would hardly
    move (measured in ``examples/enas_digits``).

    Args:
        operations: names of what a layer or node may do; what they mean is the trial's business.
        space: ``macro``, whole networks (section 2.3), or ``micro``, cells (section 2.4).
        layers: of a macro network.
        nodes: of a micro cell, beside its two inputs; 5 in the paper's B = 7.
        cells: kinds of micro cells.
        optimize_mode: ``maximize`` or ``minimize``.
        store: the shared store of the weights; the first trial that publishes makes it.
        weights_trials: that train the shared weights, in each epoch. 0: somebody else does.
        samples: architectures that such a trial trains in turn.
        controller_trials: that judge an architecture each, in each epoch.
        batch: of them, for one step of the controller. Divides ``controller_trials``.
        hidden: units of the controller's LSTM; 100 in section 2.2.
        learning_rate: of the controller, by Adam; 0.00035 in section 3.2.
        tanh_constant: bound of the logits; 2.5 in section 3.2; 0: none.
        temperature: of the logits; 5.0 in section 3.2.
        entropy_weight: of the sample's entropy in the reward; 0.1 in section 3.2.
        skip_weight: of the divergence of skip probabilities from ``skip_target`` (macro), as a
            mean over layers; 0.8 in the authors' code.
        skip_target: prior probability of a skip connection; 0.4 in section 3.2.
        baseline_decay: of the moving average that rewards are compared with; 0.99 in the authors'
            code. It has to follow the shared weights, which get better with every epoch: where it
            lags, whatever was drawn looks good.
        seed: the same seed gives the same answers to the same results; null draws one.
    """

    _not_ended = "trial {trial} of the round before has not ended"
    _own_keys: ClassVar[tuple[str, ...]] = ("phase", "architectures", PINS_KEY)

    def __init__(
        self,
        operations: Sequence[str],
        space: str = "macro",
        layers: int = 6,
        nodes: int = 5,
        cells: Sequence[str] = ("normal", "reduction"),
        optimize_mode: str = "maximize",
        store: str = "omega",
        weights_trials: int = 4,
        samples: int = 8,
        controller_trials: int = 16,
        batch: int = 8,
        hidden: int = 100,
        learning_rate: float = 0.01,
        tanh_constant: float = 2.5,
        temperature: float = 1.0,
        entropy_weight: float = 0.001,
        skip_weight: float = 0.05,
        skip_target: float = 0.4,
        baseline_decay: float = 0.8,
        seed: int | None = 0,
    ) -> None:
        self.architectures = make_space(space, operations, layers, nodes, cells)
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.store = values.text("store", store)
        self.weights_trials = values.whole("weights_trials", weights_trials, 0)
        self.samples = values.whole("samples", samples, 1)
        self.controller_trials = values.whole("controller_trials", controller_trials, 1)
        self.batch = values.whole("batch", batch, 1)
        if self.controller_trials % self.batch:
            raise TunerArgumentError(
                f"controller_trials ({self.controller_trials}) is no multiple of batch "
                f"({self.batch}).",
                "Rounds of controller trials are of one size.",
            )
        self.seed = values.seed(seed)
        controller = Controller(
            self.architectures,
            values.whole("hidden", hidden, 1),
            self.rng(0, "controller"),
            tanh_constant=_number("tanh_constant", tanh_constant, zero=True),
            temperature=_number("temperature", temperature),
            skip_target=values.share("skip_target", skip_target, 0.999),
        )
        self._rule = Reinforce(
            controller,
            learning_rate=_number("learning_rate", learning_rate),
            entropy_weight=_number("entropy_weight", entropy_weight, zero=True),
            skip_weight=_number("skip_weight", skip_weight, zero=True),
            baseline_decay=values.share("baseline_decay", baseline_decay, 0.999999),
        )
        self._controller = controller
        self._begun: Round = (0, 0)  # the newest round that a request was answered in
        self._pin = 0  # the version that its trials read
        self._rewards: dict[int, tuple[list[int], float]] = {}  # not learned from yet, by id
        self._ended: dict[int, bool] = {}  # of this round and the one before: where nobody may wait

    # ---- the tuner ---------------------------------------------------------------------------

    def handles(self, search_space: Any) -> str:
        """Refuses every space but an empty one: ENAS takes its space from its arguments."""
        return (
            "ENAS takes 'operations', 'space' and 'layers' or 'nodes' as classArgs; leave "
            "searchSpace out."
            if search_space
            else ""
        )

    def update_search_space(self, search_space: Any) -> None:
        """Does nothing: see :meth:`handles`."""

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Returns architectures to train or to judge. Blocks until the round before has ended.

        Raises:
            NoMoreTrialError: it has not, and waiting is not allowed (``multiThread: false``): ask
                again after the next result.
        """
        mine = self._round_of(parameter_id)
        for earlier in self._members_before(mine):
            self._has_ended_well(earlier)
        omega = self.shared_store(self.store)
        with self.lock:
            if mine > self._begun:
                self._begin(mine)
                omega.hold(self._pin)  # for all of the round: its trials publish meanwhile
            rng = self.rng(parameter_id, "architectures")
            training = mine[1] == 0 and self.weights_trials > 0
            drawn = [
                self.architectures.architecture(self._controller.draw(rng).decisions)
                for _ in range(self.samples if training else 1)
            ]
            pinned = self._pin
        parameters = {"phase": WEIGHTS if training else CONTROLLER, "architectures": drawn}
        return omega.pin(parameters, pinned)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; learned from when its round is over."""
        if kwargs.get("customized") or parameters.get("phase") != CONTROLLER:
            return
        reward = values.score(value, self.optimize_mode)
        if reward is None:
            return  # it diverged: there is no number for how bad that is
        decisions = self.architectures.decisions(parameters["architectures"][0])
        with self.lock:
            self._rewards[parameter_id] = (decisions, reward)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Notes the end, for requests that may not wait."""
        with self.lock:
            self._ended[parameter_id] = success

    def _reported_end(self, parameter_id: int) -> bool | None:
        return self._ended.get(parameter_id)

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Goes on in the round of what was proposed since the state was taken."""
        with self.lock:
            if self._round_of(parameter_id) > self._begun:
                self._begin(self._round_of(parameter_id))
                self._pin = parameters.get(PINS_KEY, {}).get(self.store, 0)

    # ---- rounds ------------------------------------------------------------------------------

    def _round_of(self, parameter_id: int) -> Round:
        epoch, place = divmod(parameter_id, self.weights_trials + self.controller_trials)
        if place < self.weights_trials:
            return epoch, 0
        return epoch, 1 + (place - self.weights_trials) // self.batch

    def _members_before(self, this: Round) -> range:
        """The ids of the round before."""
        epoch, number = this
        first = epoch * (self.weights_trials + self.controller_trials)
        if number == 0 or (number == 1 and not self.weights_trials):
            return range(max(0, first - self.batch), first)
        if number == 1:
            return range(first, first + self.weights_trials)
        first += self.weights_trials + (number - 2) * self.batch
        return range(first, first + self.batch)

    def _begin(self, this: Round) -> None:
        """Begin a round at its first request: learn from all before, pin the newest version."""
        before = self._members_before(this)
        ended = sorted(each for each in self._rewards if each < before.stop)
        self._rule.update([self._rewards.pop(each) for each in ended])
        self._ended = {each: end for each, end in self._ended.items() if each >= before.start}
        self._begun = this
        self._pin = self.shared_store(self.store).latest()

    # ---- restarts ----------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The state that a restart needs."""
        with self.lock:
            return {
                "seed": self.seed,
                "begun": list(self._begun),
                "pin": self._pin,
                "rewards": [[each, *kept] for each, kept in sorted(self._rewards.items())],
                "ends": [[each, end] for each, end in sorted(self._ended.items())],
                "rule": self._rule.state(),
            }

    def restore(self, state: Mapping[str, Any]) -> None:
        """The inverse of :meth:`state`."""
        with self.lock:
            self.seed = state["seed"]
            epoch, number = state["begun"]
            self._begun = (epoch, number)
            self._pin = state["pin"]
            self._rewards = {each: (made, worth) for each, made, worth in state["rewards"]}
            self._ended = dict(state["ends"])
            self._rule.restore(state["rule"])


def _number(name: str, value: float, *, zero: bool = False) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not (value >= 0 if zero else value > 0) or value == float("inf"):
        least = "from 0 up" if zero else "above 0"
        raise TunerArgumentError(f"{name} is a number {least}, not {value!r}.")
    return float(value)
