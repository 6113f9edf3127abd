"""A lock of the author's that nobody gives back blocks a result: named, with stacks, and ended."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from dispatcher.core.model import Phase
from dispatcher.head.head import Head
from dispatcher.notices import Notice, NoticeKind
from tests.integration.experiment.conftest import Lab
from tests.support.processes import left_of, wait_until


def test_it_is_named_and_the_lines_that_wait_are_shown(lab: Lab) -> None:
    folder = lab.create("HoldsItsOwnLock", maxTrialNumber=3, stallTimeout=2)
    phase, notices = lab.run(folder)
    assert phase is Phase.FAILED
    (stall,) = [n.text for n in notices if n.kind is NoticeKind.STALL]
    assert "stands still in receive_trial_result or trial_end of trial 0" in stall
    assert "it may wait for a lock" in stall
    stacks = (folder / "reports" / "stall.txt").read_text()
    assert "self.wait_for(parameter_id - 1)" in stacks
    assert "with self.own" in stacks
    assert left_of(folder) == []


@pytest.mark.parametrize("multi_thread", [True, False])
def test_a_drain_ends_though_a_result_stands_at_a_lock_for_ever(
    lab: Lab, tmp_path: Path, multi_thread: bool
) -> None:
    folder = lab.create(
        "LeavesItsLockLocked",
        "slow",
        args={"folder": str(tmp_path)},
        multiThread=multi_thread,
        maxTrialNumber=2,
        stallTimeout=3,
        trialEnvironment=lab.hold(0),
    )
    notices: list[Notice] = []
    head = Head(folder, on_notice=notices.append)
    phases: list[Phase] = []
    leading = threading.Thread(target=lambda: phases.append(head.run()))
    leading.start()
    wait_until(lambda: len(lab.snapshot(folder)["running"]) == 2, "both trials run")
    head.request_stop("drain", "the user's wish")
    lab.let_go()
    leading.join()
    assert phases == [Phase.STOPPED]
    (finished,) = [n.text for n in notices if n.kind is NoticeKind.FINISHED]
    assert "in receive_trial_result or trial_end of trial" in finished
    assert "evolving.py:" in finished
    assert "self.own.acquire()" in finished
    stacks = (folder / "reports" / "stall.txt").read_text()
    assert "self.own.acquire()" in stacks
    assert not (tmp_path / "results.txt").exists()
    assert left_of(folder) == []

    # Nothing is lost: a tuner that has been repaired is told both results after a resume.
    (tmp_path / "repaired").touch()
    assert lab.run(folder)[0] is Phase.COMPLETED
    assert sorted((tmp_path / "results.txt").read_text().split()) == ["0", "1"]
