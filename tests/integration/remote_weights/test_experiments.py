"""Whole experiments whose weights lie on a store: children inherit, the checker finds nothing."""

from __future__ import annotations

import getpass
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from tests.integration.remote_weights.conftest import CODE, RemoteLab, sftp_options
from tests.support.checker import check_store
from tests.support.s3_server import BUCKET, S3Server
from tests.support.sshd import Sshd
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place


def run_to_its_end(lab: RemoteLab, folder: Path) -> dict[int, float]:
    phase, notices = lab.run(folder)
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    assert list((folder / "weights" / ".views").iterdir()) == []  # what was brought here has gone
    return lab.finals(folder)


def test_children_inherit_over_s3_and_the_best_are_kept(lab: RemoteLab, s3: S3Server) -> None:
    folder = lab.create(
        maxTrialNumber=16,
        weightsRoot=f"s3://{BUCKET}/lab",
        weightsRootOptions=s3.options(),
        retention={"best": 2},
    )
    assert max(run_to_its_end(lab, folder).values()) >= 4.0
    place = Place(RemoteRoot(f"s3://{BUCKET}/lab", s3.options(), folder.name))
    assert len(place.listing("published")) == 2
    words = ["weights", "gc", folder.name, "--yes", "--json", "--folder", str(folder.parent)]
    done = CliRunner().invoke(app, words)
    assert json.loads(done.stdout)["weights"] == [], "the run itself has left none"
    for text in (folder / "experiment.json", *(folder / "logs").iterdir()):
        assert b"not-to-be-seen" not in text.read_bytes()  # the secret itself
    assert b"not-to-be-seen" not in (folder / "journal.sqlite").read_bytes()
    _export_and_du(folder)


def _export_and_du(folder: Path) -> None:
    from safetensors.numpy import load_file

    runner, out = CliRunner(), folder / "best.safetensors"
    best = runner.invoke(
        app, ["weights", "du", folder.name, "--folder", str(folder.parent), "--json"]
    )
    assert best.exit_code == 0, best.output
    trials = [use["trial"] for use in json.loads(best.stdout)["trials"] if use["own_bytes"]]
    assert trials
    words = ["weights", "export", str(trials[-1]), "--experiment", folder.name]
    done = runner.invoke(app, [*words, "--folder", str(folder.parent), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert load_file(str(out))


def test_children_inherit_over_sftp(lab: RemoteLab, ssh: Sshd, tmp_path: Path) -> None:
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/remote"
    folder = lab.create(
        maxTrialNumber=16, reuse="forked", weightsRoot=url, weightsRootOptions=sftp_options(ssh)
    )
    assert max(run_to_its_end(lab, folder).values()) >= 4.0
    place = tmp_path / "remote" / folder.name
    assert len(list(place.glob("published/trials/*/*.json"))) == 16
    assert list((place / ".uploads").iterdir()) == []


def test_plain_files_over_memory(lab: RemoteLab) -> None:
    folder = lab.create(
        maxTrialNumber=10,
        weightsRoot="memory://lab",
        trialFunction="plainly:train",
        trialCodeDirectory=str(CODE),
    )
    found = run_to_its_end(lab, folder)
    assert max(found.values()) >= 3.0  # a child that spoils what it was given spoils nobody else's
    seen = CliRunner().invoke(app, ["weights", "du", folder.name, "--folder", str(folder.parent)])
    assert seen.exit_code == 3
    assert "memory of the experiment's agent" in seen.output


def test_two_agents_inherit_from_each_other(
    lab: RemoteLab, s3: S3Server, ssh: Sshd, tmp_path: Path
) -> None:
    there = {
        "host": "127.0.0.1",
        "name": "there",
        "port": ssh.port,
        "user": getpass.getuser(),
        "keyFile": str(ssh.folder / "client_key"),
        "knownHosts": str(ssh.folder / "known_hosts"),
        "python": sys.executable,
        "workFolder": str(tmp_path / "there"),
    }
    (tmp_path / "meeting").mkdir()
    folder = lab.create(
        maxTrialNumber=20,
        trialConcurrency=4,
        trialFunction="meeting:meet",
        trialCodeDirectory=str(CODE),
        trialEnvironment={"MEETING": str(tmp_path / "meeting")},
        weightsRoot=f"s3://{BUCKET}/two",
        weightsRootOptions=s3.options(),
        trainingService=[
            {"platform": "local", "slots": 2},
            {"platform": "ssh", "slots": 2, "machineList": [there]},
        ],
    )
    assert max(run_to_its_end(lab, folder).values()) >= 4.0
    rows = lab.rows(folder)
    with closing(sqlite3.connect(f"file:{folder}/journal.sqlite?mode=ro", uri=True)) as store:
        started = dict(store.execute("SELECT trial, worker FROM attempts"))
    assert set(started.values()) == {"local", "there"}
    parents = {
        row.trial: json.loads(row.parameters).get("parent")
        for row in rows
        if isinstance(row, e.Proposed)
    }
    crossed = [t for t, p in parents.items() if p is not None and started[t] != started[p]]
    assert crossed  # weights went from one agent to the other, which share no folder
