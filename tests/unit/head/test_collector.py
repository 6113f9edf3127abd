"""A head's own process tells the garbage collector to walk less; nobody else's is touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]

PROGRAM = """
import gc
from dispatcher.head.collector import THRESHOLDS, walk_less
class Node: pass
one = Node(); one.self = one; del one  # garbage is not kept for ever by being frozen
walk_less()
assert not any(isinstance(found, Node) for found in gc.get_objects())
assert gc.get_freeze_count() > 1000
print(gc.get_threshold() == THRESHOLDS)
"""


def test_what_lives_long_is_not_walked_again() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


def test_an_import_changes_nothing() -> None:
    program = (
        "import gc; before = gc.get_threshold(); import dispatcher.head.head, dispatcher.api\n"
    )
    program += "print(gc.get_threshold() == before, gc.get_freeze_count())"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=240
    )
    assert done.stdout.split()[0] == "True"
