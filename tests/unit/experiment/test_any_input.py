"""Whatever a file says, it is an experiment or a list of errors; never anything else."""

import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dispatcher.experiment import (
    ExperimentConfig,
    ExperimentFileErrors,
    build_experiment,
    parse_experiment,
)
from dispatcher.experiment.keys import keys_of, sections_of
from tests.support.lengths import some_of

from .conftest import GOOD

_TOP = sorted(keys_of(ExperimentConfig).values())
_INNER = sorted({key for _, inner in sections_of(ExperimentConfig) for key in inner.model_fields})
_VALUES: SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["10m", "all", "best", "a:b", "../x", "~nobody_at_all/x", "\0", "Random"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*_INNER, "_type", "_value"]), inner, max_size=3)
        | st.dictionaries(st.integers() | st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)
_SETTINGS = settings(
    max_examples=some_of(150),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@_SETTINGS
@given(st.dictionaries(st.sampled_from(_TOP), _VALUES, max_size=4))
def test_any_values(good: dict[str, Any], tmp_path: Path, values: dict[str, Any]) -> None:
    try:
        config = build_experiment(good | values, base_folder=tmp_path)
    except ExperimentFileErrors as raised:
        spoken = [error.message and error.where for error in raised.errors]
    else:
        spoken = [isinstance(config, ExperimentConfig)]
    assert spoken
    assert all(spoken)


@pytest.mark.parametrize("path", ["~nobody_at_all/x", "x" * 5000, "\0", "e.yml/x", "", "//"])
@pytest.mark.parametrize(
    "key", ["trialCommand", "trialCodeDirectory", "weightsRoot", "experimentWorkingDirectory"]
)
def test_any_path(good: dict[str, Any], tmp_path: Path, key: str, path: str) -> None:
    (tmp_path / "e.yml").touch()
    with contextlib.suppress(ExperimentFileErrors):
        build_experiment(good | {key: path}, base_folder=tmp_path)
    rest = {name: value for name, value in good.items() if name != "searchSpace"}
    tuner = {"file": path, "className": "A"}
    reference = {"T": f"file:{path}"}
    with pytest.raises(ExperimentFileErrors):
        build_experiment(rest | {"searchSpaceFile": path}, base_folder=tmp_path)
    with pytest.raises(ExperimentFileErrors):
        build_experiment(good | {"tuner": tuner}, base_folder=tmp_path)
    with pytest.raises(ExperimentFileErrors):
        build_experiment(good | {"trialEnvironment": reference}, base_folder=tmp_path)


@_SETTINGS
@given(st.text(alphabet=st.sampled_from("ab:-?*&!|>'\"%@`#,[]{}<\n\t ~=0.1\\")))
@example("? a\n: b\n")
@example("<<: 3\n")
@example("<<: [1]\na: 1\n")
@example("a: !!int x\n")
@example("a: !!float []\n")
@example("=: 1\n")
@example("%YAML 1.1\n---\na: 1\n")
@example("a: 0x\n")
@example("a: " + "9" * 5000)
def test_any_text(tmp_path: Path, text: str) -> None:
    with contextlib.suppress(ExperimentFileErrors):
        parse_experiment(text, "e.yml", tmp_path)
    with contextlib.suppress(ExperimentFileErrors):
        parse_experiment(GOOD + text, "e.yml", tmp_path)


@pytest.mark.parametrize("cut", range(0, len(GOOD), 7))
def test_a_file_cut_short_names_a_line(tmp_path: Path, cut: int) -> None:
    with pytest.raises(ExperimentFileErrors) as refused:
        parse_experiment(GOOD[:cut], "e.yml", tmp_path)
    assert all(error.where.startswith("e.yml:") for error in refused.value.errors)
