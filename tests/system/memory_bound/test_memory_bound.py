"""Memory and CPU time of a trial held to their bounds by a kernel: control groups, version 2."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.guest import DISK, Guest, why_not

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not())


@pytest.fixture
def guest(tmp_path: Path) -> Iterator[Guest]:
    guest = Guest(tmp_path)
    yield guest
    guest.cut_power()


def test_the_kernel_ends_a_trial_at_its_bound_and_no_other(guest: Guest) -> None:
    inside = "tests.system.memory_bound.inside"
    guest.boot([sys.executable, "-P", "-m", inside, DISK], ROOT)
    said: list[str] = []
    for line in guest.lines(280):
        said.append(line.rstrip())
        if line == "over" or line.startswith("guest: ended"):
            break
    assert "over" in said, "\n".join(said)
    for reuse in ("none", "forked"):
        bound = "took more memory than its trialMemorySize of 80 MiB: ended by the kernel"
        assert f"end: {reuse} 1 out of memory | {bound}" in said, "\n".join(said)
        assert f"end: {reuse} 2 finished |" in said
        assert f"end: {reuse} 3 finished |" in said
        assert f"time: {reuse} 50000 100000" in said, "of each 100 ms it gets half"
        (group,) = [line for line in said if line.startswith(f"group: {reuse} ")]
        assert "0::/lent/bequeath-" in group
        assert f"left: {reuse} []" in said
