"""``bequeath hosts`` as people call it, against a real sshd."""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from tests.support import sshd


class Caller:
    """Calls the command line; the home folder's configuration names the server ``box``."""

    def __init__(self, home: Path, server: sshd.Sshd) -> None:
        (home / ".ssh").mkdir()
        (home / ".ssh/config").write_text(
            f"Host box\n  HostName 127.0.0.1\n  Port {server.port}\n  User {getpass.getuser()}\n"
            f"  IdentityFile {server.folder}/client_key\n  IdentitiesOnly yes\n"
        )

    def __call__(self, *words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["hosts", *words], prog_name=PROGRAM)
        assert done.exit_code == code, done.output
        return done.output


@pytest.fixture
def hosts(own: sshd.Sshd, tmp_path: Path) -> Caller:
    return Caller(tmp_path, own)


def _fingerprint(server: sshd.Sshd) -> str:
    key = str(server.folder / "host_key.pub")
    told = subprocess.run(["ssh-keygen", "-lf", key], capture_output=True, check=True, text=True)
    return told.stdout.split()[1]


def test_a_machine_is_added_checked_changed_and_removed(hosts: Caller, own: sshd.Sshd) -> None:
    shown = _fingerprint(own)
    assert shown in hosts("check", "box", code=1)
    assert "Say --yes" in hosts("add", "box", code=2)
    assert "not recorded" in hosts("add", "box", "--fingerprint", "SHA256:other", code=4)
    assert json.loads(hosts("list", "--json"))["hosts"] == []
    assert shown in hosts("add", "box", "--fingerprint", shown)
    (listed,) = json.loads(hosts("list", "--json"))["hosts"]
    assert listed == {
        "name": f"[127.0.0.1]:{own.port}",
        "kind": "ssh-ed25519",
        "fingerprint": shown,
    }
    checked = json.loads(hosts("check", "box", "--python", sys.executable, "--json"))
    assert checked["ok"], checked
    topics = {finding["topic"] for finding in checked["hosts"][0]["findings"]}
    assert {"login", "python", "modules", "clock", "disk"} <= topics

    own.kill()
    (own.folder / "host_key").unlink()
    sshd.make_key(own.folder / "host_key")
    own.start()
    assert "HAS CHANGED" in hosts("check", "box", code=1)
    assert "bequeath hosts remove box" in hosts("add", "box", "--yes", code=4)
    assert json.loads(hosts("remove", "box", "--yes", "--json")) == {"removed": {"box": 1}}
    assert "was not known" in hosts("remove", "box", "--yes", code=1)
    hosts("add", "box", "--yes")


def test_the_machines_of_an_experiment_file(hosts: Caller, own: sshd.Sshd, tmp_path: Path) -> None:
    (tmp_path / "weights").mkdir()
    (tmp_path / "other").mkdir()
    machine = {
        "host": "box",
        "python": sys.executable,
        "knownHosts": str(own.folder / "known_hosts"),
    }
    there, gone = str(tmp_path / "read"), str(tmp_path / "gone")
    (tmp_path / "read").mkdir(0o500)
    wrong = machine | {
        "name": "elsewhere",
        "weightsRoot": str(tmp_path / "other"),
        "weightsReadRoots": [gone],
    }
    (tmp_path / "experiment.yml").write_text(
        json.dumps(
            {
                "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
                "trialCommand": "true",
                "trialConcurrency": 1,
                "maxTrialNumber": 1,
                "weightsRoot": str(tmp_path / "weights"),
                "weightsReadRoots": [there],
                "tuner": {"name": "Random"},
                "trainingService": {"platform": "ssh", "machineList": [machine, wrong]},
            }
        )
    )
    told = json.loads(hosts("check", str(tmp_path / "experiment.yml"), "--json", code=1))
    found = {
        one["name"]: [f for f in one["findings"] if f["verdict"] == "problem"]
        for one in told["hosts"]
    }
    assert found["box"] == []
    root, read = found["elsewhere"]
    assert {root["topic"], read["topic"]} == {"weights"}
    assert "is another folder" in root["text"]
    assert f"{gone}, to read from, is not there" in read["text"]
    assert os.listdir(there) == []
    assert os.listdir(tmp_path / "weights") == []


def test_a_machine_is_looked_at_behind_its_prolog(
    hosts: Caller, own: sshd.Sshd, tmp_path: Path
) -> None:
    """As trials will find it there: its Python, its modules, and what it can do without."""
    there = tmp_path / "there"
    there.mkdir()
    (there / "its-python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (there / "its-python").chmod(0o755)
    (there / "filelock.py").write_text("raise ImportError('not here')\n")
    machine = {
        "host": "box",
        "python": "its-python",
        "prolog": f"read x; echo hello; export PATH={there}:$PATH PYTHONPATH={there}",
        "knownHosts": str(own.folder / "known_hosts"),
    }
    asked = {
        "searchSpace": {"x": {"_type": "uniform", "_value": [0, 1]}},
        "trialCommand": "true",
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "weightsRoot": str(tmp_path),
        "tuner": {"name": "Random"},
        "trainingService": {"platform": "ssh", "machineList": [machine]},
    }
    file = tmp_path / "experiment.yml"

    def told(topic: str) -> list[str]:
        file.write_text(json.dumps(asked))
        (box,) = json.loads(hosts("check", str(file), "--json"))["hosts"]
        return [f["text"] for f in box["findings"] if f["topic"] == topic]

    (_, note) = told("modules")
    assert note.startswith("no filelock: files of parents are read from the share")
    asked["weightsCache"] = "off"
    assert len(told("modules")) == 1
    assert told("prolog") == []
    machine["prolog"] += "; module load cuda"
    assert told("prolog") == [
        "its last command ended with exit code 127; trials begin all the same"
    ]


def test_what_names_no_machine(hosts: Caller) -> None:
    assert "names no machine" in hosts("check", "box:99999", code=3)
    assert "does not exist" in hosts("check", "none.yml", code=3)


def test_what_old_experiments_left_goes_and_what_is_used_stays(
    hosts: Caller, own: sshd.Sshd, tmp_path: Path
) -> None:
    """Mutations: age is not looked at; nor who uses it; nor whether an agent may come back."""
    hosts("add", "box", "--yes")
    place = tmp_path / "work" / "experiments"
    for name in ("old-aaaaaa/box", "used-bbbbbb/box", "new-cccccc/box", "told-dddddd/box"):
        (place / name / "logs").mkdir(parents=True)
        (place / name / "logs" / "agent.log").write_bytes(bytes(5000))
    (place / "told-dddddd/box/agent-box.config.json").write_text("{}")
    month = time.time() - 40 * 86400
    for name in ("old-aaaaaa", "used-bbbbbb", "told-dddddd"):
        for path in [place / name, *(place / name).rglob("*")]:
            os.utime(path, (month, month))

    def told(*more: str) -> dict[str, Any]:
        words = ("tidy", "box", "--work-folder", str(tmp_path / "work"), "--json", *more)
        (one,) = json.loads(hosts(*words))["machines"]
        return one  # type: ignore[no-any-return]

    uses = subprocess.Popen(["sleep", "600"], cwd=place / "used-bbbbbb/box/logs")
    try:
        looked = told("--dry-run")
        assert looked["removed"] == []
        assert looked["left"]["old-aaaaaa/box"]["bytes"] >= 5000
        assert looked["stays"] == {
            "old-aaaaaa/box": "",
            "used-bbbbbb/box": "in use",
            "new-cccccc/box": "not old enough",
            "told-dddddd/box": "",
        }
        assert told("--yes", "--experiment", "told-dddddd")["removed"] == []
        assert told("--yes", "--experiment", "used-bbbbbb")["removed"] == []
        assert told("--yes")["removed"] == ["old-aaaaaa/box", "told-dddddd/box"]
    finally:
        uses.kill()
        uses.wait()
    assert sorted(path.name for path in place.iterdir()) == ["new-cccccc", "used-bbbbbb"]
    assert told("--yes", "--experiment", "new-cccccc")["removed"] == ["new-cccccc/box"]
    assert told("--yes", "--older-than", "0")["removed"] == ["used-bbbbbb/box"]
    work = str(tmp_path / "work")
    assert "nothing is left there" in hosts("tidy", "box", "--work-folder", work)
