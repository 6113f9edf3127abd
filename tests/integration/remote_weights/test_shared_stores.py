"""One shared store, many trials, and a weights root that is no folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import State
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.experiment.snapshot import from_json
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.store.compaction import Compaction
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.wiring.remote_roots import local_copy
from tests.integration.remote_weights.conftest import RemoteLab
from tests.support.checker import check_store
from tests.support.s3_server import BUCKET, S3Server
from trial_runtime import weights
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.stores import RemoteStores

CODE = Path(__file__).parents[1] / "experiment" / "code"
WRITERS = 4


def shared(lab: RemoteLab, tmp_path: Path, **keys: Any) -> tuple[Path, State]:
    """Four that publish at once from one version, as ``tests/integration/experiment`` has it."""
    together = tmp_path / "together"
    together.mkdir()
    folder = lab.create(
        {
            "className": "sharing:Sharing",
            "codeDirectory": str(CODE),
            "classArgs": {"folder": str(together)},
        },
        trialFunction="sharing:share",
        trialCodeDirectory=str(CODE),
        trialConcurrency=WRITERS,
        maxTrialNumber=WRITERS + 2,
        **keys,
    )
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    journal = SqliteJournal.open(folder / "journal.sqlite")
    try:
        state = read_whole_past(journal, Compaction(journal)).state
    finally:
        journal.close()
    offers = [row for row in lab.rows(folder) if isinstance(row, e.VersionOffered)]
    assert len(offers) > len(state.stores["omega"]), "they got in one another's way"
    return folder, state


def newest_of(folder: Path, state: State) -> dict[str, Any]:
    """The newest version, read back from the store."""
    newest = state.stores["omega"][-1]
    assert newest is not None
    home = ExperimentFolder(folder)
    config = from_json(home.read_config(), "test")
    with local_copy(config, home, f".stores/{newest.path}", newest.digest) as here:
        root = f"{here}/.stores"
        read = weights.load(f"{root}/{newest.path}", digest=newest.digest, root=root)
        assert isinstance(read, dict)
        return {name: np.array(each) for name, each in read.items()}


def test_in_memory_of_the_agent(lab: RemoteLab, tmp_path: Path) -> None:
    _, state = shared(lab, tmp_path, weightsRoot="memory://lab", sharedStores=1)
    assert len(state.stores["omega"]) == 1 + WRITERS, "each change is there once"
    assert None not in state.stores["omega"], "the head cannot look there"


def test_on_s3_with_agents_that_die(
    lab: RemoteLab, tmp_path: Path, s3: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One when a version is there and the head knows nothing of it, one when a publisher was about
    to hear of another's. All changes are in the newest version, once for each time that one was
    accepted; what was refused is gone from the store, and what the dead have left."""
    struck = tmp_path / "struck"
    struck.mkdir()
    plan = ("agent.version.pushed@2", "agent.newest.pulled@1")
    monkeypatch.setenv("BEQUEATH_FAILPOINTS", ",".join(f"{each}=kill" for each in plan))
    monkeypatch.setenv("BEQUEATH_FAILPOINTS_STRUCK", str(struck))
    options = s3.options()
    folder, state = shared(
        lab,
        tmp_path,
        weightsRoot=f"s3://{BUCKET}/stores",
        weightsRootOptions=options,
        sharedStores=2,
    )
    assert sorted(each.name for each in struck.iterdir()) == sorted(plan)
    read = newest_of(folder, state)
    published = len(state.stores["omega"])
    assert read["common"].tolist() == [float(published - 1)] * 8
    times = {number: read[f"w{number}"][0] / number for number in range(1, WRITERS + 1)}
    assert min(times.values()) >= 1, "what one has published is lost"
    assert sum(times.values()) == published - 1
    stores = RemoteStores(Place(RemoteRoot(f"s3://{BUCKET}/stores", options, folder.name)))
    kept = {version.path for version in state.stores["omega"] if version is not None}
    words = ["weights", "gc", folder.name, "--yes", "--folder", str(folder.parent)]
    done = CliRunner().invoke(app, words)  # of what the run itself has left
    assert done.exit_code == 0, done.output
    inherited = {name for path in kept for name in stores.file_use(path).inherited}
    others = set(stores.folders()) - kept
    assert kept <= set(stores.folders())
    for path in others:  # only for what versions that are kept have of it
        assert any(f"/{path}/" in name for name in inherited), path
