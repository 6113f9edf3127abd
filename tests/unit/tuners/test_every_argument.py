"""Each argument of each tuner and assessor of the catalogue: a wrong one is named, with its name.

The cases are read from the constructors, so that a new tuner, or a new argument, is tried as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

from tuners import TunerArgumentError, make_builtin
from tuners.builtin import (
    BUILTIN_ASSESSORS,
    BUILTIN_NAMES,
    NNI_NAMES,
    builtin_assessor,
    builtin_tuner,
    fold,
    make_assessor,
)
from tuners.catalogue import EXAMPLE_ARGUMENTS

#: What is no value of a kind, and what is none that means anything.
WRONG: dict[str, tuple[Any, ...]] = {
    "int": ("seven", 1.5, True, -7),
    "float": ("seven", True, -7.0, float("nan")),
    "bool": ("perhaps", 2),
    "str": (17, "no such word"),
    "Mapping": (17, ["a"]),
    "Sequence": (17, {"a": 1}),
}

#: Any text will do, and any number.
FREE = {("ENAS", "store"): "str", ("Threshold", "lower"): "float", ("Threshold", "upper"): "float"}

#: Of no meaning any more: Optuna says so of its own, and NNI's file of ours.
WITHOUT_MEANING = {("CMA-ES", "restart_strategy"), ("NniPBT", "all_checkpoint_dir")}


def owners() -> Iterator[tuple[str, type]]:
    for name in (*BUILTIN_NAMES, *NNI_NAMES):
        yield name, builtin_tuner(name)
    for name in BUILTIN_ASSESSORS:
        yield name, builtin_assessor(name)


def parameters(owner: type) -> Iterator[inspect.Parameter]:
    """Those of the constructor, and those that it hands on."""
    for one in inspect.signature(owner).parameters.values():
        if one.kind is one.VAR_KEYWORD and hasattr(owner, "more_arguments"):
            theirs = inspect.signature(owner.more_arguments()).parameters.values()
            yield from (each for each in theirs if each.name != "seed")
        elif one.kind is not one.VAR_KEYWORD:
            yield one


def cases() -> Iterator[tuple[str, str, Any]]:
    for name, owner in owners():
        for one in parameters(owner):
            if (name, one.name) in WITHOUT_MEANING:
                continue
            kinds = [each.strip() for each in str(one.annotation).split("|")]
            for kind, values in WRONG.items():
                if not any(each == kind or each.startswith(f"{kind}[") for each in kinds):
                    continue
                for value in values:
                    if FREE.get((name, one.name)) == kind and isinstance(value, str | float):
                        continue
                    if isinstance(value, float) and "float" in kinds and kind == "int":
                        continue
                    if isinstance(value, str) and "str" in kinds and kind != "str":
                        continue
                    yield name, one.name, value


def make(name: str, arguments: dict[str, Any]) -> None:
    if name in BUILTIN_ASSESSORS:
        bounds = {"lower": 0.0} if name == "Threshold" and "upper" not in arguments else {}
        make_assessor(name, {**bounds, **arguments})
    else:
        make_builtin(name, {**EXAMPLE_ARGUMENTS.get(fold(name), {}), **arguments})


@pytest.mark.parametrize("name, argument, value", list(cases()), ids=repr)
def test_a_wrong_value_is_named_with_its_argument(name: str, argument: str, value: Any) -> None:
    with pytest.raises(TunerArgumentError) as refused:
        make(name, {argument: value})
    assert argument in f"{refused.value.message} {refused.value.hint}"


@pytest.mark.parametrize("name", [name for name, _ in owners()])
def test_a_misspelt_argument_gets_the_nearest(name: str) -> None:
    known = [one.name for one in parameters(dict(owners())[name])]
    for argument in known:
        wrong = f"{argument}x"
        with pytest.raises(TunerArgumentError) as refused:
            make(name, {wrong: 1})
        assert wrong in refused.value.message
        assert "Did you mean" in str(refused.value.hint)
    if not known:
        with pytest.raises(TunerArgumentError, match="It takes: none"):
            make(name, {"anything": 1})
