"""Whether an agent may say a word: its values are judged as it is to judge those of its trials.

An agent may run on a machine that somebody else has taken over. What is refused here harms the
attempts of that agent and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

from trial_runtime import wire
from trial_runtime.agent.allowance import Allowance
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.metric_check import metric_fault

#: Words of an attempt that are no metrics: its start and its end, the first final metric, the
#: newest weights, and some of its agent's own.
BESIDE_METRICS = 16

#: What an agent may say of itself in a second, in the long run: each is a row of the journal, and
#: an honest one has a few in an hour. Attempts it holds that count as one more.
SELF_RATE = 2.0
HOLDS_PER_TOKEN = 20_000


class Refused(Exception):
    """Raised for a word that may not be said; ``reason`` is what it is counted under."""

    def __init__(self, reason: str, text: str) -> None:
        super().__init__(text)
        self.reason = reason


class WordCheck:
    """Judges the words of one agent, and how often it speaks of itself.

    Counted are the words of each attempt that the agent holds; what it says of others, which are
    late words, counts as one attempt. So the journal has a bound whoever speaks.

    Args:
        spec: the bounds on what trials say.
        clock: monotonic seconds.
    """

    def __init__(self, spec: TrialSpec, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._of_itself = Allowance(SELF_RATE, clock())
        self._spec = spec
        self._most_words = spec.max_metrics + BESIDE_METRICS
        self._heard: dict[tuple[int, int], int] = {}
        self._of_others = 0

    def introduces_itself(self, holds: int = 0) -> bool:
        """Count a hello, or news of what its host has; false if there are too many to be meant."""
        self._of_itself.spend(1 + holds / HOLDS_PER_TOKEN, self._clock())
        return not self._of_itself.flooded

    def joined(self, holds: Collection[tuple[int, int]]) -> None:
        """The agent holds these, and says again what was not acknowledged."""
        self._heard = dict.fromkeys(holds, 0)
        self._of_others = 0

    def given(self, trial: int, attempt: int) -> None:
        """The agent is told to start this one."""
        self._heard.setdefault((trial, attempt), 0)

    def judge(self, word: wire.Word) -> None:
        """Count a word. Raises :class:`Refused`."""
        key = (word.trial, word.attempt)
        if key not in self._heard:
            heard = self._of_others = self._of_others + 1
        elif isinstance(word, wire.Ended):
            heard = 0
            del self._heard[key]
        else:
            heard = self._heard[key] = self._heard[key] + 1
        if heard > self._most_words:
            text = f"more than {self._most_words:,} words of attempt {word.trial}.{word.attempt}"
            raise Refused("words of an attempt", text)
        if isinstance(word, (wire.MetricRelayed, wire.FinalRelayed)):
            spec = self._spec
            fault = metric_fault(word.value, spec.max_metric_bytes, any_value=spec.nni)
            if fault:
                raise Refused("metric", f"attempt {word.trial}.{word.attempt} reports {fault}")
