"""Whoever starts a head in the background hears of a tuner that cannot be built."""

from __future__ import annotations

import pytest

from dispatcher.errors import DispatcherError
from tests.integration.experiment.conftest import Lab
from tests.support.processes import left_of


def test_a_tuner_that_cannot_be_built_is_told_to_its_starter(lab: Lab) -> None:
    folder = lab.create("Unbuildable")
    with pytest.raises(DispatcherError) as raised:
        lab.start(folder)
    assert raised.value.exit_code == 3
    assert "no_such" in str(raised.value)
    assert left_of(folder) == []
