"""A cluster looked over before anything is ordered: each thing that is not there, in a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import BackendError
from dispatcher.findings import Finding, Severity
from dispatcher.http_services.errors import Unreachable
from tests.support.services.openpai import OPENPAI, OpenPai
from tests.support.services.played import Orders, whole_section

Look = Callable[..., list[Finding]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[OpenPai]:
    with OPENPAI.serving(tmp_path, 4) as service:
        yield service
        assert service.machines.jobs == {}, "nothing was started"


@pytest.fixture
def look(served: OpenPai, tmp_path: Path) -> Look:
    def inspect(**keys: Any) -> list[Finding]:
        orders = Orders(whole_section(OPENPAI, served, tmp_path, **keys), tmp_path)
        return list(orders.platform.inspect(orders.service))

    return inspect


def wrong(found: list[Finding]) -> dict[str, str]:
    """Problems and notes, by their key."""
    bad = [each for each in found if each.severity is not Severity.OK]
    return {str(each.keys[0][-1]): f"{each.severity.value}: {each.text}" for each in bad}


def test_one_that_is_in_order(look: Look) -> None:
    found = look(storages=["home"], virtualCluster="research", gpus=2)
    texts = [each.text for each in found if each.severity is Severity.OK]
    assert any(text.startswith("OpenPAI v1.8.0 at 127.0.0.1:") for text in texts)
    assert "jobs have the storage 'home' at /mnt/home" in texts
    assert list(wrong(found)) == ["address"], "it is no https"


def test_each_thing_that_is_not_there(look: Look, served: OpenPai) -> None:
    """Mutation: it is found out by a job that waits for ever."""
    assert "there is no virtual cluster 'x'" in wrong(look(virtualCluster="x"))["virtualCluster"]
    assert "in all, and a job asks for 99" in wrong(look(gpus=99))["gpus"]
    assert "memoryMB" in wrong(look(memory="9TB"))["memory"]
    assert "there is no storage 'x'" in wrong(look(storages=["home", "x"]))["name"]
    assert "no user 'bob'" in wrong(look(user="bob"))["user"]
    served.allowed = ["default"]
    assert "may not use" in wrong(look(virtualCluster="research"))["virtualCluster"]


def test_storages_that_do_not_serve(look: Look, served: OpenPai, tmp_path: Path) -> None:
    here = str(tmp_path / "shared")
    own = wrong(look(storages=[{"name": "scratch", "here": here}]))
    assert own["name"].startswith("note: ")
    assert "the folder of 'alice' alone" in own["name"]
    served.read_only.add("home")
    found = wrong(look(storages=[{"name": "home", "here": here}]))
    assert "problem: " in found["name"]
    assert "read only" in found["name"]


def test_a_token_for_jobs_alone_does(look: Look, served: OpenPai) -> None:
    """Application tokens may not ask who they are. Mutation: that is a problem."""
    served.application = True
    assert list(wrong(look())) == ["address"]


def test_a_token_that_has_expired_and_a_cluster_that_is_away(look: Look, served: OpenPai) -> None:
    """Mutation: the section is blamed, and not its token."""
    served.tokens = {"another"}
    assert "problem: cannot ask for its version: the token is not valid" in wrong(look())["token"]
    served.is_away = True
    with pytest.raises(Unreachable):
        look()
    assert issubclass(Unreachable, BackendError)
