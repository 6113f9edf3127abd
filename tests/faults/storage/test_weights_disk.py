"""The disk of the weights fills up, or refuses to write: nothing half is believed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.faults.experiments import Experiment
from tests.faults.storage.conftest import SmallDisk
from trial_runtime import weights
from trial_runtime.errors import DiskFull, WeightsNotFound


def test_a_full_disk_is_named_and_what_was_published_stays(small_disk: SmallDisk) -> None:
    root = str(small_disk.folder)
    first = {"encoder": np.arange(100_000.0)}
    before = weights.save(first, f"{root}/0", root=root)
    small_disk.fill()
    with pytest.raises(DiskFull, match="No space left"):
        weights.save({"encoder": np.ones(100_000)}, f"{root}/1", root=root)
    with pytest.raises(DiskFull):
        weights.save({"encoder": np.ones(100_000)}, f"{root}/0", root=root, writer="again")
    assert weights.verify(f"{root}/0", before.digest, root=root).tensors == 1
    with pytest.raises(WeightsNotFound):
        weights.load(f"{root}/1", root=root, stale_timeout_s=0.0)
    assert [path.name for path in small_disk.folder.rglob("*") if ".tmp-" in path.name] == []

    small_disk.free()
    child = weights.save({"encoder": np.ones(100_000)}, f"{root}/1", parent=f"{root}/0", root=root)
    assert weights.load(f"{root}/1", digest=child.digest, root=root)["encoder"][7] == 1.0


Make = Callable[..., Experiment]


@pytest.mark.parametrize(
    "place, error, attempts",
    [
        ("weights.data.written@2", "ENOSPC", 1),
        ("weights.manifest.synced@2", "EROFS", 1),
        ("weights.manifest.renamed@2", "EDQUOT", 1),
        ("weights.manifest.synced@2", "EIO", 0),  # a disk that has stumbled: saved again
        ("weights.manifest.renamed@2", "ESTALE", 0),
    ],
)
def test_an_attempt_that_could_not_save_is_tried_again(
    place: str, error: str, attempts: int, make: Make
) -> None:
    experiment = make(trials=8)
    experiment.create()
    assert experiment.lead_to_the_end(f"{place}=raise:{error}") == 0
    assert experiment.has_struck(place), "it was never reached"
    failed = [
        event
        for event in experiment.events
        if isinstance(event, e.AttemptEnded) and event.reason is EndReason.FAILED
    ]
    assert len(failed) == attempts
    words = os.strerror(getattr(errno, error))
    assert all(words in event.text for event in failed), "the user is told which"
    experiment.judge()  # of every trial: its generation is one more than its parent's


def test_files_of_an_attempt_before_are_set_aside(make: Make) -> None:
    """What was published before the error came is not what its successor publishes into."""
    experiment = make(trials=3)
    experiment.create()
    place = "weights.manifest.renamed@1"
    assert experiment.lead_to_the_end(f"{place}=raise:EROFS") == 0
    aside = list(Path(experiment.folder / "weights").rglob("*.superseded.1"))
    assert len(aside) == 1
    trial = aside[0].with_name(aside[0].name.removesuffix(".superseded.1"))
    assert (trial / "manifest.json").read_bytes() != (aside[0] / "manifest.json").read_bytes()
    experiment.judge()
