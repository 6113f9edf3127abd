"""One search space means the same in short, in NNI's form and in Python."""

from __future__ import annotations

import inspect
import json
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given

from tests.unit.tuners.space.written import PARAMETERS, SPACES, Forms
from tuners.space import Space, SpaceError, as_json, parameters, parse, problems
from tuners.space import parameters as bq
from tuners.space.forms import FORMS
from tuners.space.model import Dimension


@given(SPACES)
def test_three_forms_are_one_space(space: dict[str, Forms]) -> None:
    """Mutation: ``int`` leaves its upper bound out, as ``randint`` does."""
    python = parse({name: one.python for name, one in space.items()})
    short = parse({name: one.short for name, one in space.items()})
    assert python == short == parse({name: one.json for name, one in space.items()})
    assert not problems({name: one.short for name, one in space.items()})


@given(PARAMETERS)
def test_what_is_shown_is_read_back(one: Forms) -> None:
    """Mutation: a choice whose only option is a list is shown without brackets around it."""
    assert parse({"p": repr(one.python)}) == parse({"p": one.python})


@given(SPACES)
def test_each_form_becomes_nnis_json_and_that_stays(space: dict[str, Forms]) -> None:
    wanted = {name: one.json for name, one in space.items()}
    assert as_json({name: one.short for name, one in space.items()}) == wanted
    assert json.loads(json.dumps(as_json(wanted))) == wanted
    written = as_json(parse({name: one.python for name, one in space.items()}))
    assert parse(json.loads(json.dumps(written))) == parse(wanted)


def test_every_call_has_a_constructor_with_its_arguments() -> None:
    for name, form in FORMS.items():
        taken = inspect.signature(getattr(parameters, name)).parameters
        if name != "choice":
            assert list(taken) == [*form.arguments, *form.defaults]
        for argument, usual in form.defaults.items():
            assert taken[argument].default == usual
        assert not problems({"p": form.example})
    assert {*FORMS} <= {*parameters.__all__}


def test_branches_by_name_are_a_list_of_options() -> None:
    named = {"_type": "choice", "_value": {"sgd": {"m": "uniform(0, 1)"}, "adam": None}}
    listed = [{"_name": "sgd", "m": {"_type": "uniform", "_value": [0, 1]}}, {"_name": "adam"}]
    assert as_json({"o": named}) == {"o": {"_type": "choice", "_value": listed}}
    assert parse({"o": named}) == parse(
        {"o": bq.choice({"sgd": {"m": bq.uniform(0, 1)}, "adam": {}})}
    )


def test_old_files_mean_what_they_meant() -> None:
    """Mutation: texts among the options of a choice are read as parameters."""
    old = {
        "p": {"_type": "choice", "_value": ["uniform(0, 1)", "int(1, 2)", ["choice(1)"]]},
        "q": {"_type": "choice", "_value": [{"w": "uniform(0, 1)"}]},
        "n": {"_type": "choice", "_value": [{"_name": "int(1, 2)"}]},
    }
    assert as_json(old) == old
    ((_, choice), *_) = parse(old).dimensions
    assert choice == bq.choice("uniform(0, 1)", "int(1, 2)", ["choice(1)"])
    own = {"cells": "conv3x3(64)", "op": "uniform", "how": "unifrom(0, 1)", "many": [1, "int(1)"]}
    assert problems(own, strict=False) == ()
    assert as_json(own) == own


def test_what_cannot_be_read_stays_to_be_refused() -> None:
    wrong = {"p": "uniform(1, 0)", "q": "uniform(0, 1)"}
    assert as_json(wrong) == {"p": "uniform(1, 0)", "q": {"_type": "uniform", "_value": [0, 1]}}
    assert len(problems(as_json(wrong), strict=False)) == 1


BAD = [
    ("logunifrom(1, 2)", "calls 'logunifrom'", "did you mean loguniform(1e-4, 1e-1)?"),
    ("suggest_int(1, 2)", "no kind of parameter", "did you mean int(low, high)?"),
    ("bq.int(1, 2)", "calls 'bq.int'", "did you mean int(1, 8)?"),
    ("os.system('true')", "calls 'os.system'", "the names are choice, int"),
    ("loguniform", "lacks its arguments", "write e.g. loguniform(1e-4, 1e-1)"),
    ("0.1 to 0.5", "is a text and no parameter", "loguniform(1e-4, 1e-1)"),
    ("uniform(0)", "lacks high", "uniform(0, 1)"),
    ("uniform()", "lacks low and high", "uniform(0, 1)"),
    ("uniform(0, 1, 2)", "has 3 arguments, and takes 2 at most", "uniform(low, high)"),
    ("uniform(0, hgh=1)", "no argument 'hgh'; did you mean 'high'?", "uniform(low, high)"),
    ("uniform(0, low=1)", "has 'low' twice", "uniform(low, high)"),
    ("uniform(0, 1", "is not closed", ""),
    ("uniform(0, 1))", "a ')' too many", ""),
    ("uniform(0, , 1)", "cannot be read at its character 12", ""),
    ("uniform(0, 1) + 1", "is more than one call", "uniform(0, 1) alone"),
    ("uniform(0, 2 ** 3)", "has '2 ** 3'", "nothing is computed"),
    ("uniform(*x)", "cannot take '*'", ""),
    ("uniform(**x)", "cannot take '**'", ""),
    ("uniform(0, __import__('os').name)", "has \"__import__('os').name\"", "nothing is computed"),
    ("uniform(0, uniform(0, 1))", "where a plain value stands", "below the name of an option"),
    ("uniform(1, 0)", "is contradictory: 1 to 0 holds nothing", "lower bound first"),
    ("uniform(0, one)", "whose high must be a number, not the text 'one'", "uniform(0, 1)"),
    ("uniform(0, 1e999)", "whose high must be finite", ""),
    ("loguniform(0, 1)", "whose low must be above 0", ""),
    ("quniform(0, 1, 0)", "whose q is the step of quniform and must be above 0", ""),
    ("normal(0, 0)", "whose sigma is the sigma of normal and must be above 0", ""),
    ("int(1, 8.0)", "needs a whole number for high, not the number 8.0", ""),
    ("int(8, 1)", "holds nothing: 8 to 1", "lower bound first"),
    ("int(1, 8, 0)", "needs a step above 0, not 0", ""),
    ("int(0, 8, log=true)", "needs a low above 0 for log, not 0", ""),
    ("int(1, 8, 2, log=true)", "has a step, and is logarithmic", "choice(16, 32, 64)"),
    ("int(1, 8, log=1)", "needs true or false for log", ""),
    ("choice()", "is empty", ""),
    ("choice(1, 1)", "whose option 2 repeats the option 1", ""),
    ("choice(a, b=1)", "takes options only, not b=", ""),
    ("choice(1, uniform(0, 1))", "where a plain value stands", "below the name of an option"),
    ("choice({'a': 3})", "has the number 3 below 'a'", "{a: {}}"),
    ("choice({'a': {'x': unifrm(0, 1)}})", "calls 'unifrm'", "did you mean uniform(0, 1)?"),
    ("choice({'a': {'x': uniform(1, 0)}})", "whose option 1 at x._value is contradictory", ""),
    ("choice('\0')", "cannot be read", ""),
    ("choice('\ud800')", "cannot be read", ""),
    ("choice({1: {}})", "whose key is the number 1", ""),
    ("choice(" + "[" * 3000 + "]" * 3000 + ")", "cannot be read", ""),
    ("choice(" + "1," * 6000 + ")", "10,000 are the most", ""),
    ("block(1, 8, int(1, 2))", "calls 'block'", "did you mean blocks(1, 8, {'op': choice("),
    ("blocks(1, 8)", "lacks block", "write e.g. blocks(1, 8, {'op': choice("),
    ("blocks(1, 8, int(1, 2), 3)", "has 4 arguments, and takes 3", "blocks(low, high, block)"),
    ("blocks(8, 1, int(1, 2))", "is contradictory: 8 to 1 blocks", "lower bound first"),
    ("blocks(0, 0, int(1, 2))", "is contradictory: 0 to 0 blocks", "an upper one above 0"),
    ("blocks(-1, 2, int(1, 2))", "whose low must be a whole number from 0 up, not", ""),
    ("blocks(1, 2.5, int(1, 2))", "whose high must be a whole number from 0 up, not", ""),
    ("blocks(int(1, 2), 3, int(1, 2))", "whose low must be a whole number from 0 up, not", ""),
    ("blocks(1, 2, conv)", "whose block is 'conv', which is a text and no parameter", ""),
    ("blocks(1, 2, {})", "whose block is empty: a block has one parameter at least", ""),
    ("blocks(1, 2, {x: [a, b]})", "whose block at x must be a mapping", "choice('conv', 'pool')"),
    ("blocks(1, 2, {x: int(2, 1)})", "holds nothing: 2 to 1", "lower bound first"),
    ("blocks(1, 2, {x: uniform(2, 1)})", "whose block at x._value is contradictory", ""),
    ("blocks(1, 2, {_name: a})", "whose block at _name is the name of an option", "choice({"),
    ("blocks(1, 2, {x: int(1, 2), _constraints: ['x < 2']})", "below an option or in a block", ""),
    ("blocks(1, 2000, int(1, 2))", "may have 2,000 blocks, and 1,000 are the most", ""),
    ("blocks(1, 40, {x: blocks(1, 40, int(1, 2))})", "may have 1,640 blocks", ""),
]


@pytest.mark.parametrize("text, words, hint", BAD, ids=[text[:30] for text, _, _ in BAD])
def test_a_wrong_short_form_has_one_error_with_what_to_write(
    text: str, words: str, hint: str
) -> None:
    (problem,) = problems({"p": text})
    assert problem.path == ("p",)
    assert words in problem.message or "nested too deeply" in problem.message
    assert hint in problem.hint
    assert as_json({"p": text}) == {"p": text}


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda: bq.loguniform(0, 1), "loguniform(0, 1): low must be above 0 for loguniform"),
        (lambda: bq.uniform(1, 0), "uniform(1, 0) is contradictory"),
        (lambda: bq.uniform(1, 1), "uniform(1, 1) is contradictory: 1 to 1 holds nothing"),
        (lambda: bq.int(1, cast("int", 8.5)), "needs a whole number for high"),
        (lambda: bq.int(0, 8, log=True), "int(0, 8, log=True) needs a low above 0"),
        (lambda: bq.choice(), "choice() is empty"),
        (lambda: bq.choice(1, bq.uniform(0, 1)), "option 2 is the parameter uniform(0, 1)"),
        (lambda: bq.choice({"a": 1}), "has the number 1 below 'a'"),
        (lambda: bq.choice(object()), "option 1 must be a JSON value, not a object"),
        (lambda: bq.space({"a": bq.uniform}), "a is a function, 'uniform', and no parameter"),
        (lambda: bq.space({"a": "uniform(0)"}), "a is 'uniform(0)', which lacks high"),
        (lambda: bq.blocks(3, 1, bq.int(1, 2)), "blocks(3, 1, int(1, 2)) is contradictory"),
        (lambda: bq.blocks(1, 2, {"a": bq.int}), "block at a is a function, 'int'"),
        (
            lambda: bq.blocks(1, 2, bq.space({"a": bq.int(1, 3)}, ["a < 2"])),
            "block at _constraints stands below an option or in a block",
        ),
    ],
)
def test_a_wrong_call_has_one_error(call: object, words: str) -> None:
    with pytest.raises(SpaceError) as refused:
        call()  # type: ignore[operator]
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "text, python",
    [
        (
            "choice({ridge: {lambda: uniform(0, 1)}, 'if, or: not': {}})",
            bq.choice({"ridge": {"lambda": bq.uniform(0, 1)}, "if, or: not": {}}),
        ),
        ("blocks(1, 2, {def: int(1, 2)})", bq.blocks(1, 2, {"def": bq.int(1, 2)})),
        ("choice(and, or, true, None)", bq.choice("and", "or", True, None)),
    ],
)
def test_words_of_python_name_parameters_and_options(text: str, python: Dimension) -> None:
    assert parse({"p": text}) == parse({"p": python})


@pytest.mark.parametrize(
    "space, place",
    [
        ({"_name": bq.uniform(0, 1), "x": bq.uniform(0, 1)}, ("_name",)),
        ({"x": {"lr": bq.uniform(0, 1)}}, ("x",)),
        ({"x": {"sgd": {"lr": "uniform(0, 1)"}, "adam": {}}}, ("x",)),
    ],
)
def test_parameters_below_a_name_are_written_as_a_choice(
    space: dict[str, Any], place: tuple[str, ...]
) -> None:
    """What stands below no choice was passed over, or refused without its place."""
    json.dumps(as_json(space))
    (problem,) = problems(as_json(space))
    assert (problem.path, "choice({'sgd': {'momentum'" in problem.hint) == (place, True)
    with pytest.raises(SpaceError):
        parse(space)


def test_a_block_is_written_in_any_form() -> None:
    """Mutation: what stands in a block of NNI's form is passed on as it is."""
    json_ = {"_type": "blocks", "_value": [1, 3, {"w": {"_type": "randint", "_value": [1, 3]}}]}
    mixed = [
        "blocks(1, 3, {w: int(1, 2)})",
        "blocks(1, 3, {'w': int(1, 2)})",
        {"_type": "blocks", "_value": [1, 3, {"w": "int(1, 2)"}]},
        {"_type": "blocks", "_value": [1, 3, {"w": bq.int(1, 2)}]},
        {"_type": "blocks", "_value": (1, 3, bq.space({"w": bq.int(1, 2)}))},
        bq.blocks(1, 3, {"w": "int(1, 2)"}),
        bq.blocks(1, 3, bq.space({"w": bq.int(1, 2)})),
        json_,
    ]
    for written in mixed:
        assert as_json({"c": written}) == {"c": json_}
        assert parse({"c": written}) == parse({"c": json_})
    widths = {"_type": "blocks", "_value": [1, 3, "int(1, 2)"]}
    assert as_json({"c": widths}) == as_json({"c": bq.blocks(1, 3, bq.int(1, 2))})


def test_values_are_frozen_and_show_themselves() -> None:
    lr = bq.loguniform(1e-4, 1e-1)
    with pytest.raises(AttributeError):
        lr.low = 3  # type: ignore[misc]
    space = bq.space({"lr": lr, "n": bq.int(1, 9, 4)}, ["n * lr < 1"])
    assert isinstance(space, Space)
    assert repr(space) == (
        "{'lr': loguniform(0.0001, 0.1), 'n': int(1, 9, 4), '_constraints': ['n * lr < 1']}"
    )


def test_numbers_of_numpy_are_numbers() -> None:
    """Mutation: a bound that numpy has computed is refused, or stays numpy's."""
    made = {
        "a": bq.uniform(np.float32(0.5), np.float64(2)),
        "b": bq.int(np.int64(1), np.int32(9), np.int64(2)),
        "c": bq.choice(list(np.arange(3))),
        "d": bq.choice(np.array(["x", "y"])),
        "e": bq.choice(np.bool_(True), [np.int64(1), 2], {"k": np.float64(0.5)}),
    }
    assert as_json(made) == as_json(
        {
            "a": bq.uniform(0.5, 2.0),
            "b": bq.int(1, 9, 2),
            "c": bq.choice(0, 1, 2),
            "d": bq.choice("x", "y"),
            "e": bq.choice(True, [1, 2], {"k": 0.5}),
        }
    )
    json.dumps(as_json(made))
    with pytest.raises(SpaceError, match="must be finite, not nan"):
        bq.uniform(0, np.float64("nan"))


@pytest.mark.parametrize(
    "call, sentence",
    [
        ("int(0, 10**30)", "must fit into 64 bits"),
        ("randint(-10**20, 5)", "must fit into 64 bits"),
        ("int(1, 2**70, log=True)", "must fit into 64 bits"),
        ("uniform(-1e308, 1e308)", "is wider than any number"),
        ("quniform(-1e308, 1e308, 1e300)", "is wider than any number"),
        ("lognormal(1000, 10)", "is the mean of the logarithm"),
    ],
)
def test_what_no_number_can_hold_is_refused_before_it_is_drawn(call: str, sentence: str) -> None:
    """Mutation: the first draw ends in an error of numpy's or of Python's."""
    with pytest.raises(SpaceError, match=sentence):
        eval(f"bq.{call}")
