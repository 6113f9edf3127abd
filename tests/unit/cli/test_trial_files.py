"""``trial files``, ``fetch`` and ``shell`` of trials of this machine, and of none."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest

from dispatcher.attempt_files import fetching
from dispatcher.cli.exit_codes import ExitCode
from dispatcher.cli.json_shapes import SHAPES
from dispatcher.experiment import build_experiment
from dispatcher.experiment.snapshot import to_json
from tests.unit.cli.conftest import Shell
from tests.unit.queries.evolution import evolve, make_folder


@pytest.fixture
def experiment(home: Path) -> Path:
    folder = make_folder(home)
    evolve(folder, 2)
    made = folder / "trials/0/1"
    (made / "artefacts").mkdir(parents=True)
    (made / "stdout").write_text("hello")
    (made / "artefacts/red\x1b[31m.png").write_bytes(b"x" * 2048)
    (made / "artefacts/link").symlink_to("/etc/passwd")
    return folder


def elsewhere(experiment: Path, worker: str = "gone") -> None:
    """As if trial 0 had run there."""
    with sqlite3.connect(experiment / "journal.sqlite") as store:
        store.execute("UPDATE attempts SET worker = ?", (worker,))


def test_files_are_listed_and_harmless(experiment: Path, bequeath: Shell) -> None:
    said = bequeath("trial", "files", 0)
    assert "stdout" in said.out
    assert "artefacts/red␛[31m.png" in said.out
    assert "2.0 KiB" in said.out
    assert "link" not in said.out
    assert "artefacts/link (link)" in bequeath("trial", "files", 0, "--links").out
    document = bequeath("trial", "files", 0, "--json").json()
    assert list(document) == _keys("trial files")
    assert [each["kind"] for each in document["files"]] == ["logs", "artefacts"]
    assert "has left nothing" in bequeath("trial", "files", 1).err


def test_a_long_list_is_cut(
    experiment: Path, bequeath: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        (experiment / f"trials/0/1/artefacts/{number:02}").touch()
    said = bequeath("trial", "files", 0, "-n", 5)
    assert len([line for line in said.out.splitlines() if "artefacts/" in line]) == 4
    assert "27 more" in said.err
    monkeypatch.setattr(fetching, "MOST_FILES", 10)
    assert "and more" in bequeath("trial", "files", 0).err
    assert bequeath("trial", "files", 0, "--json").json()["cut"]


def test_files_are_copied_where_one_wants_them(
    experiment: Path, bequeath: Shell, tmp_path: Path
) -> None:
    to = tmp_path / "to"
    assert "ran on this machine" in bequeath("trial", "fetch", 0).err
    document = bequeath("trial", "fetch", 0, "artefacts", "--to", to, "--json").json()
    assert list(document) == _keys("trial fetch")
    assert document["bytes"] == 2048
    assert [path.name for path in (to / "artefacts").iterdir()] == ["red\x1b[31m.png"]
    said = bequeath("trial", "fetch", 0, "--to", to)
    assert "1 file (5 B)" in said.out
    assert "1 were here already" in said.out
    left = bequeath("trial", "fetch", 0, "--to", tmp_path / "b", "--max-size", "1kb")
    assert left.code == ExitCode.ENVIRONMENT
    assert "left: artefacts/red␛[31m.png: 2,048 bytes are more" in left.err
    none = bequeath("trial", "fetch", 0, "*.jpg", "--to", to)
    assert (none.code, "matches '*.jpg'" in none.err) == (ExitCode.USER, True)
    assert bequeath("trial", "fetch", 0, "--to", to, "--max-size", "x").code == ExitCode.USAGE


@pytest.mark.parametrize("verb", ["files", "fetch", "shell", "log"])
def test_what_is_not_there_is_said(verb: str, experiment: Path, bequeath: Shell) -> None:
    unknown = bequeath("trial", verb, 99)
    assert (unknown.code, "99" in unknown.err) == (ExitCode.USER, True)
    attempt = bequeath("trial", verb, 0, "--attempt", 7)
    assert (attempt.code, "has no attempt 7" in attempt.err) == (ExitCode.USER, True)
    with sqlite3.connect(experiment / "journal.sqlite") as store:
        store.execute("DELETE FROM attempts")
        store.execute("UPDATE trials SET state = 'queued', outcome = NULL, attempt = 0")
    early = bequeath("trial", verb, 0)
    assert "trial 0 has not started: it is queued" in early.err
    assert early.code == (ExitCode.OK if verb == "log" else ExitCode.USER)


def test_a_worker_that_nobody_names_any_more(experiment: Path, bequeath: Shell) -> None:
    """The file's own faults come first here: it is one that no loader would take."""
    elsewhere(experiment)
    for verb in ("fetch", "shell", "log"):
        assert bequeath("trial", verb, 0).code in (ExitCode.USER, ExitCode.ENVIRONMENT)
    (experiment / "trials/0/1/.fetched.json").write_text(
        '{"attempt": "0.1", "kinds": ["logs"], "files": {}, "left": {"artefacts/x": "why"}}'
    )
    assert bequeath("trial", "log", 0).out == "hello\n"
    (experiment / "trials/0/1/.fetched.json").write_text(
        '{"attempt": "0.1", "kinds": ["logs"], "files": {}, "left": {"stdout.1": "why"}}'
    )
    assert bequeath("trial", "log", 0).code != 0, "not all of it is here"


def _keys(command: str) -> list[str]:
    braces = re.search(r"\{([^}]*)\}", SHAPES[command])
    assert braces is not None
    return re.split(r",\s*", braces[1])


def test_what_was_fetched_is_shown_where_a_machine_is_not_to_be_reached(
    experiment: Path, bequeath: Shell, tmp_path: Path
) -> None:
    (tmp_path / "code").mkdir()
    config = build_experiment(
        {
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "tuner": {"name": "Random"},
            "trialCommand": "true",
            "trialConcurrency": 1,
            "trialCodeDirectory": str(tmp_path / "code"),
            "weightsRoot": str(tmp_path),
            "trainingService": {
                "platform": "ssh",
                "machineList": [{"host": "127.0.0.1", "port": 1, "user": "nobody", "name": "far"}],
            },
        }
    )
    (experiment / "experiment.json").write_text(to_json(config))
    elsewhere(experiment, "far")
    for words in (("log", 0), ("files", 0)):
        said = bequeath("trial", *words)
        assert said.code == ExitCode.OK
        assert "refused the connection" in said.err
        assert "what is here of it" in said.err
        assert said.out
    for words in (("log", 1), ("files", 1), ("fetch", 0), ("shell", 0)):
        said = bequeath("trial", *words)
        assert (said.code, said.out) == (ExitCode.ENVIRONMENT, "")
        assert "refused the connection" in said.err
    told = bequeath("experiment", "fetch", "--json")
    assert told.code == ExitCode.ENVIRONMENT
    assert "refused" in json.loads(told.out)["workers"]["far"]["error"]
