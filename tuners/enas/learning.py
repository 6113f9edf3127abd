"""The controller's learning rule: REINFORCE with a moving average as baseline, by Adam.

Section 2.2: "the gradient is computed using REINFORCE, with a moving average baseline to reduce
variance"; section 3.2 has the numbers. The reward of a sample is what the trial reported plus
``entropy_weight`` times the entropy of the sample; the divergence of skip probabilities from
their prior is added to the loss.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np

from tuners.enas.controller import Controller
from tuners.enas.tape import Array, Tape

#: Adam (Kingma and Ba 2014): decay of the two moments, and what keeps a root from nought.
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Reinforce:
    """Changes the parameters of a controller by the rewards of its samples.

    Args:
        controller: the controller; its parameters are changed in place.
        learning_rate: 0.00035 in section 3.2.
        entropy_weight: 0.1 in section 3.2.
        skip_weight: of the divergence of skip probabilities (macro space).
        baseline_decay: how much of the baseline stays with each sample.
    """

    def __init__(
        self,
        controller: Controller,
        *,
        learning_rate: float = 0.00035,
        entropy_weight: float = 0.1,
        skip_weight: float = 0.8,
        baseline_decay: float = 0.99,
    ) -> None:
        self.controller = controller
        self.learning_rate = learning_rate
        self.entropy_weight = entropy_weight
        self.skip_weight = skip_weight
        self.baseline_decay = baseline_decay
        self.baseline: float | None = None  # begins with the first reward
        self.updates = 0
        self._first = {name: np.zeros_like(each) for name, each in controller.parameters.items()}
        self._second = {name: np.zeros_like(each) for name, each in controller.parameters.items()}

    def update(self, samples: Sequence[tuple[Sequence[int], float]]) -> None:
        """One step from the mean over samples: (decisions, reward), larger rewards are better.

        The baseline takes each in, in this order, before the sample is compared with it.
        """
        if not samples:
            return
        gradients = self.gradients(samples)
        self.updates += 1
        for name, gradient in gradients.items():
            first, second = self._first[name], self._second[name]
            first += (1 - BETA_1) * (gradient - first)
            second += (1 - BETA_2) * (gradient * gradient - second)
            unbiased = first / (1 - BETA_1**self.updates)
            spread = np.sqrt(second / (1 - BETA_2**self.updates))
            self.controller.parameters[name] -= self.learning_rate * unbiased / (spread + EPSILON)

    def gradients(self, samples: Sequence[tuple[Sequence[int], float]]) -> dict[str, Array]:
        """Gradients of the loss: minus log-probability times advantage, and the divergence, both
        on average over samples."""
        tape = Tape()
        parameters = self.controller.on(tape)
        losses = []
        for decisions, reward in samples:
            drawn = self.controller.judge(tape, parameters, decisions)
            advantage = self._advantage(reward + self.entropy_weight * drawn.entropy)
            losses.append(tape.scale(drawn.log_probability, -advantage / len(samples)))
            losses.append(tape.scale(drawn.skip_divergence, self.skip_weight / len(samples)))
        tape.backward(tape.total(tape.joined(losses)))
        return {name: node.grad for name, node in parameters.items()}

    def _advantage(self, reward: float) -> float:
        before = reward if self.baseline is None else self.baseline
        self.baseline = before + (1 - self.baseline_decay) * (reward - before)
        return reward - self.baseline

    # ---- what a restart needs ----------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """The whole state of learning, to the last bit."""
        return {
            "baseline": self.baseline,
            "updates": self.updates,
            "parameters": _packed(self.controller.parameters),
            "first": _packed(self._first),
            "second": _packed(self._second),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """The inverse of :meth:`state`, into a controller of the same shape."""
        self.baseline = state["baseline"]
        self.updates = state["updates"]
        _unpack(state["parameters"], self.controller.parameters)
        _unpack(state["first"], self._first)
        _unpack(state["second"], self._second)


def _packed(arrays: dict[str, Array]) -> dict[str, str]:
    return {
        name: base64.b64encode(each.astype("<f8").tobytes()).decode()
        for name, each in arrays.items()
    }


def _unpack(packed: dict[str, str], into: dict[str, Array]) -> None:
    for name, each in into.items():
        each[...] = np.frombuffer(base64.b64decode(packed[name]), "<f8").reshape(each.shape)
