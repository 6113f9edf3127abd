"""Trials in parallel on one shared store of weights, and who is killed meanwhile."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import State, apply, new_state
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, Version
from dispatcher.maintenance.backup import back_up
from dispatcher.store.journal import SqliteJournal
from tests.integration.experiment.conftest import Lab
from tests.support.checker import check_store
from tests.support.processes import left_of, wait_until
from trial_runtime import weights

WRITERS = 4
TRIALS = WRITERS + 2


def _create(lab: Lab, tmp_path: Path, function: str = "share", **keys: object) -> Path:
    together = tmp_path / "together"
    together.mkdir()
    return lab.create(
        {
            "className": "sharing:Sharing",
            "codeDirectory": str(Path(__file__).parent / "code"),
            "classArgs": {"folder": str(together)},
        },
        trialFunction=f"sharing:{function}",
        trialConcurrency=WRITERS,
        maxTrialNumber=TRIALS,
        **keys,
    )


def _final_state(folder: Path) -> State:
    journal = SqliteJournal.open(folder / "journal.sqlite")
    try:
        rows = list(journal.rows())
    finally:
        journal.close()
    first = rows[0].event
    assert isinstance(first, e.ExperimentCreated)
    state = new_state(first.settings)
    for row in rows:
        apply(state, row.event, row.at)
    return state


def _stores_folder(folder: Path) -> Path:
    (found,) = (folder / "weights" / ".stores").iterdir()
    return found


def _load(folder: Path, version: Version) -> dict:  # type: ignore[type-arg]
    root = _stores_folder(folder)
    state = weights.load(root / version.path, digest=version.digest, root=str(root))
    assert isinstance(state, dict)
    return state


def _judge(folder: Path, *, writes: int = WRITERS) -> list[Version]:
    """Every change is in the newest version, once for each time that it was accepted; all of the
    versions are there as they were announced, and nothing else is."""
    assert check_store(folder / "journal.sqlite") == []
    versions = _final_state(folder).stores["omega"]
    assert len(versions) == 1 + writes
    newest = _load(folder, versions[-1])
    assert newest["common"].tolist() == [float(writes)] * 8
    for number in range(1, WRITERS + 1):
        times = sum(version.trial == number for version in versions)
        assert times >= 1, f"what trial {number} has published is lost"
        assert newest[f"w{number}"].tolist() == [float(number * times)] * 1000
    for number, version in enumerate(versions):
        assert _load(folder, version)["common"].tolist() == [float(number)] * 8
    return versions


def test_all_changes_of_trials_that_publish_at_once_are_in_the_newest_version(
    lab: Lab, tmp_path: Path
) -> None:
    """Four began with version 1, and none of them was the newest when three of them offered."""
    folder = _create(lab, tmp_path)
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    versions = _judge(folder)
    offers = [row for row in lab.rows(folder) if isinstance(row, e.VersionOffered)]
    assert len(offers) > len(versions), "they got in one another's way"
    finals = {row.trial: row.value for row in lab.rows(folder) if isinstance(row, e.FinalReported)}
    assert sorted(finals[TrialId(n)] for n in range(1, WRITERS + 1)) == ["2", "3", "4", "5"]
    assert finals[TrialId(TRIALS - 1)] == "5", "the tuner knew the newest"
    root = _stores_folder(folder)
    there = {str(path.relative_to(root)) for path in root.glob("omega/*")}
    assert there == {version.path for version in versions}, "what was refused is gone"
    first, last = (_tensor_bytes(root / each.path) for each in (versions[0], versions[-1]))
    assert last < first / 2, "what the version before has is not written again"
    _look_and_tidy(folder, root, versions)


def _look_and_tidy(folder: Path, root: Path, versions: list[Version]) -> None:
    """What is there is said; then all but the newest goes, but for files it refers to."""
    said = json.loads(_weights(folder, "versions", "--json"))["stores"]["omega"]
    assert said["published"] == len(versions)
    assert [each["number"] for each in said["versions"]] == [1, 2, 3, 4, 5]
    assert {each["needed"] for each in said["versions"]} == {"of the newest 10"}
    assert "5 versions of 5 published" in _weights(folder, "versions")
    use = json.loads(_weights(folder, "du", "--json"))["stores"]["omega"]
    assert use["bytes"] > sum(_tensor_bytes(root / each.path) for each in versions)
    copy = back_up(folder, folder.parent / "backups", weights=True).folder
    for number, version in enumerate(versions):
        assert _load(copy, version)["common"].tolist() == [float(number)] * 8, "taken along"
    (root / "omega" / "1.1-0ff").mkdir()  # as one who died while it wrote
    would = json.loads(_weights(folder, "gc", "--dry-run", "--keep-versions", "1", "--json"))
    assert would["stores"] == {"versions": 4}
    told = _weights(folder, "gc", "--yes", "--keep-versions", "1")
    assert "4 versions of shared stores removed, and 1 folder that died publishers left" in told
    after = _final_state(folder)
    assert after.kept_versions == {"omega": [5]}
    assert _load(folder, versions[-1])["common"].tolist() == [float(WRITERS)] * 8
    assert not (root / versions[1].path / "manifest.json").exists()
    assert json.loads(_weights(folder, "gc", "--yes", "--json"))["stores"]["versions"] == 0
    left = json.loads(_weights(folder, "du", "--json"))["stores"]["omega"]
    assert (left["versions"], left["published"]) == (1, 5)
    assert left["bytes"] < use["bytes"]


def _weights(folder: Path, *words: str) -> str:
    done = CliRunner().invoke(
        app, ["weights", words[0], folder.name, "--folder", str(folder.parent), *words[1:]]
    )
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_head_killed_between_a_version_and_its_answer(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch lies committed for a moment before anything follows from it; in such a moment
    after a version, the head is killed. Nothing is lost, and nothing is there twice."""
    folder = _create(lab, tmp_path, headGrace=60)
    monkeypatch.setenv("BEQUEATH_FAILPOINTS", "engine.batch.committed@*=sleep:0.2")
    pid = lab.start(folder)
    monkeypatch.delenv("BEQUEATH_FAILPOINTS")
    wait_until(lambda: _offers(lab, folder) >= 2, "a version of a writer")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not psutil.pid_exists(pid) or _is_zombie(pid), "the head is gone")
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    _judge(folder)
    attempts = {row.attempt for row in lab.rows(folder) if isinstance(row, e.AttemptEnded)}
    assert attempts == {1}, "no trial was started again"
    assert left_of(folder) == []


def test_trials_killed_once_they_have_offered(lab: Lab, tmp_path: Path) -> None:
    """What was accepted stays whatever became of its trial; a refused one is no version. The
    second attempt begins with the version that was pinned, as the first did."""
    folder = _create(lab, tmp_path, "share_and_die", trialRetries=1, reuse="none")
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    versions = _final_state(folder).stores["omega"]
    assert versions[1].attempt == 1, "one of the killed ones had made the first offer"
    _judge(folder, writes=WRITERS + sum(v.attempt == 1 for v in versions[1:]))


def _tensor_bytes(version: Path) -> int:
    return sum(file.stat().st_size for file in version.glob("*.safetensors"))


def _offers(lab: Lab, folder: Path) -> int:
    return sum(isinstance(row, e.VersionOffered) for row in lab.rows(folder))


def _is_zombie(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
