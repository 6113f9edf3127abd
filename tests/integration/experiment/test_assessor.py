"""An assessor stops trials early; whether their last intermediate counts is the file's to say."""

from __future__ import annotations

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Phase
from tests.integration.experiment.conftest import CODE, Lab
from tests.support.checker import check_store


@pytest.mark.parametrize("keep", [False, True])
def test_weak_trials_are_stopped_early(lab: Lab, keep: bool) -> None:
    folder = lab.create(
        function="until_told",
        maxTrialNumber=4,
        assessor={
            "className": "evolving:StopsTheWeak",
            "codeDirectory": str(CODE),
            "keepResult": keep,
        },
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    events = lab.rows(folder)
    reasons = {x.trial: x.reason for x in events if isinstance(x, e.AttemptEnded)}
    assert reasons[1] is EndReason.FINISHED
    assert reasons[3] is EndReason.FINISHED
    assert reasons[0] is EndReason.STOPPED_EARLY
    delivered = {x.trial for x in events if isinstance(x, e.ResultDelivered)}
    assert delivered == ({0, 1, 2, 3} if keep else {1, 3})
