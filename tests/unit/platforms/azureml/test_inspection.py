"""A workspace looked over before anything is ordered: each thing that is not there, in a
sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Finding, Severity
from tests.support.services.azureml import AZUREML, AzureMl
from tests.support.services.played import Orders, whole_section

Look = Callable[..., list[Finding]]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[AzureMl]:
    with AZUREML.serving(tmp_path, 4) as service:
        yield service
        assert service.machines.jobs == {}, "nothing was started"


@pytest.fixture
def look(served: AzureMl, tmp_path: Path) -> Look:
    def inspect(**keys: Any) -> list[Finding]:
        orders = Orders(whole_section(AZUREML, served, tmp_path, **keys), tmp_path)
        return list(orders.platform.inspect(orders.service))

    return inspect


def wrong(found: list[Finding]) -> dict[str, str]:
    """Problems and notes, by their key."""
    bad = [each for each in found if each.severity is not Severity.OK]
    return {str(each.keys[0][-1]): f"{each.severity.value}: {each.text}" for each in bad}


def test_one_that_is_in_order(look: Look, tmp_path: Path) -> None:
    stores = ["workspaceblobstore", {"name": "workspacefilestore", "here": str(tmp_path)}]
    found = look(datastores=stores)
    assert wrong(found) == {}
    texts = [each.text for each in found]
    assert any(text.endswith("lists jobs of 'nas-lab'") for text in texts)
    assert "0 of 64 nodes are there" in texts
    assert "jobs have the datastore 'workspaceblobstore' at /mnt/workspaceblobstore" in texts


def test_each_thing_that_is_not_there(look: Look) -> None:
    """Mutation: it is found out by a job that fails, or waits for ever."""
    assert "was not found" in wrong(look(workspace="other"))["workspace"]
    assert "was not found" in wrong(look(resourceGroup="other"))["workspace"]
    assert "no compute with name x1" in wrong(look(compute="x1"))["compute"]
    assert "a datastore with name x" in wrong(look(datastores=["x"]))["name"]
    assert "nas:8 was not found" in wrong(look(image="azureml:nas:8"))["image"]


def test_a_compute_that_will_run_nothing(look: Look, served: AzureMl) -> None:
    served.compute["scaleSettings"] = {"maxNodeCount": 0}
    assert "may have no node at all" in wrong(look())["compute"]
    served.compute["scaleSettings"] = {"maxNodeCount": 1}
    assert "1 nodes at most" in wrong(look())["allocations"]
    served.compute["scaleSettings"] = {"maxNodeCount": 4}
    quota = {"error": {"code": "QuotaExceeded", "message": "Approved cores: 0"}}
    served.compute["errors"] = [quota]
    assert wrong(look())["compute"] == "problem: QuotaExceeded: Approved cores: 0"
    served.compute["errors"] = []
    served.compute["osType"] = "Windows"
    assert "runs Windows" in wrong(look())["compute"]
    served.compute |= {"osType": "Linux", "vmPriority": "LowPriority"}
    assert wrong(look())["compute"].startswith("note: ")


def test_a_blob_store_is_no_shared_folder(look: Look, tmp_path: Path) -> None:
    """Mutation: weights that are half written are read by a child."""
    found = look(datastores=[{"name": "workspaceblobstore", "here": str(tmp_path)}])
    (problem,) = [each for each in found if each.severity is Severity.PROBLEM]
    assert "is AzureBlob, where no file is renamed at once" in problem.text
    assert "weightsRoot: az://" in problem.hint


def test_an_environment_whose_image_could_not_be_built(look: Look, served: AzureMl) -> None:
    served.environments["nas:7"]["provisioningState"] = "Failed"
    assert "could not be built" in wrong(look())["image"]


def test_a_token_that_has_expired_and_an_azure_that_is_away(look: Look, served: AzureMl) -> None:
    served.tokens = {"another"}
    (found,) = look()
    assert found.keys == (("token",),)
    assert "has expired" in found.text
    served.tokens = set()
    served.is_away = True
    (found,) = look()
    assert found.severity is Severity.PROBLEM
    assert "no answer" in found.text
