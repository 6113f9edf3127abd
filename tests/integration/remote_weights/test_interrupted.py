"""Agents that die, servers that go away: nothing is lost, and nothing half is ever read."""

from __future__ import annotations

import getpass
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
