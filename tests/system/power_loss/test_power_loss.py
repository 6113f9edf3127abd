"""The power goes at any moment, and what was acknowledged is on the disk afterwards."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.guest import Guest, why_not

ROOT = Path(__file__).parents[3]
TRIALS = 40

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

#: What the head let somebody see, and the fact that must be on the disk since.
Fact = tuple[str, ...]


class Machine:
    """A guest with one experiment on its disk, and what was heard of it over all its lives."""

    def __init__(self, guest: Guest, *flags: str) -> None:
        self.guest = guest
        self.flags = flags
        self.owed: set[Fact] = set()  # acknowledged in any life
        self.found: set[Fact] = set()  # on the disk, when the newest life looked last
        self.kept: set[Fact] = set()  # on the disk when the newest life began
        self.lost: set[Fact] = set()  # owed by lives before, and not kept
        self.over = ""

    def live(self, cut_after: int | None = None) -> None:
        """Boot, look at the disk, lead; cut the power after that many acknowledged facts, or
        let it run to its end."""
        self.found, self.kept = set(), set()
        owed = set(self.owed)
        inside = "tests.system.power_loss.inside"
        self.guest.boot([sys.executable, "-P", "-m", inside, str(TRIALS), *self.flags], ROOT)
        acknowledged = 0
        said: list[str] = []
        for line in self.guest.lines(280):
            said.append(line)
            acknowledged += self._hear(line)
            assert not line.startswith("guest: "), "\n".join(said)
            if line.startswith("leads:"):
                self.lost = owed - self.kept
            if self.over or acknowledged == cut_after:
                break
        else:
            pytest.fail("the guest died:\n" + "\n".join(said))
        for line in self.guest.cut_power():  # said before the cut, and heard after it
            self._hear(line)

    def _hear(self, line: str) -> bool:
        what, _, rest = line.partition(":")
        words = tuple(rest.split())
        match what, words:
            case "told", ("runs", trial, _attempt):
                self.owed.add(("proposed", trial))
            case "told", ("result", trial, value):
                self.owed.add(("final", trial, value))
            case "told", ("end", trial, "1"):
                self.owed |= {("ended", trial, "FINISHED"), ("weights", trial)}
            case "found", _:
                self.found.add(words)
            case "leads", _:
                self.kept = set(self.found)
            case "broken", _:
                pytest.fail(line)
            case "over", (phase,):
                self.over = phase
        return what == "told"


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    guest = Guest(tmp_path)
    try:
        yield guest
    finally:
        guest.cut_power()


def test_what_was_acknowledged_is_there_after_the_power_was_cut(guest: Guest) -> None:
    machine = Machine(guest)
    dice = random.Random(7)
    for _ in range(3):
        machine.live(cut_after=dice.randint(5, 35))
        assert not machine.lost
    assert machine.owed
    machine.live()
    assert not machine.lost
    assert machine.over == "COMPLETED"
    assert {trial for what, trial, *_ in machine.found if what == "weights"} == {
        str(number) for number in range(TRIALS)
    }, "all was done in the end"


def test_without_the_durable_commit_this_would_be_seen(guest: Guest) -> None:
    machine = Machine(guest, "careless")
    machine.live(cut_after=80)
    try:
        machine.live(cut_after=1)
    except pytest.fail.Exception:
        return  # so much was lost that there is no experiment any more
    assert machine.lost
