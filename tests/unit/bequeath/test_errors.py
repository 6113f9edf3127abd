"""Errors of all packages pass from one process to another as they are."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

import bequeath as bq
from dispatcher.errors import UserError
from dispatcher.experiment import ExperimentFileErrors
from trial_runtime.api_errors import InvalidMetric
from trial_runtime.errors import StaleWeights
from tuners.errors import ParentFailed


def _space() -> None:
    bq.uniform(1, 0)


def _file() -> None:
    bq.Study({"x": 3})


def _parent() -> None:
    raise ParentFailed(3, "exit code 1")


def _stale() -> None:
    raise StaleWeights("w/3", expected="a", actual="b", waited_s=2.0)


def _metric() -> None:
    raise InvalidMetric("is no number", hint="report one", where="trial 3")


def _user() -> None:
    raise UserError("the trial is a lambda", hint="define it with 'def'")


@pytest.mark.parametrize("raising", [_space, _file, _parent, _stale, _metric, _user])
def test_an_error_survives_a_pickle(raising: Callable[[], None]) -> None:
    """Mutation: it is made again by its text, which its constructor does not take, and a pool of
    processes hangs for ever."""
    with pytest.raises(bq.BequeathError) as raised:
        raising()
    again = pickle.loads(pickle.dumps(raised.value))
    assert type(again) is type(raised.value)
    assert str(again) == str(raised.value)
    assert (again.message, again.hint, again.where) == (
        raised.value.message,
        raised.value.hint,
        raised.value.where,
    )
    if isinstance(again, ExperimentFileErrors):
        assert [str(one) for one in again.errors] == [str(one) for one in raised.value.errors]
        assert again.exit_code == raised.value.exit_code
