"""A head on a machine without Slurm: commands are run on a login node, by a real sshd."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.findings import Severity
from dispatcher.platforms.slurm import SLURM
from dispatcher.platforms.slurm.section import SlurmServiceConfig
from tests.engines.slurm.conftest import Lab, wrapper_of
from tests.engines.slurm.test_whole import lineage
from tests.support import sshd
from tests.support.processes import wait_until
from tests.support.slurm_cluster import why_not

pytestmark = [
    pytest.mark.needs("slurm"),
    pytest.mark.needs("ssh"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(why_not() or sshd.why_not()), reason=why_not() or sshd.why_not()),
]


def test_a_login_node_that_goes_away_and_comes_back(lab: Lab, tmp_path: Path) -> None:
    """Its jobs go on meanwhile, and nobody is lost. Mutations: a command is run here; each command
    is a login of its own."""
    shared = lab.base / "shared"
    shared.mkdir()
    conf = lab.cluster.environment["SLURM_CONF"]
    with sshd.running(tmp_path / "sshd", SLURM_CONF=conf) as node:
        login = {
            "host": "127.0.0.1",
            "port": node.port,
            "user": "root",
            "keyFile": str(node.folder / "client_key"),
            "knownHosts": str(node.folder / "known_hosts"),
        }
        service = {"login": login, "sharedFolder": str(shared), "cpus": 1, "wallTime": "1h"}
        section = SlurmServiceConfig.model_validate({"platform": "slurm", **service})
        found = {each.topic: each.severity for each in SLURM.inspect(section)}
        assert found == {
            "cluster": Severity.OK,
            "partitions": Severity.OK,
            "job": Severity.OK,
            "python": Severity.NOTE,
        }
        folder = lab.create(
            {**service, "slots": 1, "allocations": 2},
            experimentWorkingDirectory=str(lab.cluster.folder.parent / "hidden"),
            weightsRoot=str(shared / "weights"),
            **lineage(8, wait_s=1.0),
        )
        none_here = wrapper_of("sbatch", "exit 9", lab.base / "bin")
        for program in ("squeue", "scancel", "sacct"):
            (Path(none_here) / program).symlink_to(Path(none_here) / "sbatch")
        head = lab.lead(folder, before=none_here)

        def ended() -> int:
            return len(lab.events(folder, e.AttemptEnded))

        wait_until(lambda: ended() >= 2, "trials end")
        logins = node.log().count("Accepted publickey")
        assert logins == 2, "one of the look before, one of the head"
        node.kill()
        before = ended()
        wait_until(lambda: ended() >= before + 2, "they go on without it")
        node.start()
        lab.finish(folder, head)
        assert node.log().count("Accepted publickey") == logins + 1
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert not lab.events(folder, e.WorkerLost)
    assert not list(shared.glob("bequeath/*/*/*.config")), "no key is left"
