"""Paths of this machine as jobs have them: by mounts, the innermost first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.errors import PermanentBackendError
from dispatcher.platforms.http_jobs.translation import PathsThere
from tests.support.services.played import Orders
from tests.unit.platforms.http_jobs.test_allocator import section
from trial_runtime.agent.config import Brought, BroughtArchive, TrialSpec
from trial_runtime.endpoint import Endpoint

RANK = "RANK_THERE"


def translation(orders: Orders, bringing: Any = None) -> PathsThere:
    return PathsThere(orders.service, RANK, lambda: "TOKEN", bringing)


@pytest.mark.parametrize("path, there", [
    ("/data/a/b", "/mnt/a/b"),
    ("/data", "/mnt"),
    ("/data/deep/x", "/other/x"),
    ("/data/../data/./a", "/mnt/a"),
    ("/database/a", None),
    ("/", None),
    ("/whole/x", "/x"),
])  # fmt: skip
def test_a_path_is_known_by_the_innermost_mount(
    path: str, there: str | None, tmp_path: Path
) -> None:
    """Mutation: a folder whose name begins as that of a mount."""
    mounts = {"/data": "/mnt", "/data/deep": "/other", "/whole": "/"}
    own = section(tmp_path)
    service = Orders({**own, "mounts": {**own["mounts"], **mounts}}, tmp_path).service
    assert service.seen(path) == there


def test_everything_may_be_mounted_where_it_is(tmp_path: Path) -> None:
    orders = Orders({**section(tmp_path), "mounts": {"/": "/"}}, tmp_path)
    assert orders.service.seen("/a/b") == "/a/b"


def test_an_order_has_the_paths_and_variables_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutations: a secret of the file's environment comes as it is written; a variable of this
    machine goes along; the folder of the channel keeps its path."""
    monkeypatch.setenv("HIDDEN", "h1dden")
    own = {"PLAIN": "literal:x", "OWN": "env:HIDDEN"}
    orders = Orders(section(tmp_path, environment=own), tmp_path)
    shared = tmp_path / "shared"
    order = orders.order()
    trial = TrialSpec("/code-here", command="true", environment={"T": "env:HIDDEN", "U": "1"})
    folder = Endpoint(f"folder://{shared}/bequeath/abc123/worker/line", "r", way="folder")
    config = replace(
        order.config, trial=trial, ways=(folder,), read_roots=(f"{shared}/old", "/unseen")
    )
    object.__setattr__(order, "config", config)
    there = translation(orders).order(order)
    mounted = f"{tmp_path}/there"
    assert there.config.experiment_folder == f"{mounted}/bequeath/abc123/worker"
    assert there.log == f"{mounted}/bequeath/abc123/worker/logs/agent.log"
    assert there.config.ways[0].address == f"folder://{mounted}/bequeath/abc123/worker/line"
    assert there.config.head == config.head
    assert there.config.weights_root == f"{mounted}/weights"
    assert there.config.canonical_root == f"{shared}/weights"
    assert there.config.read_roots == (f"{mounted}/old", "/unseen")
    assert there.config.root_token == "TOKEN"
    assert there.config.rank_variable == RANK
    assert there.config.trial.code_directory == "/code"
    assert there.config.trial.own_folders
    assert there.environment["PLAIN"] == "x"
    assert there.environment["OWN"] == "h1dden"
    assert there.environment["BEQUEATH_SECRET_T"] == "h1dden"
    assert "PYTHONPATH" not in there.environment
    assert "h1dden" not in str(there.config)


def test_a_reference_that_leads_nowhere_is_said(tmp_path: Path) -> None:
    orders = Orders(section(tmp_path), tmp_path)
    order = orders.order()
    trial = TrialSpec("/c", command="true", environment={"T": "env:NOBODY_HAS_SET_THIS"})
    object.__setattr__(order, "config", replace(order.config, trial=trial))
    with pytest.raises(PermanentBackendError, match="a variable of the trials"):
        translation(orders).order(order)


class Bringing:
    """Lays code down in a folder of this machine."""

    def __init__(self, folder: str) -> None:
        self.begin = f"{folder}/begin.py"
        archive = BroughtArchive("d" * 64, 1)
        self.brought = Brought(folder, archive, archive, f"{folder}/archives", f"{folder}/asks")

    def bring(self, config: Any) -> Any:
        return replace(config, brought=self.brought)


def test_code_that_is_brought_lies_at_another_path_there(tmp_path: Path) -> None:
    """Mutation: a job looks for archives at the path of this machine."""
    orders = Orders(section(tmp_path), tmp_path)
    bringing = Bringing(f"{tmp_path}/shared/bequeath/.brought")
    there = translation(orders, bringing).order(orders.order())
    work = f"{tmp_path}/there/bequeath/.brought"
    assert there.arguments == (f"{work}/begin.py",)
    brought = there.config.brought
    assert brought is not None
    assert (brought.work, brought.archives, brought.asks) == (
        work, f"{work}/archives", f"{work}/asks",
    )  # fmt: skip
    assert there.config.runtime == f"{work}/runtime/{'d' * 64}"
    assert there.config.trial.code_directory == f"{work}/code/{'d' * 64}"


def test_a_folder_that_no_mount_has_is_said(tmp_path: Path) -> None:
    orders = Orders(section(tmp_path), tmp_path)
    order = orders.order()
    object.__setattr__(order, "config", replace(order.config, experiment_folder="/elsewhere"))
    with pytest.raises(PermanentBackendError, match="no mount of the jobs"):
        translation(orders).order(order)
