"""Needs that no machine can meet, and those that no trial can have: said, by whose fault."""

from __future__ import annotations

from dispatcher.core import events as e
from tests.integration.bad_input.conftest import TUNER, User

SERVICE = {"platform": "local", "reuseMode": "inProcess", "resources": {"licence": 2}}

OWN = TUNER.replace("import Tuner", "import Tuner, with_needs").replace(
    'return {"n": parameter_id}',
    'return with_needs({"n": parameter_id}, resources={"licence": NEEDED.get(parameter_id, 1)})',
)


def test_a_file_whose_trials_fit_nowhere_ends_before_anything_starts(user: User) -> None:
    answer = user.run(trainingService=SERVICE, trialCpuNumber=99_000)
    assert answer.code == 3, answer
    assert (
        "each trial needs 99000 CPUs, which no worker can ever give: the only one, local, has "
        in answer.said
    )
    assert not any(isinstance(row, e.AttemptStarted) for row in user.rows())


def test_one_trial_that_fits_nowhere_ends_alone_and_bad_needs_are_the_tuners(user: User) -> None:
    """Trial 1 never runs, request 2 is nonsense, the others are as if nothing had been."""
    user.write("tuner.py", OWN + '\n\nNEEDED = {1: 3, 2: "many"}\n')
    answer = user.run(trainingService=SERVICE, onTunerError="continue", maxTrialNumber=4)
    assert answer.code == 0, answer
    assert "trial 1 needs 3 licence, which no worker can ever give" in answer.said
    assert "_needs: resources has 'licence', which must be a number, not 'many'" in answer.said
    heard = user.heard()
    assert "end 1 False" in heard
    assert not any(line.startswith("result 1 ") for line in heard)
    assert sum(line.startswith("result ") for line in heard) == 3
    assert set(user.ended()) == {0, 3, 4}
