"""Failures as a policy, with real processes: what ends an experiment, and what pauses it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.control.client import HeadClient
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Phase
from dispatcher.errors import BackendError
from dispatcher.notices import NoticeKind
from dispatcher.queries import ExperimentReader, experiment_summary
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import left_of, processes_of, wait_until

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def create(lab: Lab, function: str, **keys: Any) -> Path:
    return lab.create(
        {"name": "Random"}, trialFunction=f"failing:{function}", searchSpace=SPACE, **keys
    )


def ends(lab: Lab, folder: Path) -> list[e.AttemptEnded]:
    return [event for event in lab.rows(folder) if isinstance(event, e.AttemptEnded)]


@pytest.mark.parametrize("reuse", ["none", "inProcess"])
def test_an_experiment_in_which_everything_fails_is_ended_and_the_cause_named(
    lab: Lab, reuse: str
) -> None:
    folder = create(
        lab, "missing_package", reuse=reuse, maxTrialNumber=100, maxFailedTrialsInARow=4
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.FAILED
    (reason,) = [n.text for n in notices if n.kind is NoticeKind.FINISHED]
    assert reason.startswith("4 trials failed in a row with: failed (exit code 1): ")
    assert "ModuleNotFoundError: No module named 'a_package_that_nobody_has'" in reason
    assert len({end.trial for end in ends(lab, folder)}) <= 6  # what ran then may finish
    phase, _ = lab.run(folder)  # a resume counts anew
    assert phase is Phase.FAILED
    assert len({end.trial for end in ends(lab, folder)}) >= 8
    assert check_store(folder / "journal.sqlite") == []
    assert left_of(folder) == []


def test_half_of_the_trials_may_fail(lab: Lab) -> None:
    folder = create(lab, "every_other", maxTrialNumber=60)
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    reasons = [end.reason for end in ends(lab, folder)]
    assert reasons.count(EndReason.FINISHED) == 30
    assert len(reasons) == 60


def test_a_time_out_is_tried_again_where_the_file_says_so(lab: Lab, tmp_path: Path) -> None:
    keys: dict[str, Any] = {
        "reuse": "forked",
        "maxTrialNumber": 1,
        "maxTrialDuration": "5s",
        "trialStopGrace": "100ms",
        "trialEnvironment": {"SCRATCH": str(tmp_path)},
    }
    folder = create(lab, "too_long_at_first", retries={"timedOut": 1}, **keys)
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert [end.reason for end in ends(lab, folder)] == [EndReason.TIMED_OUT, EndReason.FINISHED]


# -- a disk that runs full ---------------------------------------------------------------------

DISK_MB = 40


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; mounting one takes root."""
    place = tmp_path / "disk"
    place.mkdir()
    if os.geteuid() != 0:
        pytest.skip("mounting takes root")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", place],
        capture_output=True,
        text=True,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _snapshot(folder: Path) -> dict[str, Any]:
    try:
        with HeadClient(folder) as head:
            return dict(head.ask("snapshot"))
    except BackendError:
        return {"why": {"cause": "", "text": ""}, "counts": {"running": 0}}


def _status(folder: Path) -> str:
    with ExperimentReader.open(folder) as reader:
        return experiment_summary(reader).status.value


def test_no_trial_begins_on_a_disk_that_is_nearly_full(lab: Lab, disk: Path) -> None:
    """What runs goes on, ``why`` names the disk, and with room again the rest follows."""
    ballast = disk / "ballast"
    folder = create(
        lab,
        "fills_the_disk",
        maxTrialNumber=100,
        weightsRoot=str(disk / "weights"),
        trialEnvironment={"BALLAST": str(ballast), "BALLAST_BYTES": str((DISK_MB - 1) << 20)},
    )
    head = lab.start(folder)
    snapshot: dict[str, Any] = {}

    def paused() -> bool:
        snapshot.update(_snapshot(folder))
        why, running = snapshot["why"]["cause"], snapshot["counts"]["running"]
        return (why, running) == ("DISK_LOW", 1)

    wait_until(paused, "new trials pause")
    assert f"the disk of {disk / 'weights'} has 1 MB left" in snapshot["why"]["text"]
    assert "2 MB are kept in reserve" in snapshot["why"]["text"]
    assert [row["trial"] for row in snapshot["running"]] == [0]
    assert snapshot["why"]["text"] in snapshot["troubles"]
    begun = snapshot["submitted"]
    assert begun < 100
    ballast.unlink()
    wait_until(lambda: _status(folder) == "completed", f"the rest after {begun} trials")
    events = lab.rows(folder)
    low = next(n for n, event in enumerate(events) if isinstance(event, e.DiskLow))
    room = next(n for n, event in enumerate(events) if isinstance(event, e.DiskRecovered))
    assert low < room
    assert all(end.reason is EndReason.FINISHED for end in ends(lab, folder))
    assert max(end.attempt for end in ends(lab, folder)) == 1
    assert check_store(folder / "journal.sqlite") == []
    wait_until(lambda: not processes_of(folder), f"head {head} gone")


def test_without_a_reserve_nothing_pauses(lab: Lab, disk: Path) -> None:
    (disk / "ballast").write_bytes(b"x" * ((DISK_MB - 1) << 20))
    folder = create(
        lab,
        "every_other",
        maxTrialNumber=4,
        weightsRoot=str(disk / "weights"),
        diskReserve=0,
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert not [event for event in lab.rows(folder) if isinstance(event, e.DiskLow)]
