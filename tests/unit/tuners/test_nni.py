"""Built-in tuners in the words of NNI's trials."""

from __future__ import annotations

import json

import pytest

from tuners.builtin import BUILTIN_NAMES, make_builtin
from tuners.errors import NoMoreTrialError, TunerArgumentError
from tuners.nni import BatchTuner, NniHyperbandTuner, NniPBTTuner
from tuners.nni.tpe import fading, good_ones
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
    later = BatchTuner()
    later.update_search_space({"all": {"_type": "choice", "_value": options}})
    later.import_data([{"parameter": {"a": 1}, "value": 3}])
    assert later.generate_parameters(0) == {"a": 2}


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


def test_tpe_counts_good_and_fading_trials_as_nni_does() -> None:
    tuner = make_builtin("NniTPE", {"n_startup_trials": 4, "gamma": 0.5, "linear_forgetting": 3})
    tuner.update_search_space(SPACE)
    for number in range(12):
        one = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, one, one["x"])
        tuner.trial_end(number, True)
    again = make_builtin("NniTPE", {"n_startup_trials": 4, "gamma": 0.5, "linear_forgetting": 3})
    again.update_search_space(SPACE)
    again.restore(json.loads(json.dumps(tuner.state())))
    assert again.generate_parameters(12) == tuner.generate_parameters(12)
    assert [good_ones(0.5, 3)(n) for n in (1, 16, 400)] == [1, 2, 3]
    assert fading(3)(5).tolist() == [0.2, 1.0, 1.0, 1.0, 1.0]
    with pytest.raises(TunerArgumentError):
        make_builtin("NniTPE", {"gamma": 0})


def test_results_of_another_search_are_seen_by_the_sampler() -> None:
    tuner = make_builtin("NniTPE", {"n_startup_trials": 4, "constant_liar": False})
    tuner.update_search_space(SPACE)
    rows = [{"parameter": {"x": n / 20}, "value": -abs(n / 20 - 0.8)} for n in range(20)]
    assert tuner.import_data(rows) is None
    assert 0.6 < tuner.generate_parameters(0)["x"] < 1, "it is past its random start"
    said = tuner.import_data([{"parameter": {"x": 3}, "value": 1}, {"parameter": {}, "value": 1}])
    assert said is not None
    assert said.startswith("2 of 2 imported results are no numbers, or their parameters lie")
    random = make_builtin("Random")
    assert "what was imported is ignored" in (random.import_data(rows) or "")


def test_they_are_no_names_to_choose_from() -> None:
    assert not {"Batch", "NniPBT", "NniHyperband", "NniBOHB", "NniTPE"} & set(BUILTIN_NAMES)
