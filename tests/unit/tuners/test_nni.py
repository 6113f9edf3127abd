"""Built-in tuners in the words of NNI's trials."""

from __future__ import annotations

import pytest

from tuners.builtin import BUILTIN_NAMES, make_builtin
from tuners.errors import NoMoreTrialError
from tuners.nni import BatchTuner, NniHyperbandTuner, NniPBTTuner
from tuners.space import SpaceError

SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


def test_a_batch_is_run_once_in_its_order() -> None:
    tuner = make_builtin("BatchTuner")
    options = [{"a": 1}, {"a": 2}, {"a": 1}]
    tuner.update_search_space({"all": {"_type": "choice", "_value": options}})
    assert [tuner.generate_parameters(n) for n in (3, 5)] == options[:2]
    again = BatchTuner()
    again.update_search_space({"all": {"_type": "choice", "_value": options}})
    again.restore(tuner.state())
    again.restore_proposal(6, {"a": 1})
    with pytest.raises(NoMoreTrialError):
        again.generate_parameters(7)
    assert tuner.generate_parameters(8) == {"a": 1}


@pytest.mark.parametrize("space", [SPACE, {**SPACE, "y": {"_type": "choice", "_value": [1]}}])
def test_what_is_no_batch_is_named(space: dict[str, object]) -> None:
    tuner = BatchTuner()
    assert tuner.handles(space)
    with pytest.raises(SpaceError):
        tuner.update_search_space(space)


def test_hyperband_tells_its_budget_in_nnis_word() -> None:
    tuner = NniHyperbandTuner(max_budget=9)
    tuner.update_search_space(SPACE)
    drawn = [tuner.generate_parameters(n) for n in range(9)]
    assert all(set(one) == {"x", "TRIAL_BUDGET"} and one["TRIAL_BUDGET"] == 1 for one in drawn)
    for number, one in enumerate(drawn):
        tuner.receive_trial_result(number, one, one["x"])
        tuner.trial_end(number, True)
    promoted = tuner.generate_parameters(9)
    assert promoted["TRIAL_BUDGET"] == 3
    assert promoted["x"] == max(one["x"] for one in drawn)


def test_pbt_names_folders_and_the_child_loads_its_parents() -> None:
    tuner = NniPBTTuner(all_checkpoint_dir="/all", population_size=2)
    tuner.update_search_space(SPACE)
    first = [tuner.generate_parameters(n) for n in (0, 1)]
    assert [one["load_checkpoint_dir"] == one["save_checkpoint_dir"] for one in first] == [True] * 2
    for number, one in enumerate(first):
        tuner.receive_trial_result(number, one, one["x"])
        tuner.trial_end(number, True)
    child = tuner.generate_parameters(2)
    assert child["load_checkpoint_dir"] in {one["save_checkpoint_dir"] for one in first}
    assert child["save_checkpoint_dir"] not in {one["save_checkpoint_dir"] for one in first}
    assert set(child) == {"x", "load_checkpoint_dir", "save_checkpoint_dir"}


def test_they_are_no_names_to_choose_from() -> None:
    assert not {"Batch", "NniPBT", "NniHyperband", "NniBOHB"} & set(BUILTIN_NAMES)
