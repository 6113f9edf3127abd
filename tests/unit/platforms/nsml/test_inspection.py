"""A project looked over before anything is ordered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import Unreachable
from tests.support.services.nsml import Nsml
from tests.support.services.played import Orders

Look = Callable[..., list[Finding]]


@pytest.fixture
def look(make: Callable[..., Orders], served: Nsml) -> Look:
    def inspect(**keys: Any) -> list[Finding]:
        orders = make(**keys)
        found = list(orders.platform.inspect(orders.service))
        assert served.machines.jobs == {}, "nothing was started"
        return found

    return inspect


def wrong(found: list[Finding]) -> dict[str, str]:
    """Problems and notes, by their key."""
    bad = [each for each in found if each.severity is not Severity.OK]
    return {str(each.keys[0][-1]): f"{each.severity.value}: {each.text}" for each in bad}


def test_one_that_is_in_order_says_what_its_runs_have(look: Look) -> None:
    found = look()
    assert wrong(found) == {}
    assert any("10.0.0.9:/n7, 500 GB" in each.text for each in found)


def test_each_thing_that_is_not_there(look: Look, served: Nsml) -> None:
    """Mutation: it is found out by a run that nobody takes."""
    assert "no such project" in wrong(look(project="x"))["project"]
    served.project_status = "DELETING"
    assert wrong(look())["project"].startswith("problem: the project 'p-7' is DELETING")
    served.fail("GET /projects", 403)
    assert "problem: " in wrong(look())["project"]


def test_keys_that_count_no_more_and_a_service_that_is_away(look: Look, served: Nsml) -> None:
    """A clock that is hours wrong is no wrong key. Mutation: requests bear this machine's time."""
    served.skew_s = 3 * 3600.0
    assert wrong(look()) == {}
    served.tokens = {"another"}
    assert "Authentication Failed" in wrong(look())["secretKey"]
    served.is_away = True
    with pytest.raises(Unreachable):
        look()
