"""Tuners are called as they were written."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.tuner_host.signatures import TunerCalls, accepted
from tuners import NoMoreTrialError, Tuner

OFFERED = ("customized", "trial_job_id")


class Old:
    """As for NNI 0.5."""

    def generate_parameters(self, parameter_id: int) -> int:
        return parameter_id

    def receive_trial_result(self, number: int, params: Any, reward: Any) -> None:
        self.seen: Any = (number, params, reward)


class Names(Old):
    def receive_trial_result(  # type: ignore[override]
        self, number: int, params: Any, value: Any, customized: bool
    ) -> None:
        self.seen = (number, customized)


class Swallows(Old):
    def receive_trial_result(self, *args: Any, **kwargs: Any) -> None:
        self.seen = (args, kwargs)


class Many:
    def generate_multiple_parameters(
        self, parameter_id_list: list[int], **kwargs: Any
    ) -> list[Any]:
        return [{"id": one} for one in parameter_id_list if one < 5]

    def receive_trial_result(self, parameter_id: int, parameters: Any, value: Any) -> None: ...


def test_old_tuners_get_three_arguments() -> None:
    calls = TunerCalls(Old())
    calls.result(1, {"a": 1}, 0.5, by_hand=False)
    assert calls.tuner.seen == (1, {"a": 1}, 0.5)
    assert calls.generate(4) == 4
    calls.end(4, True)
    calls.update_search_space({})
    calls.on_exit()
    assert calls.missing() is None


def test_keywords_that_are_named_or_swallowed() -> None:
    calls = TunerCalls(Names())
    calls.result(1, {}, 0.5, by_hand=True)
    assert calls.tuner.seen == (1, True)
    calls = TunerCalls(Swallows())
    calls.result(1, {}, 0.5, by_hand=False)
    assert calls.tuner.seen == ((1, {}, 0.5), {"customized": False, "trial_job_id": "1"})


@pytest.mark.parametrize(
    "method, names",
    [
        (lambda i, p, v: 0, ()),
        (lambda i, p, customized: 0, ()),  # taken by position already
        (lambda i, p, v, customized=False: 0, ("customized",)),
        (lambda i, p, v, *, trial_job_id: 0, ("trial_job_id",)),
        (lambda *args: 0, ()),
        (lambda i, p, v, **k: 0, OFFERED),
        (dict.update, ()),
    ],
)
def test_accepted(method: Any, names: tuple[str, ...]) -> None:
    assert accepted(method, 3, OFFERED) == frozenset(names)


def test_tuners_that_answer_lists() -> None:
    calls = TunerCalls(Many())
    assert calls.generate(3) == {"id": 3}
    with pytest.raises(NoMoreTrialError):
        calls.generate(5)


def test_results_by_hand_may_be_declined() -> None:
    tuner = Old()
    tuner._accept_customized = False  # type: ignore[attr-defined]
    TunerCalls(tuner).result(1, {}, 0.5, by_hand=True)
    assert not hasattr(tuner, "seen")


def test_what_is_no_tuner() -> None:
    assert TunerCalls(object()).missing() == "generate_parameters"
    only = type("Only", (), {"generate_parameters": lambda self, i: {}})
    assert TunerCalls(only()).missing() == "receive_trial_result"


def test_who_keeps_state() -> None:
    class Keeps(Tuner):
        def state(self) -> Any:
            return 1

        def restore(self, state: Any) -> None: ...

    class Half(Tuner):
        def state(self) -> Any:
            return 1

    assert TunerCalls(Keeps()).keeps_state
    assert not TunerCalls(Half()).keeps_state
    assert not TunerCalls(Old()).keeps_state
