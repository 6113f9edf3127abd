import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuners.plain_json import written_path
from tuners.space import Space, SpaceError, parse, problems
from tuners.space.model import Bell, Branch, Choice, RandInt, Range


def _entry(kind: str, *value: object) -> dict[str, object]:
    return {"_type": kind, "_value": list(value)}


@pytest.mark.parametrize(
    "entry,parameter",
    [
        (_entry("choice", "a", 1, [2]), Choice(("a", 1, [2]))),
        (_entry("choice", {"w": 1}, {"w": 2}), Choice(({"w": 1}, {"w": 2}))),
        (_entry("choice", 1, 1.0, True), Choice((1, 1.0, True))),
        (_entry("randint", -2, 3), RandInt(-2, 3)),
        (_entry("uniform", -1, 1), Range("uniform", -1, 1, None)),
        (_entry("quniform", 0, 10, 2), Range("quniform", 0, 10, 2)),
        (_entry("loguniform", 1e-4, 1), Range("loguniform", 1e-4, 1, None)),
        (_entry("qloguniform", 1, 100, 5), Range("qloguniform", 1, 100, 5)),
        (_entry("normal", 0, 2), Bell("normal", 0, 2, None)),
        (_entry("qnormal", 0, 2, 0.5), Bell("qnormal", 0, 2, 0.5)),
        (_entry("lognormal", -3, 1), Bell("lognormal", -3, 1, None)),
        (_entry("qlognormal", 0, 1, 1), Bell("qlognormal", 0, 1, 1)),
    ],
)
def test_each_of_the_types(entry: object, parameter: object) -> None:
    assert parse({"p": entry}) == Space((("p", parameter),))  # type: ignore[arg-type]
    assert not problems({"p": entry})


def test_nested_choices_to_any_depth() -> None:
    inner = _entry("choice", {"_name": "x"}, {"_name": "y", "lr": _entry("uniform", 0, 1)})
    space = {"layer": _entry("choice", {"_name": "a"}, {"_name": "b", "more": inner})}
    empty = Space(())
    below = Space((("lr", Range("uniform", 0, 1, None)),))
    deeper = Choice((Branch("x", empty), Branch("y", below)))
    outer = Choice((Branch("a", empty), Branch("b", Space((("more", deeper),)))))
    assert parse(space) == Space((("layer", outer),))


@pytest.mark.parametrize(
    "entry,place,said",
    [
        (3, "p", "must be a mapping with '_type' and '_value'"),
        ({"_value": [1]}, "p", "must be a mapping with '_type' and '_value'"),
        ({"_type": "uniform"}, "p", "has a '_type' but no '_value'"),
        ({"_type": "uniform", "_value": 3}, "p._value", "must be a list, not the number 3"),
        (_entry("unifrom", 0, 1), "p._type", "is unknown: 'unifrom'; did you mean 'uniform'?"),
        (_entry("xyz", 0, 1), "p._type", "is unknown: 'xyz'"),
        (_entry("uniform", 0, 1) | {"q": 1}, "p.q", "is neither '_type' nor '_value'"),
        (_entry("uniform", 0, 1, 2), "p._value", "has 3 values, uniform needs 2"),
        (_entry("quniform", 0, 1), "p._value", "has 2 values, quniform needs 3"),
        (_entry("uniform", 1, 1), "p._value", "is contradictory: 1 to 1 holds nothing"),
        (_entry("randint", 5, 2), "p._value", "is contradictory: 5 to 2 holds nothing"),
        (_entry("randint", 0, 2.0), "p._value[1]", "must be a whole number, not the number 2.0"),
        (_entry("randint", 0, True), "p._value[1]", "must be a whole number, not the switch true"),
        (_entry("uniform", "0", 1), "p._value[0]", "must be a number, not the text '0'"),
        (_entry("uniform", 0, float("inf")), "p._value[1]", "must be finite, not inf"),
        (_entry("loguniform", -1, 1), "p._value[0]", "must be above 0 for loguniform, not -1"),
        (_entry("quniform", 0, 1, 0), "p._value[2]", "is the step of quniform and must be above 0"),
        (_entry("normal", 0, 0), "p._value[1]", "is the sigma of normal and must be above 0"),
        (_entry("choice"), "p._value", "is empty: a choice needs at least one option"),
        (_entry("choice", 1, 2, 1), "p._value[2]", "repeats the option 1"),
        (_entry("choice", float("nan")), "p._value[0]", "must be finite, not nan"),
        (_entry("choice", 10**30), "p._value[0]", "must fit into 64 bits"),
        (_entry("choice", {"_name": "a"}, {"b": 1}), "p._value[1]", "has no '_name' while others"),
        (
            _entry("choice", "none", ["conv", _entry("choice", 3, 5)]),
            "p._value[1][1]",
            "is a parameter within an option",
        ),
        (
            _entry("choice", {"_name": "a"}, ["conv", {"x": _entry("uniform", 0, 1)}]),
            "p._value[1][1].x",
            "is a parameter within an option",
        ),
        (_entry("choice", {"_name": 1}), "p._value[0]._name", "must be text, not the number 1"),
        (
            _entry("choice", {"_name": "a"}, {"_name": "a"}),
            "p._value[1]._name",
            "repeats the name 'a'",
        ),
        (
            _entry("choice", {"_name": "a", "x": _entry("uniform", 2, 1)}),
            "p._value[0].x._value",
            "is contradictory: 2 to 1 holds nothing",
        ),
    ],
)
def test_each_mistake_names_its_place(entry: object, place: str, said: str) -> None:
    (problem,) = problems({"p": entry})
    assert written_path(problem.path) == place
    assert problem.message.startswith(said)


def test_plain_options_may_stand_among_named_ones() -> None:
    space = {"p": _entry("choice", "none", {"_name": "a", "x": _entry("uniform", 0, 1)})}
    ((_, parameter),) = parse(space).dimensions
    assert isinstance(parameter, Choice)
    plain, branch = parameter.options
    assert plain == "none"
    assert branch.name == "a"


def test_an_empty_space_is_refused_for_built_in_tuners_only() -> None:
    (problem,) = problems({})
    assert problem.message == "is empty: a built-in tuner has nothing to choose from"
    assert problems({}, strict=False) == ()
    assert parse({}) == parse("") == parse(None) == Space(())


def test_a_tuner_of_ones_own_may_bring_its_own_language() -> None:
    own = {"cells": 3, "op": {"_type": "layer_choice", "_value": ["a"]}, "lr": [1]}
    assert problems(own, strict=False) == ()
    with pytest.raises(SpaceError, match="cells must be a mapping with '_type' and '_value'"):
        parse(own)


def test_but_nnis_types_are_checked_for_it_as_well() -> None:
    wrong = {"a": _entry("uniform", 2, 1), "b": _entry("choise", 1), "c": {"x": float("nan")}}
    places = [written_path(each.path) for each in problems(wrong, strict=False)]
    assert places == ["a._value", "b._type", "c.x"]


def test_what_nni_takes_may_repeat_itself() -> None:
    twice = {"p": _entry("choice", 1, 1), "q": _entry("uniform", 2, 2)}
    assert [written_path(each.path) for each in problems(twice)] == ["p._value[1]", "q._value"]
    assert problems(twice, repeats=True) == ()
    assert parse(twice) == Space((("p", Choice((1, 1))), ("q", Choice((2.0,)))))


def test_the_parameters_of_a_branch_are_a_space_of_their_own() -> None:
    branch = {"_name": "conv", "width": _entry("choice", 8, 16)}
    assert parse(branch) == Space((("width", Choice((8, 16))),))


@pytest.mark.parametrize("bound", [10**400, float("nan")])
def test_a_bound_that_is_no_number_of_the_machine_is_refused(bound: float) -> None:
    (problem,) = problems({"p": _entry("uniform", 0, bound)})
    assert written_path(problem.path) == "p._value[1]"
    assert problem.message.startswith("must be finite")


def test_reading_stops_at_the_first_mistake_and_says_where_and_what_to_write() -> None:
    wrong = {"a": _entry("choice", {"_name": "b", "c": _entry("uniform", 2, 1)}), "d": 3}
    with pytest.raises(SpaceError) as caught:
        parse(wrong)
    assert caught.value.path == ("a", "_value", 0, "c", "_value")
    assert str(caught.value) == (
        "search space: a._value[0].c._value is contradictory: 2 to 1 holds nothing "
        "(write the lower bound first)"
    )
    with pytest.raises(SpaceError, match="search space: must be a mapping of names to parameters"):
        parse([1])


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["_type", "_value", "_name", "x"]),
            inner | st.sampled_from(["choice", "uniform", "randint", "qnormal"]),
            max_size=4,
        )
    ),
)


@given(_json, st.booleans())
def test_any_json_is_a_space_or_refused_and_a_space_is_json(value: object, strict: bool) -> None:
    if not problems(value, strict=strict):
        json.dumps(value, allow_nan=False)


def test_a_parameter_called_name_is_checked_for_a_tuner_of_ones_own() -> None:
    """Mutation: it is passed over, as the name of a branch is."""
    space = {"_name": {"_type": "unifrm", "_value": [0, 1]}}
    (problem,) = problems(space, strict=False)
    assert problem.path == ("_name", "_type")
    assert "did you mean 'uniform'?" in problem.message
    assert parse({"_name": "conv"}).dimensions == ()
