"""One planted fault."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

#: The seeds of ``make test``.
SIM = "tests/sim/test_seeds.py::test_every_promise_holds_whatever_happens"


class DoesNotApply(Exception):
    """The text that a mutation replaces is not there, or not once."""


@dataclass(frozen=True)
class Mutation:
    """``old`` stands in ``file`` exactly once and becomes ``new``; ``tests`` must then fail.

    ``promise`` is its number in docs/reliability.md; ``what`` says what a user would suffer.
    ``hangs``: a test that never ends is how it is found. Only where no test can do better: that
    tests take long is found as well.
    """

    name: str
    promise: int
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...] = (SIM,)
    hangs: bool = False

    def applied_to(self, text: str) -> str:
        """The file's text with the fault in it. Raises :class:`DoesNotApply`."""
        count = text.count(self.old)
        if count != 1:
            raise DoesNotApply(f"{self.name}: found {count} times in {self.file}: {self.old!r}")
        return text.replace(self.old, self.new)
