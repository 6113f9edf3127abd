"""Places that are taken back before a trial could end there are refused with their file, and
addresses of the head are read."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.experiment import ExperimentFileErrors, load_experiment
from dispatcher.experiment.addresses import dialed
from tests.support.packages import lay_down

FILE = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialCommand: "true"
trialConcurrency: 1
"""
INN = """\
from typing import Literal
from dispatcher.platforms.protocol import AllocationPlatform, AllocationService, Duration

class Section(AllocationService):
    platform: Literal["inn"]
    wall_time: Duration | None = None

    @property
    def wall_s(self):
        return "long" if self.wall_time == 13 else self.wall_time

class Inn(AllocationPlatform):
    protocol = 2
    section = Section

    def allocator(self, service):
        raise NotImplementedError
"""


@pytest.fixture
def _inn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    there = tmp_path / "installed"
    lay_down(there, "inn", "[bequeath.backends]\ninn = an_inn:Inn\n")
    (there / "an_inn.py").write_text(INN)
    monkeypatch.syspath_prepend(str(there))
    yield
    sys.modules.pop("an_inn", None)


@pytest.mark.usefixtures("_inn")
@pytest.mark.parametrize(
    "trials, wall, wrong",
    [
        ("maxTrialDuration: 1h", "20m", "20m, and a trial may take 1h ('maxTrialDuration')"),
        ("maxTrialDuration: 1h", "3615s", "3615s, and a trial may take 1h"),
        ("maxTrialDuration: 1h", "3616s", ""),
        ("trialStopGrace: 2m", "2m", "2m, and the end of a trial alone may take 125s"),
        ("trialStopGrace: 2m", "126s", ""),
        ("", "13s", "has places that last for 'long' seconds"),
        ("maxTrialDuration: 9000d", "null", ""),
    ],
)
def test_a_place_that_is_shorter_than_a_trial_is_refused(
    tmp_path: Path, trials: str, wall: str, wrong: str
) -> None:
    """Mutations: what its end takes is forgotten; it is the wrong way round by a second."""
    file = tmp_path / "e.yml"
    file.write_text(f"{FILE}{trials}\ntrainingService: {{platform: inn, wallTime: {wall}}}\n")
    if not wrong:
        load_experiment(file)
        return
    with pytest.raises(ExperimentFileErrors) as refused:
        load_experiment(file)
    (error,) = refused.value.errors
    assert error.where.endswith("e.yml:6:44")
    assert wrong in error.message


@pytest.mark.parametrize(
    "named, host, address",
    [
        (None, "10.0.0.1", "10.0.0.1:80"),
        (None, "::1", "[::1]:80"),
        ("login", "0.0.0.0", "login:80"),
        ("login:90", "x", "login:90"),
        ("[fe80::1]", "x", "[fe80::1]:80"),
        ("[fe80::1]:90", "x", "[fe80::1]:90"),
    ],
)
def test_an_agent_dials_what_the_file_names_or_where_the_head_listens(
    named: str | None, host: str, address: str
) -> None:
    assert dialed(named, (host, 80)) == address
