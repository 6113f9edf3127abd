"""The services looked over before anything is ordered: each thing that is not there, in a sentence
with the keys that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Finding, Severity
from tests.support.services.google import (
    AI_PLATFORM,
    VERTEX,
    PlayedAiPlatform,
    PlayedGoogle,
    PlayedOnGoogle,
    PlayedVertex,
)
from tests.support.services.played import Orders, whole_section

Look = Callable[..., list[Finding]]


@pytest.fixture(params=[VERTEX, AI_PLATFORM], ids=["vertex", "aiplatform"])
def played(request: pytest.FixtureRequest) -> PlayedOnGoogle:
    made: PlayedOnGoogle = request.param
    return made


@pytest.fixture
def served(played: PlayedOnGoogle, tmp_path: Path) -> Iterator[PlayedGoogle]:
    with played.serving(tmp_path, 4) as service:
        yield service
        assert service.machines.jobs == {}, "nothing was started"


@pytest.fixture
def look(played: PlayedOnGoogle, served: PlayedGoogle, tmp_path: Path) -> Look:
    def inspect(**keys: Any) -> list[Finding]:
        section = whole_section(played, served, tmp_path, **keys)
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
    assert [each.severity for each in found] == [Severity.OK]
    assert found[0].text.endswith("lists jobs of the project lab-project-7")


def test_a_token_that_has_expired(look: Look, served: PlayedGoogle) -> None:
    """Mutation: the project is blamed."""
    (token,) = served.tokens
    served.tokens = {"another"}
    found = wrong(look())
    assert "problem: cannot list jobs: Request had invalid auth" in found["token"]
    assert "gcloud auth application-default login" in found["token"]
    assert token not in str(found)


def test_a_project_that_is_not_ours(look: Look, served: PlayedGoogle) -> None:
    assert "Permission denied" in wrong(look(project="another-lab"))["project"]
    served.reason = "SERVICE_DISABLED"
    assert "gcloud services enable" in wrong(look(project="another-lab"))["project"]


def test_a_service_that_is_away(look: Look, served: PlayedGoogle) -> None:
    served.is_away = True
    assert "no answer" in wrong(look())["project"]


def test_a_bucket_is_looked_at_before_the_start(
    look: Look, played: PlayedOnGoogle, served: PlayedGoogle
) -> None:
    """The services do so when a job begins. Mutation: a job that ends after an hour in a queue."""
    key = "baseOutputDirectory" if played is VERTEX else "jobDir"
    assert wrong(look(**{key: "gs://outputs/nas"})) == {}
    found = wrong(look(**{key: "gs://nowhere-at-all/nas"}))
    assert "problem: cannot look at gs://nowhere-at-all/nas: The specified bucket" in found[key]
    served.buckets["outputs"].append("nas/old/model.pt")
    assert (
        "note: gs://outputs/nas has files already" in wrong(look(**{key: "gs://outputs/nas"}))[key]
    )
    assert wrong(look(**{key: "gs://outputs/na"})) == {}, "it is another folder"
    served.fail("GET /storage", 403)
    assert "note: cannot look at" in wrong(look(**{key: "gs://outputs/nas"}))[key]


@pytest.mark.parametrize("played", [VERTEX], ids=["vertex"])
def test_a_persistent_resource(look: Look, served: PlayedGoogle) -> None:
    assert wrong(look(persistentResourceId="warm")) == {}
    missing = wrong(look(persistentResourceId="cold"))
    assert "problem: cannot look at the resource 'cold'" in missing["persistentResourceId"]
    assert isinstance(served, PlayedVertex)
    served.resources["warm"] = "STOPPING"
    assert "is STOPPING" in wrong(look(persistentResourceId="warm"))["persistentResourceId"]


@pytest.mark.parametrize("played", [AI_PLATFORM], ids=["aiplatform"])
def test_a_region_and_its_accelerators(look: Look, served: PlayedGoogle) -> None:
    """Mutation: a tier whose GPUs nobody has any more waits for ever."""
    assert "Location europe-west4 was not found" in wrong(look(region="europe-west4"))["region"]
    found = wrong(look(scaleTier="BASIC_GPU"))["acceleratorType"]
    assert "us-central1 has no NVIDIA_TESLA_K80" in found
    assert isinstance(served, PlayedAiPlatform)
    served.accelerators.append("NVIDIA_TESLA_K80")
    assert wrong(look(scaleTier="BASIC_GPU")) == {}
