"""A wait with the author's own lock held blocks the result it waits for: named, with stacks."""

from __future__ import annotations

from dispatcher.core.model import Phase
from dispatcher.notices import NoticeKind
from tests.integration.experiment.conftest import Lab
from tests.support.processes import left_of


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
