"""The disk of the journal fills up, or refuses to write, under a head that leads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.cli.exit_codes import ExitCode
from dispatcher.core import events as e
from tests.faults.experiments import Experiment
from tests.faults.storage.conftest import SmallDisk
from tests.support.processes import wait_until

HEAD_S = 240.0


class Apart(Experiment):
    """An experiment with its folder on one disk, and weights and tuner's notes on another."""

    def __init__(self, base: Path, disk: Path, **keys: Any) -> None:
        super().__init__(base, **keys)
        self._disk = disk

    def values(self) -> dict[str, Any]:
        weights = self.base / "weights"
        weights.mkdir(exist_ok=True)
        return {
            **super().values(),
            "experimentWorkingDirectory": str(self._disk),
            "weightsRoot": str(weights),
        }

    def ended(self) -> int:
        """How many trials the tuner was told the end of, as far as the journal knows."""
        return sum(isinstance(event, e.EndDelivered) for event in self.events)


Make = Callable[..., Apart]


@pytest.fixture
def apart(tmp_path: Path) -> Iterator[Make]:
    made: list[Apart] = []

    def make(disk: Path, **keys: Any) -> Apart:
        made.append(Apart(tmp_path, disk, **keys))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.close()


def test_a_full_disk_ends_the_head_in_order_and_it_goes_on_when_there_is_room(
    small_disk: SmallDisk, apart: Make
) -> None:
    experiment = apart(small_disk.folder, trials=60, function="train_longer", headGrace=60)
    experiment.create()
    head = experiment.start()
    try:
        wait_until(lambda: experiment.ended() >= 4, "trials end")
        small_disk.fill()
        assert head.wait(HEAD_S) == ExitCode.ENVIRONMENT, experiment.stderr
    finally:
        head.kill()
        head.wait()
    assert "disk is full" in experiment.stderr
    assert "bequeath resume" in experiment.stderr, "what to do is said"
    assert "Traceback" not in experiment.stderr
    told = {(what, number) for what, number, _ in experiment.calls()}
    small_disk.free()
    assert experiment.lead_to_the_end() == 0
    experiment.judge()
    assert told <= {(what, number) for what, number, _ in experiment.calls()}


def test_a_disk_that_refuses_to_write_ends_the_head_and_loses_nothing(
    tmp_path: Path, apart: Make
) -> None:
    """Refused for real: the kernel lets no file of the head's grow beyond a size. SQLite
    takes this, like any error but a full disk, for one of the device."""
    disk = tmp_path / "disk"
    disk.mkdir()
    experiment = apart(disk, trials=60, function="train_longer", headGrace=60)
    experiment.create()
    head = experiment.start()
    try:
        wait_until(lambda: experiment.ended() >= 4, "trials end")
        written = (experiment.folder / "journal.sqlite-wal").stat().st_size
        limit = written + 8192
        psutil.Process(head.pid).rlimit(psutil.RLIMIT_FSIZE, (limit, limit))
        assert head.wait(HEAD_S) == ExitCode.ENVIRONMENT, experiment.stderr
    finally:
        head.kill()
        head.wait()
    assert "refused to read or write" in experiment.stderr
    assert "Traceback" not in experiment.stderr
    told = {(what, number) for what, number, _ in experiment.calls()}
    assert experiment.lead_to_the_end() == 0
    experiment.judge()
    assert told <= {(what, number) for what, number, _ in experiment.calls()}
