"""A head may open more files than its children are given."""

from __future__ import annotations

import subprocess
import sys

import pytest

SAYS = """
import resource, subprocess, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (SOFT, HARD))
from trial_runtime import descriptors
print(descriptors.raise_limit(), *resource.getrlimit(resource.RLIMIT_NOFILE))
child = subprocess.Popen([sys.executable, "-c",
    "import sys, resource; sys.stdin.read(); print(*resource.getrlimit(resource.RLIMIT_NOFILE))"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
descriptors.give_back(child.pid)
print(child.communicate()[0], end="")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="prlimit")
@pytest.mark.parametrize(
    "soft, hard, ours, theirs",
    [(256, 2048, 2048, 256), (256, 20_000, 10_240, 256), (2048, 2048, 2048, 2048)],
)
def test_ours_is_raised_and_that_of_children_is_as_before(
    soft: int, hard: int, ours: int, theirs: int
) -> None:
    """Mutations: with 256 of them anybody who connects keeps the head from its journal; trials
    that use ``select`` fail with large numbers."""
    program = SAYS.replace("SOFT", str(soft)).replace("HARD", str(hard))
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert said.stdout.splitlines() == [f"{ours} {ours} {hard}", f"{theirs} {hard}"], said.stderr
