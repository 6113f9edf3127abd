"""Whatever such a file holds, it is an experiment or a list of errors with places."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from dispatcher.experiment import ExperimentConfig, ExperimentFileErrors, load_experiment
from dispatcher.experiment.loader import converted
from tests.support.lengths import some_of
from tests.unit.foreign_files.conftest import AI_PLATFORM, KATIB, VERTEX_AI, Files

_WORDS = [
    "", "0", "-1", "1e400", "nan", "0.5", "x y", "${trialParameters.x}", "$(X)", "\0", "/bin/x",
    "double", "int", "discrete", "logUniform", "normal", "tpe", "hyperband", "medianstop", "File",
    "StdOut", "JSON", "min", "INTEGER", "DISCRETE", "UNIT_LOG_SCALE", "MAXIMIZE", "BASIC_GPU",
    "GRID_SEARCH", "gs://x", "10s", "name", "a" * 300,
]  # fmt: skip
_KEYS = [
    "name", "value", "min", "max", "list", "step", "kind", "spec", "parameters", "values", "x",
    "categoricalValues", "discreteValues", "conditionalParameterSpecs", "command", "args", "env",
    "valueFrom", "resources", "filter", "fileSystemPath",
]  # fmt: skip
_VALUES: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(_WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_KEYS), inner, max_size=3)
    ),
    max_leaves=5,
)


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values of a document."""
    yield path
    inner: Iterable[tuple[Any, Any]] = ()
    if isinstance(node, dict):
        inner = node.items()
    elif isinstance(node, list):
        inner = enumerate(node)
    for key, value in inner:
        yield from places(value, (*path, key))


@pytest.mark.parametrize("text", [KATIB, AI_PLATFORM, VERTEX_AI], ids=["katib", "ai", "vertex"])
@settings(
    max_examples=some_of(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_any_value_in_any_place(files: Files, text: str, data: st.DataObject) -> None:
    """Values of a wrong kind, one more field, or none. What is read converts to what is read."""
    document = yaml.safe_load(text)
    for _ in range(data.draw(st.integers(1, 2))):
        path = data.draw(st.sampled_from(list(places(document))[1:]))
        above = document
        for key in path[:-1]:
            above = above[key]
        if isinstance(above, dict) and data.draw(st.booleans()):
            above[data.draw(st.sampled_from(_KEYS))] = data.draw(_VALUES)
        else:
            above[path[-1]] = data.draw(_VALUES)
    file = files.write(yaml.safe_dump(copy.deepcopy(document), sort_keys=False))
    try:
        config = load_experiment(file)
    except ExperimentFileErrors as raised:
        errors = raised.errors
    else:
        errors = []
        native = converted(file)
        if native is not None:  # else it is none of theirs any more
            assert load_experiment(files.write(native, "native.yml")) == config
    assert errors or isinstance(config, ExperimentConfig)
    assert all(each.message and each.where.startswith(str(file)) for each in errors)
