"""The controller: an LSTM that makes one decision after another (sections 2.2 to 2.4).

Each decision is its next input, through embeddings. Earlier layers or nodes are chosen by
comparing its state after them with its state now (equation for macro skips: sigmoid of
``v · tanh(W1 h_earlier + W2 h_now)``; for the two inputs in a micro cell: softmax of the same).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from tuners.enas.spaces import MacroSpace, MicroSpace, Space
from tuners.enas.tape import Array, Node, Tape

#: Gets probabilities, answers with the index that is taken.
Choose = Callable[[Array], int]


@dataclass(frozen=True)
class Drawn:
    """One pass of the controller. ``log_probability`` and ``skip_divergence`` (the mean over layers
    that have earlier ones to choose from) are on its tape; ``entropy`` (nats) is that of all
    decisions, given those before each."""

    decisions: list[int]
    log_probability: Node
    skip_divergence: Node
    entropy: float


class Controller:
    """Draws architectures of a space. Its parameters are changed from outside only.

    Args:
        space: what it draws from.
        hidden: units of the LSTM; 100 in the paper.
        rng: for the first parameters, uniform in [-0.1, 0.1] (section 3.2).
        tanh_constant: logits stay within this; 2.5 in section 3.2. 0: no bound.
        temperature: logits are divided by it; 5.0 in section 3.2.
        skip_target: the prior probability of a skip connection (macro); 0.4 in section 3.2.
    """

    def __init__(
        self,
        space: Space,
        hidden: int,
        rng: np.random.Generator,
        *,
        tanh_constant: float = 2.5,
        temperature: float = 5.0,
        skip_target: float = 0.4,
    ) -> None:
        self.space = space
        self.hidden = hidden
        self.tanh_constant = tanh_constant
        self.temperature = temperature
        self.skip_target = skip_target
        shapes: dict[str, tuple[int, ...]] = {
            "lstm": (4 * hidden, 2 * hidden),
            "begin": (hidden,),
            "embedding": (len(space.operations), hidden),
            "operation": (len(space.operations), hidden),
            "earlier": (hidden, hidden),
            "now": (hidden, hidden),
            "compare": (hidden,),
        }
        self.parameters: dict[str, Array] = {
            name: rng.uniform(-0.1, 0.1, shape) for name, shape in shapes.items()
        }

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Draw an architecture."""
        tape = Tape()
        return self.run(tape, self.on(tape), lambda odds: int(rng.choice(len(odds), p=odds)))

    def judge(self, tape: Tape, parameters: Mapping[str, Node], decisions: Iterable[int]) -> Drawn:
        """Make given decisions, to learn how likely they are now.

        Args:
            tape: notes the steps.
            parameters: of the controller, from :meth:`on` of that tape.
            decisions: as many as an architecture has, in their order.
        """
        rest = iter(decisions)
        return self.run(tape, parameters, lambda _odds: next(rest))

    def on(self, tape: Tape) -> dict[str, Node]:
        """The parameters as leaves of a tape."""
        return {name: tape.leaf(value) for name, value in self.parameters.items()}

    def run(self, tape: Tape, parameters: Mapping[str, Node], choose: Choose) -> Drawn:
        """Make one pass.

        Args:
            tape: notes the steps.
            parameters: of the controller, from :meth:`on` of that tape.
            choose: makes the decisions.
        """
        walk = _Walk(self, tape, parameters, choose)
        if isinstance(self.space, MacroSpace):
            walk.macro(self.space)
        else:
            walk.micro(self.space)
        far = walk.divergences or [tape.leaf(np.zeros(()))]
        likely, divergence = (tape.total(tape.joined(each)) for each in (walk.logs, far))
        # A mean over layers, as the authors' own code has it: with their sum the prior would weigh
        # more the deeper the network is, and outweigh what the controller is rewarded for.
        divergence = tape.scale(divergence, 1 / max(1, walk.choosing_layers))
        return Drawn(walk.decisions, likely, divergence, walk.entropy)


class _Walk:
    """One pass: the state of the LSTM, and what has been decided."""

    def __init__(
        self, owner: Controller, tape: Tape, parameters: Mapping[str, Node], choose: Choose
    ) -> None:
        self.owner = owner
        self.tape = tape
        self.own = parameters
        self.choose = choose
        self.decisions: list[int] = []
        self.logs: list[Node] = []
        self.divergences: list[Node] = []
        self.choosing_layers = 0
        self.entropy = 0.0
        nothing = np.zeros(owner.hidden)
        self.cell, self.thought = tape.leaf(nothing), tape.leaf(nothing)

    def macro(self, space: MacroSpace) -> None:
        """Section 2.3. The layer before is an input in any case, so nothing is asked of it."""
        tape, seen = self.tape, self.own["begin"]
        thoughts: list[Node] = []
        for layer in range(space.layers):
            seen = self._operation(seen)
            self._step(seen)
            chosen = []
            self.choosing_layers += layer > 1
            for earlier in range(max(0, layer - 1)):
                if self._skip(self._match(thoughts[earlier])):
                    chosen.append(thoughts[earlier])
            seen = self.own["begin"]
            for each in chosen:
                seen = tape.add(seen, each)
            seen = tape.scale(seen, 1 / (1 + len(chosen)))
            thoughts.append(self.thought)

    def micro(self, space: MicroSpace) -> None:
        """Section 2.4: for each node two earlier ones, then two operations."""
        for _ in space.cells:
            thoughts: list[Node] = []
            for _ in range(2):  # the outputs of the two cells before
                self._step(self.own["begin"])
                thoughts.append(self.thought)
            for _ in range(space.nodes):
                seen = self.own["begin"]
                for _ in range(2):
                    self._step(seen)
                    logits = self.tape.joined([self._match(each) for each in thoughts])
                    seen = thoughts[self._one_of(self._bounded(logits))]
                for _ in range(2):
                    seen = self._operation(seen)
                self._step(seen)
                thoughts.append(self.thought)

    def _step(self, seen: Node) -> None:
        tape, hidden = self.tape, self.owner.hidden
        gates = tape.times(self.own["lstm"], tape.joined([seen, self.thought]))
        take, keep, show, new = (
            tape.at(gates, slice(part * hidden, (part + 1) * hidden)) for part in range(4)
        )
        kept = tape.multiply(tape.sigmoid(keep), self.cell)
        taken = tape.multiply(tape.sigmoid(take), tape.tanh(new))
        self.cell = tape.add(kept, taken)
        self.thought = tape.multiply(tape.sigmoid(show), tape.tanh(self.cell))

    def _operation(self, seen: Node) -> Node:
        self._step(seen)
        logits = self._bounded(self.tape.times(self.own["operation"], self.thought))
        return self.tape.at(self.own["embedding"], self._one_of(logits))

    def _match(self, thought: Node) -> Node:
        tape = self.tape
        before = tape.times(self.own["earlier"], thought)
        now = tape.times(self.own["now"], self.thought)
        return tape.dot(self.own["compare"], tape.tanh(tape.add(before, now)))

    def _bounded(self, logits: Node) -> Node:
        tape, bound = self.tape, self.owner.tanh_constant
        cooled = tape.scale(logits, 1 / self.owner.temperature)
        return tape.scale(tape.tanh(cooled), bound) if bound else cooled

    def _one_of(self, logits: Node) -> int:
        logs = self.tape.log_softmax(logits)
        odds = np.exp(logs.value)
        taken = self._noted(odds)
        self.logs.append(self.tape.at(logs, taken))
        return taken

    def _skip(self, logit: Node) -> bool:
        tape, target = self.tape, self.owner.skip_target
        yes = tape.sigmoid(self._bounded(logit))
        no = tape.one_minus(yes)
        log_yes, log_no = tape.log(yes), tape.log(no)
        taken = self._noted(np.array([float(no.value), float(yes.value)]))
        self.logs.append(log_yes if taken else log_no)
        far = tape.add(tape.multiply(yes, log_yes), tape.multiply(no, log_no))
        expected = tape.add(tape.scale(yes, -np.log(target)), tape.scale(no, -np.log(1 - target)))
        self.divergences.append(tape.add(far, expected))
        return bool(taken)

    def _noted(self, odds: Array) -> int:
        odds = odds / odds.sum()
        self.entropy -= float((odds * np.log(odds)).sum())
        taken = self.choose(odds)
        self.decisions.append(taken)
        return taken
