"""A team looked over before anything is ordered: each thing that is not there, in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import Unreachable
from tests.support.services.dlts import Dlts
from tests.support.services.played import Orders

Look = Callable[..., dict[str, str]]


@pytest.fixture
def look(make: Callable[..., Orders], served: Dlts) -> Look:
    """Problems and notes, by their key."""

    def inspect(**keys: Any) -> dict[str, str]:
        orders = make(**keys)
        found: list[Finding] = list(orders.platform.inspect(orders.service))
        assert served.machines.jobs == {}, "nothing was started"
        bad = [each for each in found if each.severity is not Severity.OK]
        return {str(x.keys[0][-1]): f"{x.severity.value}: {x.text}; {x.hint}" for x in bad}

    return inspect


def test_one_that_is_in_order(look: Look) -> None:
    found = look(gpus=4, gpuType="P40")
    assert list(found) == ["address"], "it is no https"
    assert "the password stands in each address" in found["address"]


def test_each_thing_that_is_not_there(look: Look, served: Dlts) -> None:
    """Mutation: it is found out by a job that waits for ever."""
    assert "'research' in 'x'" in look(cluster="x")["team"]
    assert "'x' in 'lab'" in look(team="x")["team"]
    assert "there are P40, V100" in look(gpuType="A100")["gpuType"]
    assert "has 4 GPUs, and a job asks for 5" in look(gpus=5)["gpus"]
    served.gpus = {}
    assert "has no GPUs" in look(gpus=1)["gpus"]
    assert "gpus" not in look(gpus=0)


def test_a_login_that_counts_no_more_and_a_cluster_that_is_away(look: Look, served: Dlts) -> None:
    assert "knows nobody by this" in look(email="bob@lab.org")["password"]
    served.tokens = {"another"}
    assert "problem: " in look()["password"]
    served.is_away = True
    with pytest.raises(Unreachable):
        look()
