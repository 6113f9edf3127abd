"""The companion ``schema``: what validators of tuners modelled on NNI's own ask of it."""

from __future__ import annotations

from typing import Any

import pytest

from trial_runtime.nni_shim.companions.schema import (
    And,
    Const,
    Forbidden,
    Optional,
    Or,
    Regex,
    Schema,
    SchemaError,
    SchemaMissingKeyError,
    SchemaWrongKeyError,
    Use,
)

ARGUMENTS = Schema(
    {
        "optimize_mode": And(
            str, lambda mode: mode in ("maximize", "minimize"), error="mode: not {!r}"
        ),
        Optional("population_size", default=32): And(int, lambda size: size > 0),
        Optional("path"): Or(None, Regex(r"\.json$")),
        Optional("layers"): [Or(int, {"kernel": Const(Use(int))})],
    }
)


def test_what_fits_is_handed_back_with_defaults() -> None:
    """Mutations: a default is forgotten; a list is checked by its first element only."""
    given = {"optimize_mode": "minimize", "path": "x.json", "layers": [1, {"kernel": "3"}]}
    assert ARGUMENTS.validate(given) == {**given, "population_size": 32}
    assert Schema({str: Use(float)}).validate({"lr": "0.5"}) == {"lr": 0.5}
    assert Schema({"a": int}, ignore_extra_keys=True).validate({"a": 1, "b": 2}) == {"a": 1}
    assert Schema({"a": 1, str: object}).is_valid({"a": 1, "b": None})
    assert Schema({str: int}).is_valid({}), "none of many"


@pytest.mark.parametrize(
    "wrong, kind, sentence",
    [
        ({}, SchemaMissingKeyError, "Missing key: 'optimize_mode'"),
        ({"optimize_mode": "max"}, SchemaError, "mode: not 'max'"),
        ({"optimize_mode": "maximize", "size": 1}, SchemaWrongKeyError, "Wrong key 'size'"),
        ({"optimize_mode": "maximize", "population_size": "8"}, SchemaError, "instance of 'int'"),
        ({"optimize_mode": "maximize", "population_size": 0}, SchemaError, "population_size"),
        ({"optimize_mode": "maximize", "path": "x.yml"}, SchemaError, "Key 'path' error"),
        ({"optimize_mode": "maximize", "layers": [{"kernel": "k"}]}, SchemaError, "layers"),
        ([], SchemaError, "should be a dict"),
    ],
)
def test_what_does_not_fit_is_said(wrong: Any, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        ARGUMENTS.validate(wrong)
    assert not ARGUMENTS.is_valid(wrong)


def test_a_forbidden_key_and_a_function_that_raises() -> None:
    with pytest.raises(SchemaWrongKeyError, match="Forbidden key"):
        Schema({Forbidden("seed"): object, str: int}).validate({"seed": 1})
    with pytest.raises(SchemaError, match="raised"):
        Schema(lambda value: value > 0).validate("text")
