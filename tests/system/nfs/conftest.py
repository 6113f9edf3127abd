"""A share between three machines, set up by the commands a person types."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.system.nfs.first import TRIAL
from tests.system.nfs.rig import Machine, Network, machines


@dataclass(frozen=True)
class Share:
    """``folder`` of ``server`` is mounted at ``point`` of ``one`` and ``two``; the trials'
    user (:meth:`Machine.as_user`) owns it. The clients have Linux's default attribute caches."""

    server: Machine
    one: Machine
    two: Machine
    folder: str
    point: str
    network: Network


#: Clients wait for as long after a crash of the server before it serves; Linux has 90 s.
_SHORT = """\
# So that tests wait 10 s for a server that crashed, and not 90.
[nfsd]
grace-time=10
lease-time=10
"""


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Share]:
    """The share and its machines, for all tests of a module."""
    folder, point = "/srv/weights", "/mnt/weights"
    with machines(tmp_path_factory.mktemp("rig"), ["server", "one", "two"]) as network:
        server, one, two = network
        short = f"mkdir -p /etc/nfs.conf.d; printf '%s' '{_SHORT}' >/etc/nfs.conf.d/tests.conf"
        done = server.run("sh", "-c", short)
        assert done.code == 0, done
        done = server.nfs(
            "server", folder, "one", "two", "--owner", TRIAL.name, "--shares-its-file-system"
        )
        assert done.code == 0, done
        command = Machine.python_argv(
            *("-m", "dispatcher.cli", "nfs", "client", f"server:{folder}", point)
        )
        for running in [client.start(*command) for client in (one, two)]:
            done = running.wait(280)
            assert done.code == 0, done
        for machine in network:
            assert machine.run("sync").code == 0  # else a power cut takes the set-up along
        yield Share(server, one, two, folder, point, network)
