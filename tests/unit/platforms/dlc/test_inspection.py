"""The service looked over before anything is ordered: each thing that is not there, in a sentence
with the keys that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Finding, Severity
from tests.support.services.dlc import DLC, Dlc
from tests.support.services.played import Orders, whole_section

Look = Callable[..., list[Finding]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Dlc]:
    with DLC.serving(tmp_path, 4) as service:
        yield service
        assert service.machines.jobs == {}, "nothing was started"


@pytest.fixture
def look(served: Dlc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Look:
    monkeypatch.setattr("dispatcher.http_services.patience.FIRST_S", 0.0)

    def inspect(**keys: Any) -> list[Finding]:
        section = whole_section(DLC, served, tmp_path, **keys)
        given = {key: value for key, value in section.items() if value is not ...}
        orders = Orders(given, tmp_path)
        return list(orders.platform.inspect(orders.service))

    return inspect


def wrong(found: list[Finding]) -> dict[str, str]:
    """Problems and notes, by their first key."""
    bad = [each for each in found if each.severity is not Severity.OK]
    return {
        str(each.keys[0][-1]): f"{each.severity.value}: {each.text}; {each.hint}" for each in bad
    }


def test_one_that_is_in_order(look: Look) -> None:
    found = look()
    assert wrong(found) == {}
    texts = [each.text for each in found]
    assert any(text.endswith("knows us, and lists jobs") for text in texts)
    assert "cn-tests has machines 'ecs.g6.2xlarge'" in texts
    assert wrong(look(ecsSpec=..., resourceId="quota7", cpus=4, memory="16GB")) == {}


def test_a_wrong_key(look: Look, served: Dlc) -> None:
    """Mutation: the workspace is blamed."""
    (secret,) = served.tokens
    served.tokens = {"another"}
    found = wrong(look())
    assert "problem: cannot list jobs: Specified signature does not match" in found["accessKeyId"]
    assert "is the key right, whole and enabled?" in found["accessKeyId"]
    assert secret not in str(found)


def test_a_workspace_that_is_not_ours_and_a_region_that_is_none(look: Look) -> None:
    assert "no member of the workspace '999'" in wrong(look(workspaceId="999"))["region"]
    found = look(region="nowhere-1", address="https://127.0.0.1:1")
    assert "problem: cannot list jobs: no answer" in wrong(found)["region"]


def test_a_service_that_is_away(look: Look, served: Dlc) -> None:
    served.is_away = True
    assert "no answer" in wrong(look())["region"]


def test_machines_that_are_not_there(look: Look, served: Dlc) -> None:
    """Mutation: it is found out by a job that waits for ever."""
    assert "has no machines 'ecs.z9.huge'" in wrong(look(ecsSpec="ecs.z9.huge"))["ecsSpec"]
    found = wrong(look(ecsSpec="ecs.gn6v-c8g1.2xlarge"))
    assert "the GPUs of 'ecs.gn6v-c8g1.2xlarge' are 1, and the file says 0" in found["gpus"]
    served.sold_out.add("ecs.g6.2xlarge")
    assert wrong(look())["ecsSpec"].startswith("note: machines 'ecs.g6.2xlarge' are sold out")


def test_a_clock_that_is_hours_off_is_no_hindrance(look: Look, served: Dlc) -> None:
    """Requests are dated by the service's clock, which its first refusal tells."""
    served.skew_s = -3 * 3600.0
    assert wrong(look()) == {}
