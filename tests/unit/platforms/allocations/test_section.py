"""How many allocations a file asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from dispatcher.platforms.allocations.section import Allocations, AllocationService


def test_fewer_at_most_than_at_least_names_the_key_and_a_way_out() -> None:
    with pytest.raises(ValidationError) as raised:
        Allocations.model_validate({"min": 3})
    (error,) = raised.value.errors()
    assert "has the 'min' 3, which is more than its 'max', 1" in error["msg"]
    misfit = error["ctx"]["error"]
    assert (misfit.at, misfit.hint) == (("min",), "write '{min: 3, max: 3}', or 3 for short")
    assert Allocations.model_validate({"min": 3, "max": 3}).bounds.least == 3


@pytest.mark.parametrize("written, slots", [({"trials": 1}, 1), ({"trials": 3}, 2), (2, 2)])
def test_a_worker_has_no_more_slots_than_trials(written: object, slots: int) -> None:
    service = AllocationService.model_validate({"allocations": written, "slots": 2})
    assert {each.slots for each in service.planned(8, ())} == {slots}
    assert service.trials_per_place == (written["trials"] if isinstance(written, dict) else 0)


@pytest.mark.parametrize("written", ["four", True, [4]])
def test_what_is_no_number_of_allocations(written: object) -> None:
    """Mutation: only a section of keys is asked for, and a number will do."""
    with pytest.raises(ValidationError) as caught:
        AllocationService.model_validate({"allocations": written})
    assert "must be a number, or a section such as {min: 0, max: 4}" in str(caught.value)


def test_a_shared_folder_is_one_line(tmp_path: Path) -> None:
    """It is a line of what the scheduler gets, and of what people read."""
    with pytest.raises(ValidationError) as caught:
        AllocationService.model_validate({"sharedFolder": f"{tmp_path}/a\nb"})
    assert "must be one line of plain characters" in str(caught.value)
