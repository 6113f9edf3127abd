"""Agents that die, servers that go away: nothing is lost, and nothing half is ever read."""

from __future__ import annotations

import getpass
import os
import threading
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from tests.integration.remote_weights.conftest import RemoteLab, sftp_options
from tests.support.checker import check_store
from tests.support.processes import wait_until
from tests.support.relay import Relay, relayed
from tests.support.s3_server import BUCKET, S3Server
from tests.support.sshd import Sshd
from trial_runtime.failpoints import STRUCK_VARIABLE, VARIABLE
from trial_runtime.weights.remote.address import RemoteRoot
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.retrying import Persistence


@pytest.mark.parametrize(
    "place",
    ["agent.parent.pulled", "remote.objects.uploaded@2", "remote.record.uploaded@2"],
)
def test_an_agent_that_dies_in_between(
    place: str, lab: RemoteLab, ssh: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "struck").mkdir()
    monkeypatch.setenv(VARIABLE, f"{place}=kill")
    monkeypatch.setenv(STRUCK_VARIABLE, str(tmp_path / "struck"))
    url = f"sftp://{getpass.getuser()}@127.0.0.1:{ssh.port}{tmp_path}/remote"
    folder = lab.create(
        maxTrialNumber=8, lostRetries=3, weightsRoot=url, weightsRootOptions=sftp_options(ssh)
    )
    phase, notices = lab.run(folder)
    assert (tmp_path / "struck" / place).exists()
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    assert max(lab.finals(folder).values()) >= 2.0
    remote = tmp_path / "remote" / folder.name
    assert list((remote / ".uploads").iterdir()) == []
    committed = {
        (row.trial, row.weights.digest)
        for row in lab.rows(folder)
        if isinstance(row, e.WeightsPublished)
    }
    for trial, digest in committed:
        assert (remote / f"published/trials/{trial}/{digest}.json").exists()


def test_a_server_that_is_away_for_a_while_only_delays(lab: RemoteLab, s3: S3Server) -> None:
    with relayed(s3.port) as line:
        folder = lab.create(
            maxTrialNumber=12,
            weightsRoot=f"s3://{BUCKET}/away",
            weightsRootOptions=s3.options(
                line.port, config_kwargs={"connect_timeout": 5, "retries": {"max_attempts": 0}}
            ),
        )
        line.cut_after(30_000)  # in the middle of some trial's upload
        _mend_when_somebody_waits(line, folder)
        phase, notices = lab.run(folder)
    assert line.cuts >= 1
    assert phase is Phase.COMPLETED, notices
    assert check_store(folder / "journal.sqlite") == []
    found = lab.finals(folder)
    assert len(found) == 12
    assert max(found.values()) >= 3.0
    ends = [row for row in lab.rows(folder) if isinstance(row, e.AttemptEnded)]
    assert len(ends) == 12  # delayed, and none of them tried twice


def _mend_when_somebody_waits(line: Relay, folder: Path) -> None:
    log = folder / "logs" / "agent.log"

    def waits() -> bool:
        return log.exists() and "trying again" in log.read_text()

    def mend() -> None:
        wait_until(waits, "an agent that tries again", 120)
        line.mend()

    threading.Thread(target=mend, daemon=True).start()


@pytest.mark.parametrize("kind", ["s3", "sftp"])
def test_a_line_that_breaks_in_the_middle_of_a_file(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    data = os.urandom(4 << 20) * 5
    (tmp_path / "file").write_bytes(data)
    server: S3Server | Sshd = request.getfixturevalue("s3" if kind == "s3" else "ssh")
    with relayed(server.port) as line:
        if isinstance(server, S3Server):
            quickly = {"connect_timeout": 5, "read_timeout": 60, "retries": {"max_attempts": 0}}
            options = server.options(line.port, config_kwargs=quickly)
            root = RemoteRoot(f"s3://{BUCKET}/line", options)
        else:
            words = (server.folder / "host_key.pub").read_text().split()[:2]
            known = tmp_path / "known_hosts"
            known.write_text(f"[127.0.0.1]:{line.port} {' '.join(words)}\n")
            url = f"sftp://{getpass.getuser()}@127.0.0.1:{line.port}{tmp_path}/remote"
            root = RemoteRoot(url, sftp_options(server, known_hosts=str(known)))
        mends: list[float] = []

        def mend(seconds: float) -> None:
            mends.append(seconds)
            line.mend()

        place = Place(root, persistence=Persistence(600.0, clock=lambda: 0.0, sleep=mend))
        line.cut_after(9 << 20)
        place.put_file(str(tmp_path / "file"), "objects/a")
        assert line.cuts >= 1
        assert place.size("objects/a") == len(data)
        line.cut_after(9 << 20)
        with (tmp_path / "back").open("wb") as out:
            place.fetch("objects/a", out)
        assert line.cuts >= 2
        assert mends
        assert (tmp_path / "back").read_bytes() == data
        assert set(place.listing("objects")) == {"objects/a"}
        place.close()
