"""When a simulated save has looked for the last time whether somebody else has saved there."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np

from tests.support.weight_files import Saver
from tests.support.witnesses import Mark
from trial_runtime.weights import save
from trial_runtime.weights.format.manifest import MANIFEST_NAME


class _AtEachLine(random.Random):
    """Dice by which a save stands still wherever it can."""

    def random(self) -> float:
        return 0.0


def _saver(root: Path, attempt: int) -> Saver:
    mark, path = Mark(3, attempt, 1), str(root / "3")

    def work() -> str:
        return save({"w": np.ones(2)}, path, root=str(root), writer=mark.author).digest

    return Saver(work, path, "3", mark, _AtEachLine())


def test_a_save_that_has_read_that_there_is_nothing_has_looked(tmp_path: Path) -> None:
    """Whoever publishes from then on is replaced; the first look of a save decides nothing."""
    saver = _saver(tmp_path, 2)
    looks: list[bool] = []  # at each line in a look, whether that counts as looked
    while not saver.step():
        at = saver.frame("_published_before")
        if at is not None:
            looks.append(saver.has_looked)
            if looks[-1]:
                assert at.f_locals["raw"] is None
                break
    saver_before = _saver(tmp_path, 1)
    while not saver_before.step():
        pass
    assert saver_before.error is None
    assert b'"3.1"' in (tmp_path / "3" / MANIFEST_NAME).read_bytes()
    while not saver.step():
        pass
    assert saver.error is None, "it did not look again"
    assert b'"3.2"' in (tmp_path / "3" / MANIFEST_NAME).read_bytes()
    assert looks.count(False) >= 3, "the first look, and the second one before it has read"


def test_a_save_that_has_not_read_yet_is_refused(tmp_path: Path) -> None:
    """Up to there nothing counts as looked, since another's weights are still seen."""
    saver = _saver(tmp_path, 2)
    seen = 0
    while not saver.step():
        at = saver.frame("_published_before")
        seen += at is not None and "raw" not in at.f_locals
        if seen == 2:  # just before the read of the second look
            break
    assert not saver.has_looked
    other = _saver(tmp_path, 1)
    while not other.step():
        pass
    while not saver.step():
        pass
    assert "already holds weights of trial 3.1" in str(saver.error)
