"""Planted secrets are looked for wherever somebody might read them."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from dispatcher.control.client import HeadClient, RunFile
from tests.integration.cli.conftest import PATIENCE_S, TRIAL, TUNER, Place
from tests.support.processes import processes_of, wait_until
from trial_runtime.session_file import read_session

FROM_VARIABLE = "planted-in-a-variable-7f3a"
FROM_FILE = "planted-in-a-file-91cc"

EXPERIMENT = """\
experimentName: secrets
tuner: {className: "search:Chain", codeDirectory: .}
trialFunction: train:main
trialConcurrency: 2
maxTrialNumber: 2
trialStopGrace: 1s
trialRetries: 0
headGrace: 5s
logLevel: debug
channel: {transport: tcp}
experimentWorkingDirectory: kept
trialEnvironment: {API_TOKEN: "env:PLANTED", KEY: "file:key.txt"}
trainingService: {platform: local, reuseMode: REUSE}
"""

#: Fails with its secrets in its last words, as careless code does.
CARELESS = TRIAL.replace(
    "    return float",
    """\
    raise RuntimeError(f"refused: {os.environ['API_TOKEN']} {os.environ['KEY']}")
    return float""",
)


@pytest.fixture(params=["none", "inProcess", "forked"])
def place(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Place]:
    one = Place(tmp_path)
    (tmp_path / "experiment.yml").write_text(EXPERIMENT.replace("REUSE", request.param))
    (tmp_path / "search.py").write_text(TUNER)
    (tmp_path / "train.py").write_text(CARELESS)
    (tmp_path / "key.txt").write_text(FROM_FILE + "\n")
    one.environment["PLANTED"] = FROM_VARIABLE
    try:
        yield one
    finally:
        one.close()


def session_secrets(folder: Path) -> set[str]:
    """What the processes of a running experiment prove themselves with."""
    run = RunFile.read(folder)
    assert run is not None
    found = {run.token}
    found.add((folder / "agent-local.id").read_text().rpartition(":")[2])
    told = json.loads((folder / "tuner_host.json").read_text())
    found.add(told["endpoint"]["routing_id"].rpartition(":")[2])
    for name in ("head", "tuner", "agent"):
        found.add((folder / "keys" / name).read_text().split()[1])
    for path in Path(run.sockets).glob("s*.json"):
        found.add(read_session(str(path)).routing.rpartition(":")[2])
    assert all(len(secret) >= 32 for secret in found), "it can be guessed"
    return found


def files_below(*folders: Path) -> list[Path]:
    return [path for folder in folders for path in folder.rglob("*") if path.is_file()]


def holding(secrets: set[str], path: Path) -> set[str]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:  # it was taken away at this moment
        return set()
    return {secret for secret in secrets if secret.encode() in content}


def is_private(path: Path) -> bool:
    return not stat.S_IMODE(path.stat().st_mode) & 0o077


def asked(*words: str) -> str:
    """The answer of a command, in this process."""
    result = CliRunner().invoke(app, list(words), prog_name=PROGRAM)
    assert result.exit_code == 0, result.output
    return result.output


def test_secrets_stay_where_they_belong(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    run = place.start("run", "experiment.yml")
    place.wait_until_running(2)
    folder = place.experiment
    sockets = Path(RunFile.read(folder).sockets)  # type: ignore[union-attr]
    own = session_secrets(folder)

    # Files: those that hold a secret of a session are private, and so are their folders.
    holders = {path for path in files_below(folder, sockets) if holding(own, path)}
    assert {"run.json", "agent-local.id", "tuner_host.json"} <= {path.name for path in holders}
    for path in holders:
        assert is_private(path), f"{path} can be read by others"
        assert "logs" not in path.parts
    assert is_private(sockets)
    assert is_private(sockets.parent)
    assert is_private(folder / "keys")

    # Processes: nothing on a command line, where all users of a machine can read it; nothing
    # of a session in an environment.
    everything = own | {FROM_VARIABLE, FROM_FILE}
    running = [*processes_of(folder), *processes_of(sockets)]
    assert running
    for process in running:
        try:
            command = "\0".join(process.cmdline())
            values = "\0".join(f"{k}={v}" for k, v in process.environ().items())
        except psutil.NoSuchProcess:  # one that was just passing
            continue
        assert not [secret for secret in everything if secret in command], command
        assert not [secret for secret in own if secret in values], command
    assert FROM_FILE not in "".join(psutil.Process(run.pid).environ().values())

    # The head's own words.
    with HeadClient(folder) as client:
        assert not [secret for secret in everything if secret in repr(client.ask("snapshot"))]

    place.go()
    out, err = run.communicate(timeout=PATIENCE_S)
    place._started.remove(run)
    planted = {FROM_VARIABLE, FROM_FILE}
    assert not [secret for secret in everything if secret in out + err]
    wait_until(lambda: not processes_of(folder), "the end")

    # What is left: the trial's own output has what the trial printed, and nothing else has.
    for path in files_below(folder):
        if path.name in ("stdout", "stderr"):
            continue
        assert not holding(planted, path), f"{path} holds what was planted"
        assert not holding(own, path) or is_private(path)
    for name in ("BEQUEATH_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, place.environment[name])
    for words in (
        ("experiment", "show"),
        ("experiment", "export"),
        ("experiment", "list"),
        ("trial", "show", "0"),
        ("trial", "ls"),
        ("status",),
    ):
        said = asked(*words)
        assert not [secret for secret in everything if secret in said], words
    # That it failed is told, with the place where the secret was.
    shown = asked("trial", "show", "0")
    assert "refused: [masked] [masked]" in shown
    assert os.listdir(folder / "logs")
